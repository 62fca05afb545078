"""`hedge detectors`, `compare` and `claims`: in every form, on every kind of run, the numbers of the functions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main, printing
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import SCORE_NAMES
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.measures.comparisons import compare_two_scores
from hedge_tasks.measures.detector_table import detector_table
from hedge_tasks.measures.seed_spread import draws_shares
from hedge_tasks.measures.sweep import sweep
from hedge_tasks.numbers import Table
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.runs.scorers import scorer_of

PRINT = printing.print_as
EMBED = {"embed": {"with_question": False, "backend": "embed", "threshold": 0.9, "alpha": 1.0}}


def altered(n: int, change: Callable[[AnswerSet], dict[str, Any]]) -> Run:
    run = finished_run(n)
    return replace(run, answer_sets=tuple(replace(a, **change(a)) for a in run.answer_sets))


RUNS = {
    "plain": finished_run(30),
    "one class": altered(20, lambda a: {"label": 0}),
    "unlabelled": altered(8, lambda a: {"label": None}),
    "no log-probabilities": altered(30, lambda a: {"clean": tuple(replace(x, mean_logprob=None) for x in a.clean)}),
    "two clusterings": finished_run(30, filters={**EXACT, "again": EXACT["exact"]}),
}
COMMANDS = {
    "detectors": ["detectors", "RUN"],
    "all": ["detectors", "RUN", "--all"],
    "budget": ["detectors", "RUN", "--draws", "6"],
    "sweep": ["detectors", "RUN", "--sweep", "n"],
    "draws": ["detectors", "RUN", "--sweep", "draws"],
    "seeds": ["detectors", "RUN", "--seeds"],
    "compare": ["compare", "RUN"],
    "itself": ["compare", "RUN", "RUN"],
    "rescore": ["rescore", "RUN"],
    "claims": ["claims", "RUN"],
}


def called(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def shown(capsys: pytest.CaptureFixture[str], result: Any, form: str) -> str:
    PRINT(result, form)
    return capsys.readouterr().out


def numbers(run: Run, command: str, facts: Any) -> None:
    """Compare some numbers of a command's JSON with those of the functions."""
    scorer = scorer_of(run, None)
    if command in ("all", "budget"):
        budget = 6 if command == "budget" else None
        names = [row["detector"] for row in facts[0]["detectors"] if not row["detector"].endswith(")")]
        for row, told in zip(detector_table(run, scorer, names, budget=budget, blind=False).rows, names, strict=True):
            [of_row] = [r for r in facts[0]["detectors"] if r["detector"] == told]
            assert (row.detector, row.draws, row.estimate.value) == (told, of_row["draws"], of_row["estimate"]["value"])
    if command == "sweep":
        points = list(sweep(run.answer_sets, scorer, range(1, 7), SCORE_NAMES))
        assert [p.estimate.value for p in points] == [p["estimate"]["value"] for p in facts["points"]]
    if command == "seeds":
        assert [s.share for s in draws_shares(run.answer_sets, scorer)] == [row["share"] for row in facts["draws"]]
    if command == "compare" and facts["comparisons"]:
        scores = scorer.score(run.answer_sets)
        told = facts["comparisons"][0]
        expected = compare_two_scores(scores, "se", scores, "radflag")
        assert (told["what"], told["a"], told["b"]) == (scorer.name, "SE", "RadFlag")
        assert told["value_a"] == detection_auroc(scores, "se").value
        assert told["difference"]["value"] == getattr(expected, "difference", None)


def tables_in(result: Any) -> list[Table]:
    """Those of a command's result that are not empty."""
    parts = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else ()
    return [result] if isinstance(result, Table) and result.rows else [t for part in parts for t in tables_in(part)]


@pytest.mark.parametrize("name", RUNS)
def test_text_json_and_csv_of_every_command(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forms are of one result, so that a command runs once for all of them."""
    results: list[Any] = []
    monkeypatch.setattr(printing, "print_as", lambda value, form: results.append(value))
    path = str(save_run(RUNS[name], tmp_path))
    for command, words in COMMANDS.items():
        called(capsys, *[path if word == "RUN" else word for word in words])
        text, as_json, as_csv = (shown(capsys, results[-1], form) for form in ("text", "json", "csv"))
        numbers(RUNS[name], command, json.loads(as_json))
        for table in tables_in(results[-1]):
            told = [column.source for column in table.columns]
            assert all(any(source in row for row in table.rows) for source in told), (command, told)
        assert text.strip()
        for table in as_csv.strip().split("\n\n"):
            assert len({len(row) for row in csv.reader(io.StringIO(table))}) == 1


@pytest.mark.slow
def test_thresholds_by_every_way_of_choosing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save_run(finished_run(36, filters={**EXACT, **EMBED}), tmp_path))
    ways = {row["way"]: row for row in json.loads(called(capsys, "detectors", path, "--thresholds", "--json"))["ways"]}
    assert list(ways) == ["fixed", "cross-fit", "tuned", "label-free", "oracle"]
    assert ways["tuned"]["auroc"]["n"] <= ways["oracle"]["auroc"]["n"] == 36
    assert all(0.8 <= row["lowest"] <= row["highest"] <= 0.99 for row in ways.values())
