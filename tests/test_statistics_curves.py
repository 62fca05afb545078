"""The risk-coverage curve with its area, and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from hedge_tasks.statistics import (
    area_under_risk_coverage,
    estimate_calibration,
    risk_coverage_curve,
)

# --- curves ----------------------------------------------------------------------------------------------------------


def test_curves_by_hand():
    scores, quality = [0.3, 0.1, 0.2, 0.4], [1, 1, 0, 0.5]
    risk = risk_coverage_curve(scores, quality)
    assert risk.x.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk.y == pytest.approx([0, 1 / 2, 1 / 3, 1.5 / 4])
    with pytest.raises(ValueError, match=r"quality\[1\] is 1.5"):
        risk_coverage_curve([1, 2], [0, 1.5])
    assert area_under_risk_coverage(scores, quality) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1.5 / 4) / 4)


# --- calibration -----------------------------------------------------------------------------------------------------


def judged(n=300, seed=0, size=3):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(int)
    return (rng.normal(size=n) + labels).round(1), labels, (np.arange(n) // size).tolist()


def test_ece_and_bins_follow_from_the_probabilities():
    scores, labels, groups = judged()
    found = estimate_calibration(scores, labels, groups=groups, n_bins=8)
    p, total = np.array(found.probabilities), 0.0
    for low in np.arange(8) / 8:
        inside = (p >= low) & ((p < low + 1 / 8) | ((low == 7 / 8) & (p == 1)))
        if inside.any():
            total += inside.sum() * abs(labels[inside].mean() - p[inside].mean())
            [each] = [b for b in found.bins if b.low == low]
            assert (each.n, each.share) == (inside.sum(), pytest.approx(labels[inside].mean()))
            assert each.interval[0] <= each.share <= each.interval[1]
    assert found.ece == pytest.approx(total / 300)
    assert found.brier == pytest.approx(((p - labels) ** 2).mean())
    assert (found.n, found.n_positive, found.n_folds) == (300, labels.sum(), 5)
    assert sum(each.n for each in found.bins) == 300


def test_pure_noise_is_not_calibrated_to_perfection():
    rng = np.random.default_rng(3)
    scores, labels = rng.normal(size=200), rng.integers(0, 2, size=200)
    own = IsotonicRegression(y_min=0, y_max=1).fit(scores, labels).predict(scores)
    in_sample = sum(abs((labels - own)[(own * 10).astype(int).clip(0, 9) == b].sum()) for b in range(10)) / 200
    assert in_sample < 1e-9
    assert estimate_calibration(scores, labels).ece > 0.05


def test_copies_in_one_group_do_not_leak():
    groups = np.repeat(np.arange(60), 5).tolist()
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        scores, labels = np.repeat(rng.normal(size=60), 5), np.repeat(rng.integers(0, 2, size=60), 5)
        # Noise with five copies of each document: across folds the copies give the labels away.
        apart, together = estimate_calibration(scores, labels), estimate_calibration(scores, labels, groups=groups)
        errors.append((together.brier - apart.brier, together.ece / apart.ece))
    assert np.mean([brier for brier, _ in errors]) > 0.02
    assert min(ratio for _, ratio in errors) > 1.2


def test_calibration_depends_on_neither_order_nor_scale():
    scores, labels, groups = judged(90)
    order = np.random.default_rng(1).permutation(90)
    renamed = [f"image {977 * groups[i] % 1000}" for i in order]
    first = estimate_calibration(scores, labels, groups=groups)
    again = estimate_calibration(np.exp(scores[order]), labels[order], groups=renamed)
    assert again.ece == pytest.approx(first.ece)
    assert again.brier == pytest.approx(first.brier)
    assert estimate_calibration(scores, labels, groups=groups, seed=1).brier != first.brier


def test_few_hallucinations_are_fewer_folds():
    assert estimate_calibration(range(20), [0] * 17 + [1] * 3).n_folds == 3


@pytest.mark.parametrize(
    ("scores", "labels", "groups", "reason"),
    [
        ([], [], None, "no documents"),
        ([1, 2], [0, 0], None, "no document is labelled hallucinated"),
        ([1, 2, 3], [0, 0, 1], None, "one of the classes occurs in a single document or group"),
        ([1, 2, 3, 4], [0, 1, 0, 1], ["a"] * 4, "one of the classes occurs in a single document or group"),
    ],
)
def test_an_undefined_calibration_has_a_reason(scores, labels, groups, reason):
    found = estimate_calibration(scores, labels, groups=groups)
    assert (found.ece, found.brier, found.bins, found.n_folds) == (None, None, (), 0)
    assert reason in found.reason
