"""Means of documents in groups against statsmodels, and the bootstrap of groups against drawing them one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.api import OLS

from hedge_tasks.statistics import compare_rates, estimate_mean, estimate_rate
from hedge_tasks.statistics.means import clustered_spread
from hedge_tasks.statistics.resampling import group_bootstrap, group_totals


def clustered(seed: int, n_groups: int = 9) -> tuple[np.ndarray, list[str]]:
    """Numbers in groups of different sizes, alike within a group."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_groups), rng.integers(1, 6, size=n_groups))
    order = rng.permutation(len(codes))
    values = rng.normal(size=n_groups)[codes] + rng.normal(size=len(codes))
    return values[order], [f"image {codes[i]}" for i in order]


def by_statsmodels(values: np.ndarray, groups: list[str]) -> object:
    """A regression on a constant with cluster-robust errors; its factor for k = 1 coefficients is G / (G - 1)."""
    codes = np.unique(groups, return_inverse=True)[1]
    return OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)


@pytest.mark.parametrize("seed", range(5))
def test_a_clustered_mean_is_the_cluster_robust_regression_of_statsmodels(seed: int) -> None:
    values, groups = clustered(seed)
    found, fit = estimate_mean(values, groups), by_statsmodels(values, groups)
    assert found.value == pytest.approx(fit.params[0], abs=1e-12)
    assert found.stderr == pytest.approx(fit.bse[0], abs=1e-12)
    for confidence in (0.8, 0.95):
        assert estimate_mean(values, groups, confidence=confidence).interval == pytest.approx(
            tuple(fit.conf_int(1 - confidence)[0]), abs=1e-9
        )
    assert (found.n, found.n_groups, found.reason) == (len(values), 9, None)


def test_a_document_without_a_group_is_one_of_its_own() -> None:
    values, _ = clustered(1)
    alone = estimate_mean(values, [None] * len(values))
    assert alone.stderr == pytest.approx(stats.sem(values), rel=1e-12)
    assert alone.interval == pytest.approx(tuple(stats.ttest_1samp(values, 0).confidence_interval()), rel=1e-9)
    # Not even of one that is called as its place.
    assert estimate_mean([1.0, 2.0, 3.0], [None, 0, 0]).n_groups == 2


def test_an_undefined_mean_has_a_reason() -> None:
    nothing, one = estimate_mean([], []), estimate_mean([1.0, 3.0], ["a", "a"])
    assert (nothing.value, nothing.stderr, nothing.reason) == (None, None, "no documents")
    assert (one.value, one.stderr, one.interval) == (2.0, None, None)
    assert "single group" in one.reason
    with pytest.raises(ValueError, match="groups has length 1"):
        estimate_mean([1.0, 2.0], ["a"])


def test_groups_that_do_not_occur_are_not_counted() -> None:
    deviations, groups = np.array([0.5, -1.0, 0.25, 0.25]), np.array([3, 7, 7, 3])
    assert clustered_spread(deviations, groups) == pytest.approx(math.sqrt(2 * 2 * 0.75**2))


@pytest.mark.parametrize("seed", range(3))
def test_rates_and_their_differences_have_the_errors_of_statsmodels(seed: int) -> None:
    values, groups = clustered(seed, n_groups=30)
    a, b = (values > 0).astype(int), (values + np.random.default_rng(seed).normal(size=len(values)) > 0.3).astype(int)
    assert estimate_rate(a, groups=groups).stderr == pytest.approx(by_statsmodels(a, groups).bse[0], abs=1e-12)
    found, fit = compare_rates(a, b, groups=groups), by_statsmodels(a - b, groups)
    assert (found.difference, found.stderr) == pytest.approx((fit.params[0], fit.bse[0]), abs=1e-12)
    assert found.p_value == pytest.approx(fit.pvalues[0], rel=1e-9)
    for confidence in (0.8, 0.95):
        found = compare_rates(a, b, groups=groups, confidence=confidence)
        assert found.interval == pytest.approx(tuple(fit.conf_int(1 - confidence)[0]), abs=1e-9)


def test_the_interval_of_a_difference_is_bonetts_and_prices() -> None:
    # Bonett & Price 2012: n = 100, f10 = 15, f01 = 5; with p10 = 16/102, p01 = 6/102.
    a, b = [1] * 15 + [0] * 5 + [1] * 40 + [0] * 40, [0] * 15 + [1] * 5 + [1] * 40 + [0] * 40
    p10, p01 = 16 / 102, 6 / 102
    half = stats.norm.ppf(0.95) * math.sqrt((p10 + p01 - (p10 - p01) ** 2) / 102)
    found = compare_rates(a, b, confidence=0.9)
    assert found.interval == pytest.approx((p10 - p01 - half, p10 - p01 + half), abs=1e-12)
    assert found.stderr == pytest.approx(math.sqrt(15 + 5 - 10**2 / 100) / 100, abs=1e-12)
    backwards = compare_rates(b, a, confidence=0.9)
    assert backwards.interval == pytest.approx((p01 - p10 - half, p01 - p10 + half), abs=1e-12)
    assert compare_rates([1] * 5, [0] * 5).interval[1] == 1.0
    assert compare_rates([0] * 5, [1] * 5).interval[0] == -1.0
    grouped = compare_rates([1, 1, 1, 0], [0, 0, 0, 0], groups=["x", "x", "y", "y"])
    assert grouped.interval == (-1.0, 1.0)


# --- the bootstrap of groups ------------------------------------------------------------------------------------------


def test_totals_are_sums_by_group_in_an_order_of_their_own() -> None:
    rng = np.random.default_rng(3)
    parts, groups = rng.integers(0, 4, size=(40, 2, 3)), rng.integers(0, 8, size=40)
    totals = group_totals(groups.tolist(), parts)
    assert sorted(totals.tolist()) == sorted(parts[groups == g].sum(0).tolist() for g in set(groups.tolist()))
    order = rng.permutation(40)
    shuffled = group_totals([f"image {977 * groups[i] % 1000}" for i in order], parts[order])
    assert shuffled.tolist() == totals.tolist()
    assert group_totals([], np.zeros((0, 2))).shape == (0, 2)


def test_the_group_bootstrap_equals_drawing_whole_groups_one_by_one() -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(25), rng.integers(1, 9, size=25))
    ones = (rng.random(len(groups)) < rng.beta(1, 2, size=25)[groups]).astype(int)
    totals = group_totals(groups.tolist(), np.stack([ones, np.ones_like(ones)], axis=1))
    found = group_bootstrap(totals, lambda sums: sums[:, 0] / sums[:, 1], n_resamples=4000)
    members = [np.flatnonzero(groups == g) for g in range(25)]
    drawn = [ones[np.concatenate([members[g] for g in rng.integers(0, 25, 25)])].mean() for _ in range(4000)]
    assert found.shape == (4000,)
    assert found.mean() == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / math.sqrt(2000))
    assert found.std() == pytest.approx(np.std(drawn), rel=0.06)
    assert np.quantile(found, [0.05, 0.95]) == pytest.approx(np.quantile(drawn, [0.05, 0.95]), abs=0.02)
    again = group_bootstrap(totals, lambda sums: sums[:, 0] / sums[:, 1], n_resamples=4000)
    assert again.tolist() == found.tolist()
    assert group_bootstrap(totals, lambda sums: sums[:, 0], seed=1).tolist() != found[:1000].tolist()
