"""Means of documents in groups, and differences of rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hedge_tasks.statistics import compare_rates, estimate_mean, estimate_rate
from hedge_tasks.statistics.means import clustered_spread


def clustered(seed: int, n_groups: int = 9) -> tuple[np.ndarray, list[str]]:
    """Numbers in groups of different sizes, alike within a group."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_groups), rng.integers(1, 6, size=n_groups))
    order = rng.permutation(len(codes))
    values = rng.normal(size=n_groups)[codes] + rng.normal(size=len(codes))
    return values[order], [f"image {codes[i]}" for i in order]


def test_groups_that_do_not_occur_are_not_counted() -> None:
    deviations, groups = np.array([0.5, -1.0, 0.25, 0.25]), np.array([3, 7, 7, 3])
    assert clustered_spread(deviations, groups) == pytest.approx(math.sqrt(2 * 2 * 0.75**2))


def test_the_interval_of_a_difference_is_bonetts_and_prices() -> None:
    # Bonett & Price 2012: n = 100, f10 = 15, f01 = 5; with p10 = 16/102, p01 = 6/102.
    a, b = [1] * 15 + [0] * 5 + [1] * 40 + [0] * 40, [0] * 15 + [1] * 5 + [1] * 40 + [0] * 40
    p10, p01 = 16 / 102, 6 / 102
    half = stats.norm.ppf(0.95) * math.sqrt((p10 + p01 - (p10 - p01) ** 2) / 102)
    found = compare_rates(a, b, confidence=0.9)
    assert found.interval == pytest.approx((p10 - p01 - half, p10 - p01 + half), abs=1e-12)
    assert found.stderr == pytest.approx(math.sqrt(15 + 5 - 10**2 / 100) / 100, abs=1e-12)
    assert found.p_value == pytest.approx(stats.binomtest(15, 20).pvalue)
    backwards = compare_rates(b, a, confidence=0.9)
    assert backwards.interval == pytest.approx((p01 - p10 - half, p01 - p10 + half), abs=1e-12)
    assert compare_rates([1] * 5, [0] * 5).interval[1] == 1.0
    assert compare_rates([0] * 5, [1] * 5).interval[0] == -1.0
    grouped = compare_rates([1, 1, 1, 0], [0, 0, 0, 0], groups=["x", "x", "y", "y"])
    assert grouped.interval == (-1.0, 1.0)
    alike = compare_rates([1, 0, 1, 0], [0, 0, 0, 0], groups=["x", "x", "y", "y"])
    assert (alike.difference, alike.stderr, alike.reason) == (0.5, None, "no standard error: all groups differ alike")
    assert compare_rates([], []).reason == "no documents"
    for wrong, message in ((([2], [0]), "0 or 1"), (([1, 0], [0]), "one length")):
        with pytest.raises(ValueError, match=message):
            compare_rates(*wrong)
    same = compare_rates([1, 0, 1], [1, 0, 1], groups=["x", "x", "y"])
    assert (same.stderr, same.interval, same.p_value) == (0.0, (0.0, 0.0), 1.0)


def test_a_difference_of_rates_by_groups_is_the_mean_of_the_differences() -> None:
    chance = np.random.default_rng(0)
    a, b, groups = chance.integers(0, 2, 30), chance.integers(0, 2, 30), (np.arange(30) // 4).tolist()
    found, mean = compare_rates(a, b, groups=groups, confidence=0.9), estimate_mean(a - b, groups, confidence=0.9)
    assert (found.difference, found.stderr, *found.interval) == (mean.value, mean.stderr, *mean.interval)
    assert found.p_value == pytest.approx(2 * stats.t(7).sf(abs(mean.value) / mean.stderr))
    assert found.deviations.sum() == pytest.approx(0)
    assert np.flatnonzero(found.deviations).tolist() == [i for i in range(0, 30, 4) if found.deviations[i]]


@pytest.mark.parametrize("seed", range(5))
def test_a_clustered_mean_has_the_cluster_robust_error(seed: int) -> None:
    values, groups = clustered(seed)
    sums = [(values - values.mean())[np.array(groups) == g].sum() for g in set(groups)]
    expected = math.sqrt(9 / 8 * np.square(sums).sum()) / len(values)
    mean = estimate_mean(values, groups)
    assert (mean.value, mean.stderr) == pytest.approx((values.mean(), expected))
    half = stats.t(8).ppf(0.975) * expected
    assert mean.interval == pytest.approx((values.mean() - half, values.mean() + half))
    ones = (values > 0).astype(int)
    assert estimate_rate(ones, groups=groups).stderr == pytest.approx(estimate_mean(ones, groups).stderr)
