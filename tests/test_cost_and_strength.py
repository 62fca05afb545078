"""Runs of several strengths of the perturbation, and two clusterings of one question side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling.plan import SamplingPlan


@pytest.fixture
def hedge(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(*arguments: object) -> Any:
        assert main([*map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def at(strength: float, seed: int = 0, **changes: Any) -> Run:
    sampling = {**SamplingPlan(strength=strength).settings(), **changes}
    run = finished_run(40, sampling=sampling)
    return replace(run, answer_sets=finished_run(40, seed=seed).answer_sets, created=f"2026-01-01T00:00:0{seed}")


# --- strengths --------------------------------------------------------------------------------------------------------


# --- two clusterings of one question ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_clusterings_stand_side_by_side(
    tmp_path: Path, hedge: Callable[..., Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    filters = {**EXACT, "embed": Scorer.build("embed", "embed", {"threshold": 0.5}).settings()}
    run = finished_run(3, filters=filters, task="hedge_demo")
    save_run(run, tmp_path)
    name = run.answer_sets[0].id
    facts = hedge("show", tmp_path, "--id", name, "--clustering", "exact", "--against", "embed")
    assert (facts["clustering"]["backend"], facts["against"]["clustering"]["backend"]) == ("exact", "embed")
    assert len(facts["cluster_ids"]) == len(facts["against"]["cluster_ids"]) == 13
    words = ["show", str(tmp_path), "--id", name, "--clustering", "exact", "--against"]
    assert main([*words, "embed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["exact", "embed"])
    rows = [line.split() for line in lines[head + 1 : head + 14]]
    assert [int(row[0]) for row in rows] == sorted(facts["cluster_ids"])
    assert sorted(int(row[1]) for row in rows) == sorted(facts["against"]["cluster_ids"])
    assert main([*words, "exact"]) == 2
    assert "beside itself" in capsys.readouterr().err
