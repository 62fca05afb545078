"""The risk-coverage curve with its area."""

from __future__ import annotations

import pytest

from hedge_tasks.statistics import (
    area_under_risk_coverage,
    risk_coverage_curve,
)


def test_curves_by_hand():
    scores, quality = [0.3, 0.1, 0.2, 0.4], [1, 1, 0, 0.5]
    risk = risk_coverage_curve(scores, quality)
    assert risk.x.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk.y == pytest.approx([0, 1 / 2, 1 / 3, 1.5 / 4])
    with pytest.raises(ValueError, match=r"quality\[1\] is 1.5"):
        risk_coverage_curve([1, 2], [0, 1.5])
    assert area_under_risk_coverage(scores, quality) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1.5 / 4) / 4)
