"""What stages cost, runs of several strengths of the perturbation, and two clusterings of one question side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from finished_runs import finished_run

from hedge_tasks.cli import main
from hedge_tasks.measures.cost import measured
from hedge_tasks.runs.run_files import Run
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


# --- cost -------------------------------------------------------------------------------------------------------------


def test_a_stage_is_measured() -> None:
    with measured() as cost:
        sum(range(2_000_000))
    assert 0 < cost.cpu_seconds <= cost.seconds * 1.5 + 0.05
    assert cost.peak_mb > 20
    assert set(cost.to_dict()) >= {"seconds", "cpu_seconds", "peak_mb"}
