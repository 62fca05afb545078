"""What stages cost, runs of several strengths of the perturbation, and two clusterings of one question side by side."""

from __future__ import annotations

from hedge_tasks.measures.cost import measured

# --- cost -------------------------------------------------------------------------------------------------------------


def test_a_stage_is_measured() -> None:
    with measured() as cost:
        sum(range(2_000_000))
    assert 0 < cost.cpu_seconds <= cost.seconds * 1.5 + 0.05
    assert cost.peak_mb > 20
    assert set(cost.to_dict()) >= {"seconds", "cpu_seconds", "peak_mb"}
