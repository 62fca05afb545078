"""Findings in lmms-eval's result file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from finished_runs import finished_run

from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.lmms import findings, plugin
from hedge_tasks.lmms.findings import KEY, in_results
from hedge_tasks.measures.headline import headline
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(60)
FINDING = headline(RUN)


def test_every_number_is_there_with_its_interval() -> None:
    found = in_results(FINDING)
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
    monkeypatch.setattr(findings, "_kept", {})
    monkeypatch.setattr(findings, "_findings", [])
    findings.note_kept(tmp_path, own_data=False, run=RUN)
    tracker = EvaluationTracker(output_path=str(tmp_path))
    tracker.general_config_tracker.model_name_sanitized = "m"
    for date, tasks, there in (("20260101", {RUN.task: {}}, True), ("20260102", {"another": {}}, False)):
        tracker.save_results_aggregated(results={"results": tasks}, samples=None, datetime_str=date)
        written = json.loads((tmp_path / "m" / f"{date}_results.json").read_text())
        assert (KEY in written) is there
        if there:
            assert written[KEY][RUN.task]["finding"] == FINDING.text
