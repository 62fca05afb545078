"""`hedge compare`: paired differences between two runs, and within one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main
from hedge_tasks.clustering import build_backend
from hedge_tasks.detectors.pipeline import Scores, cluster_answer_sets, score_clustered
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.statistics import compare_rates, compare_runs, compare_scores, max_t


def saved(run: Run, folder: Path) -> Path:
    return save_run(run, folder / "hedge_runs")


def scores_of(run: Run) -> list[Scores]:
    return [score_clustered(s) for s in cluster_answer_sets(run.answer_sets, build_backend("exact"))]


def test_two_runs_are_compared_on_their_common_documents(tmp_path: Path, printed: Callable[..., Any]) -> None:
    one, other = finished_run(60, seed=1), finished_run(80, seed=2)
    facts = printed("compare", saved(one, tmp_path / "a"), saved(other, tmp_path / "b"))
    rows = {row["what"]: row for row in facts["comparisons"]}
    assert list(rows) == ["hallucination rate", "exact, SE", "exact, RadFlag", "exact, VASE"]
    a, b = scores_of(one), scores_of(other)[:60]
    labels = [[s.label for s in scores] for scores in (a, b)]
    groups = [s.group for s in a]
    for name, title in (("se", "SE"), ("radflag", "RadFlag"), ("vase", "VASE")):
        expected = compare_runs([s[name] for s in a], labels[0], [s[name] for s in b], labels[1], groups=groups)
        row = rows[f"exact, {title}"]
        differences = row["difference"]["value"], row["value_a"] - row["value_b"]
        assert (*differences, row["difference"]["n"]) == (*[pytest.approx(expected.difference)] * 2, 60)
        fewer = min(([column.count(0), column.count(1)] for column in labels), key=min)
        assert row["difference"]["n_positive"] == fewer[1]
    rate = rows["hallucination rate"]
    assert (rate["value_a"], rate["value_b"]) == tuple(pytest.approx(np.mean(column)) for column in labels)


def test_p_values_are_those_of_all_rows_together(tmp_path: Path, printed: Callable[..., Any]) -> None:
    runs = [finished_run(60, seed=seed) for seed in (1, 2)]
    rows = printed("compare", *(saved(run, tmp_path / str(i)) for i, run in enumerate(runs)))["comparisons"]
    sides = a, b = [scores_of(run) for run in runs]
    first, second = ([s.label for s in scores] for scores in sides)
    groups = [s.group for s in a]
    family = [compare_rates(first, second, groups=groups)]
    for name in ("se", "radflag", "vase"):
        family.append(compare_runs([s[name] for s in a], first, [s[name] for s in b], second, groups=groups))
    adjusted = max_t([comparison.of(s.id for s in a) for comparison in family])
    assert [row["p_max_t"] for row in rows] == pytest.approx(adjusted)


def test_two_scores_of_one_run(tmp_path: Path, printed: Callable[..., Any]) -> None:
    run = finished_run()
    [row] = printed("compare", saved(run, tmp_path), "--detectors", "vase,se")["comparisons"]
    scores = scores_of(run)
    columns = [s["vase"] for s in scores], [s["se"] for s in scores], [s.label for s in scores]
    expected = compare_scores(*columns, groups=[s.group for s in scores])
    assert (row["what"], row["a"], row["b"]) == ("exact", "VASE", "SE")
    assert (row["difference"]["value"], row["p_exploratory"]) == (
        pytest.approx(expected.difference),
        pytest.approx(expected.p_value),
    )


def test_other_questions_under_the_same_ids_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = finished_run()
    swapped = tuple(replace(s, question=f"other {s.question}") for s in one.answer_sets)
    files = [saved(run, tmp_path / name) for name, run in (("a", one), ("b", replace(one, answer_sets=swapped)))]
    assert main(["compare", *map(str, files)]) == 2
    assert "not runs on the same questions" in capsys.readouterr().err


def test_settings_that_differ_are_told(tmp_path: Path, printed: Callable[..., Any]) -> None:
    runs = [
        finished_run(sampling={"n": 6, "temperature": temperature}, documents={"judge": {"judge": judge}})
        for temperature, judge in ((1.0, "rule"), (0.7, "llm"))
    ]
    rows = printed("compare", *(saved(run, tmp_path / name) for name, run in zip("ab", runs, strict=True)))["settings"]
    assert {row["setting"]: (row["a"], row["b"]) for row in rows} == {
        "temperature": ("1.0", "0.7"),
        "judge": ("rule", "llm"),
    }


def test_clusterings_of_one_name_that_differ_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [finished_run(filters={"exact": {**EXACT["exact"], "alpha": alpha}}) for alpha in (1.0, 0.5)]
    files = [saved(run, tmp_path / name) for name, run in zip("ab", runs, strict=True)]
    assert main(["compare", *map(str, files)]) == 0
    assert "WARNING: clustering: exact is " in capsys.readouterr().err


@pytest.mark.slow
def test_within_one_run_all_detectors_are_compared_that_differ_in_one_thing(
    tmp_path: Path, printed: Callable[..., Any]
) -> None:
    lower = {**EXACT, "asked": {**EXACT["exact"], "with_question": True}}
    run = finished_run(60, filters=lower)
    run = replace(run, answer_sets=tuple(replace(a, question="q?") for a in run.answer_sets))
    rows = {(row["what"], row["a"], row["b"]): row for row in printed("compare", saved(run, tmp_path))["comparisons"]}
    titles = ("SE", "RadFlag", "VASE")
    within = {(name, a, b) for name in lower for a, b in combinations(titles, 2)}
    assert rows.keys() == within | {(title, "exact", "asked") for title in titles}
    only = printed("compare", saved(run, tmp_path), "--clustering", "asked", "--detectors", "se,vase")["comparisons"]
    assert [(row["what"], row["a"], row["b"]) for row in only] == [("asked", "SE", "VASE")]
    mine = rows["asked", "SE", "VASE"]  # of one run p is exploratory: no other row changes it
    assert (mine["value_a"], mine["p_exploratory"]) == (only[0]["value_a"], only[0]["p_exploratory"])
