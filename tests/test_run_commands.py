"""`hedge rescore`, `show`, `sweep`: numbers from a finished run, without the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run
from printed import json_of
from sampling_process import SeededModel, requests

from hedge_tasks.cli import main
from hedge_tasks.clustering import build_backend
from hedge_tasks.detectors.pipeline import cluster_answer_sets, score_clustered
from hedge_tasks.judging import build_judge
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.runs.from_answers import run_from_answers
from hedge_tasks.runs.from_store import run_from_store
from hedge_tasks.runs.relabel import relabel
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.statistics import auroc

FINISHED = finished_run(40)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    save_run(FINISHED, tmp_path / "hedge_runs")
    return tmp_path


def reference(name: str, alpha: float = 1.0) -> float:
    clustered = cluster_answer_sets(FINISHED.answer_sets, build_backend("exact"))
    scores = [score_clustered(answers, alpha=alpha) for answers in clustered]
    return auroc([s[name] for s in scores], [s.label for s in scores])


def test_rescore_with_another_alpha_changes_vase_alone(run: Path, printed: Callable[..., Any], tmp_path: Path) -> None:
    changed = printed("rescore", run, "--alpha", "3", "--out", tmp_path / "out")["filters"]["exact"]
    assert changed["auroc"]["vase"]["value"] == pytest.approx(reference("vase", 3.0))
    assert reference("vase", 3.0) != reference("vase")
    assert changed["auroc"]["se"]["value"] == pytest.approx(reference("se"))
    # Written as a run, which has these numbers by itself.
    assert printed("rescore", tmp_path / "out")["filters"]["exact"] == changed


def test_a_run_from_a_store_names_its_judge_with_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Callable[..., Any]
) -> None:
    generate_samples(SeededModel(0), requests(tmp_path / "hedge_answers", 2))  # type: ignore[arg-type]
    facts = printed("rescore", tmp_path, "--clustering", "exact")
    assert (facts["task"], facts["filters"]["exact"]["n"]) == ("task", 12)
    first = run_from_store(tmp_path, None, "rule")
    edition = RuleJudge.version
    assert {(v["judge"], v["version"]) for v in first.verdicts.values()} == {(f"rule {edition}", edition)}
    assert first.settings["documents"]["judge"] == build_judge("rule").settings()
    assert len(first.verdicts) == len(first.answer_sets) == 12
    again, _ = relabel(first, build_judge("rule"))
    assert {(v["judge"], v["version"]) for v in again.verdicts.values()} == {(f"rule {edition}", edition)}
    monkeypatch.setattr(RuleJudge, "version", "of tomorrow")
    later = run_from_store(tmp_path, None, "rule")
    assert {v["judge"] for v in later.verdicts.values()} == {"rule of tomorrow"}


def test_an_answer_that_was_cut_has_no_label_whoever_judges_it_again() -> None:
    sets = [
        AnswerSet(f, Answer("Yes", finish=f), (), question="Is there a mass?", reference="yes")
        for f in ("stop", "length")
    ]
    first = run_from_answers("t", "m", sets, "rule")
    again, _ = relabel(first, build_judge("rule"))
    assert [a.label for a in again.answer_sets] == [a.label for a in first.answer_sets] == [0, None]


def test_show_marks_where_every_answer_comes_from(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run), "--id", "q3"]) == 0
    printed = capsys.readouterr().out
    answers = FINISHED.answer_sets[3]
    for mark, texts in (("baseline", [answers.baseline]), ("clean", answers.clean), ("noisy", answers.noisy)):
        found = sorted(line.split()[-1] for line in printed.splitlines() if line.split()[1:2] == [mark])
        assert found == sorted(answer.text for answer in texts)


def test_show_says_how_it_was_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished = finished_run()
    decoding = {"asked": "pure", "temperature": 1.0, "sent": {"top_p": 1.0, "top_k": 0}}
    first, *rest = finished.answer_sets
    cut = replace(first, baseline=Answer("a long sto", finish="length"))
    sampled = {**finished.settings, "sampled": {"decoding": decoding}}
    save_run(replace(finished, answer_sets=(cut, *rest), settings=sampled), tmp_path)
    assert main(["show", str(tmp_path), "--id", first.id]) == 0
    printed = capsys.readouterr().out
    # Its log-probabilities are made up: in many documents they add up to more than 1.
    assert "pure, T 1.0; contradicted: temperature, top_k, top_p, min_p, penalties, " in printed
    assert "length  a long sto\n" in printed


def test_show_as_json_has_clusters_and_scores(run: Path, printed: Callable[..., Any]) -> None:
    facts = printed("show", run, "--id", "q3", "--clustering", "exact")
    [clustered] = cluster_answer_sets([FINISHED.answer_sets[3]], build_backend("exact"))
    assert facts["cluster_ids"] == list(clustered.cluster_ids or ())
    assert facts["scores"] == json.loads(json.dumps(dict(score_clustered(clustered))))


def test_what_a_terminal_would_obey_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "a\x1b[31m\u202eb\nc\x85é"
    finished = finished_run()
    first = replace(finished.answer_sets[0], baseline=Answer(text))
    save_run(replace(finished, answer_sets=(first, *finished.answer_sets[1:])), tmp_path)
    assert main(["show", str(tmp_path), "--id", first.id]) == 0
    assert "a\\u001b[31m\\u202eb\\nc\\u0085é\n" in capsys.readouterr().out
    assert json_of(capsys, ["show", str(tmp_path), "--id", first.id, "--json"])["baseline"] == text
