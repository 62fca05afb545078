"""Findings in lmms-eval's result file and in Weights & Biases."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from finished_runs import finished_run

from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.lmms import next_step, plugin
from hedge_tasks.lmms.carried import COLUMNS, KEY, TABLE, findings_in_results, send_to_wandb
from hedge_tasks.measures.headline import headline
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(60)
FINDING = headline(RUN)


def test_every_number_is_there_with_its_interval() -> None:
    found = findings_in_results([FINDING])[RUN.task]
    json.dumps(found)
    assert found["finding"] == FINDING.text
    assert found["trust"]["level"] == FINDING.trust.level
    scores = scorer_of(RUN, None).score(RUN.answer_sets)
    by_name = {row["detector"]: row for row in found["roc_auc"]}
    for name in ("se", "radflag", "vase"):
        expected = detection_auroc(scores, name)
        row = by_name[name]
        assert (row["value"], (row["low"], row["high"])) == (expected.value, expected.interval)
        assert row["answers"] == 60


def test_lmms_evals_result_file_carries_the_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.loggers.evaluation_tracker import EvaluationTracker

    plugin.install()
    monkeypatch.setattr(next_step, "_runs", [RUN])
    monkeypatch.setattr(next_step, "_findings", {})
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "m"
    for date, tasks, there in (("20260101", {RUN.task: {}}, True), ("20260102", {"another": {}}, False)):
        tracker.save_results_aggregated(results={"results": tasks}, samples=None, datetime_str=date)
        written = json.loads((tmp_path / "m" / f"{date}_results.json").read_text())
        assert (KEY in written) is there
        if there:
            assert written[KEY][RUN.task]["finding"] == FINDING.text


class FakeRun:
    def __init__(self) -> None:
        self.logged: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.artifacts: list[Any] = []

    def log(self, values: dict[str, Any]) -> None:
        self.logged |= values

    def log_artifact(self, artifact: Any) -> None:
        self.artifacts.append(artifact)


def fake_wandb(run: FakeRun | None) -> Any:
    class Artifact:
        def __init__(self, name: str, type: str) -> None:
            self.name, self.type, self.files = name, type, []

        def add_file(self, path: str) -> None:
            self.files.append(path)

    return SimpleNamespace(run=run, Table=lambda columns, data: (columns, data), Artifact=Artifact)


def test_an_open_run_of_wandb_gets_table_finding_and_run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    saved = save_run(RUN, tmp_path)
    run = FakeRun()
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(run))
    send_to_wandb([replace(FINDING, run=replace(RUN, path=saved))])
    columns, rows = run.logged[TABLE]
    assert columns == list(COLUMNS)
    assert len(rows) == len(FINDING.estimates)
    assert run.summary == {f"{RUN.task}/finding": FINDING.text, f"{RUN.task}/trust": FINDING.trust.short}
    assert [artifact.files for artifact in run.artifacts] == [[str(saved)]]


def test_without_an_open_run_nothing_is_sent_and_a_service_that_fails_is_only_said(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(None))
    send_to_wandb([FINDING])
    broken = FakeRun()
    monkeypatch.setattr(broken, "log", lambda values: 1 / 0)
    monkeypatch.setitem(sys.modules, "wandb", fake_wandb(broken))
    send_to_wandb([FINDING])
    assert any("not logged to Weights & Biases" in line for line in said)
