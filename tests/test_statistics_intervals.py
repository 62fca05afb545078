"""Standard errors and intervals of AUROCs: DeLong, Newcombe, the jackknife, within strata; do they cover?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from hedge_tasks.numbers import WHOLE_PERCENT
from hedge_tasks.statistics import (
    compare_scores,
    compare_within,
    estimate_auroc,
    newcombe_interval,
    stratified_auroc,
    wilson_interval,
)
from hedge_tasks.statistics.base import wilson
from hedge_tasks.statistics.placements import placement_values


def kernel(scores, labels):
    """Wins of every hallucinated (row) over every supported answer (column)."""
    positive, negative = scores[labels == 1], scores[labels == 0]
    return (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)


def delong_stderr(scores, labels):
    wins = kernel(scores, labels)
    m, n = wins.shape
    return math.sqrt(wins.mean(1).var(ddof=1) / m + wins.mean(0).var(ddof=1) / n)


def areas_without(scores, labels, groups, strata=None):
    """AUROC (within strata) of the documents of all groups but one, for each of them, and of all."""
    groups, strata = np.array(groups), np.zeros(len(scores)) if strata is None else np.array(strata)

    def area(kept):
        wins = [kernel(scores[kept & (strata == s)], labels[kept & (strata == s)]) for s in np.unique(strata)]
        return sum(w.sum() for w in wins) / sum(w.size for w in wins)

    return np.array([area(groups != g) for g in dict.fromkeys(groups.tolist())]), area(groups == groups)


def jackknifed(values, whole):
    return math.sqrt((len(values) - 1) / len(values) * ((values - whole) ** 2).sum())


def clustered(n=120, size=3, seed=0, decimals=1):
    """Scores and labels that the documents of a group share in part."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) // size
    labels = (rng.random(n) < rng.beta(1.5, 2, size=n)[groups]).astype(int)
    scores = rng.normal(size=n)[groups] + rng.normal(size=n) + labels
    return scores.round(decimals), labels, groups.tolist()


# --- DeLong ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [3, 1, 0])
@pytest.mark.parametrize("seed", range(5))
def test_delong_with_midranks_equals_the_quadratic_formula(seed, decimals):
    scores, labels, _ = clustered(60, seed=seed, decimals=decimals)
    assert estimate_auroc(scores, labels).stderr == pytest.approx(delong_stderr(scores, labels))
    wins = kernel(scores, labels)
    values = placement_values(scores, labels == 1)
    assert values[labels == 1] == pytest.approx(wins.mean(1))
    assert values[labels == 0] == pytest.approx(wins.mean(0))


def test_within_strata_each_group_is_deleted_in_turn():
    scores, labels, groups = clustered(seed=1)
    strata = np.arange(len(scores)) % 4
    found = stratified_auroc(scores, labels, strata.tolist(), groups=groups)
    left, whole = areas_without(scores, labels, groups, strata)
    assert (found.value, found.stderr) == pytest.approx((whole, jackknifed(left, whole)), rel=1e-9)
    assert found.n_pairs == sum(labels[strata == s].sum() * (1 - labels[strata == s]).sum() for s in range(4))
    assert found.strata[2].value == estimate_auroc(scores[strata == 2], labels[strata == 2]).value


def test_a_group_that_carries_a_class_has_no_interval():
    scores, labels, groups = clustered(60, size=3)
    groups = [0 if y else g for g, y in zip(groups, labels, strict=True)]
    alone = estimate_auroc(scores, labels, groups=groups)
    assert (alone.stderr, alone.reason) == (None, "no standard error: one of the classes occurs in a single group only")
    groups[int(np.flatnonzero(labels)[0])] = -1
    found = estimate_auroc(scores, labels, groups=groups)
    assert found.value is not None
    assert (found.stderr, found.interval) == (None, None)
    share = 1 - 1 / labels.sum()
    assert found.reason == f"no standard error: one group has {WHOLE_PERCENT(share)} of one of the classes"


# --- intervals -------------------------------------------------------------------------------------------------------


def test_perfect_separation_still_has_an_interval():
    scores, labels = np.arange(30), np.arange(30) >= 20
    estimate = estimate_auroc(scores, labels)
    assert (estimate.value, estimate.stderr) == (1.0, 0.0)
    assert estimate.interval == pytest.approx(newcombe_interval(1.0, 10, 20))
    by_group = estimate_auroc(scores, labels, groups=[i // 5 for i in range(30)])
    assert by_group.interval == pytest.approx(newcombe_interval(1.0, 2, 4, degrees=1))
    # Four groups with both classes: every group counts once.
    mixed = estimate_auroc(scores, labels, groups=[i % 4 for i in range(30)])
    assert mixed.interval == pytest.approx(newcombe_interval(1.0, 2, 4, degrees=3), abs=0.01)


@pytest.mark.parametrize(("inflation", "extra"), [(1.0, 0.0), (1.0, 0.04), (3.0, 0.0), (9.0, 0.02)])
@pytest.mark.parametrize("n", [60, 240])
@pytest.mark.parametrize("by_group", [False, True])
def test_what_scores_do_not_show_widens_error_and_interval(n, by_group, inflation, extra):
    scores, labels, groups = clustered(n, seed=2, decimals=2)
    scores, groups = scores + 2.5 * labels, groups if by_group else None
    plain = estimate_auroc(scores, labels, groups=groups)
    found = estimate_auroc(scores, labels, groups=groups, inflation=inflation, extra_stderr=extra)
    assert found.stderr == pytest.approx(math.hypot(math.sqrt(inflation) * plain.stderr, extra))
    sizes, value, degrees = np.bincount(labels)[::-1], found.value, None
    units = sizes if not by_group else [len({g for g, y in zip(groups, labels, strict=True) if y == c}) for c in (1, 0)]
    of_logit = plain.stderr / (value * (1 - value))
    if by_group:
        left, whole = areas_without(scores, labels, groups)
        of_logit = jackknifed(logit(left), logit(whole))
        leverage = sum(np.bincount(groups, labels == c) / (labels == c).sum() for c in (0, 1))
        degrees = min(leverage.sum() ** 2 / (leverage**2).sum(), *units) - 1
    if min(sizes) < 30:
        effect = max(1, (found.stderr / delong_stderr(scores, labels)) ** 2)
        low, high = newcombe_interval(value, *(sizes / effect), degrees=degrees)
    else:
        z = norm.ppf(0.975) if degrees is None else student.ppf(0.975, degrees)
        half = z * math.hypot(math.sqrt(inflation) * of_logit, extra / (value * (1 - value)))
        low, high = expit([logit(value) - half, logit(value) + half])
    if inflation > 1:
        least = wilson(value, min(units) / inflation, 0.95)
        low, high = max(low, least[0]), min(high, least[1])
    assert found.interval == pytest.approx((low, high))
    within = stratified_auroc(scores, labels, [0] * n, groups=groups, inflation=inflation)
    assert within.stderr == pytest.approx(math.sqrt(inflation) * plain.stderr)
    half = (norm.ppf(0.975) if degrees is None else student.ppf(0.975, degrees)) * math.sqrt(inflation) * of_logit
    assert within.interval == pytest.approx(tuple(expit([logit(value) - half, logit(value) + half])))
    other = scores[::-1]
    pair, wider = (compare_scores(scores, other, labels, groups=groups, extra_stderr=e) for e in (0.0, extra))
    assert wider.stderr == pytest.approx(math.hypot(pair.stderr, extra))
    pair, wider = (compare_within(scores, other, labels, [0] * n, groups=groups, extra_stderr=e) for e in (0.0, extra))
    assert wider.stderr == pytest.approx(math.hypot(pair.stderr, extra))


def test_a_perfect_score_of_many_whose_threshold_was_chosen_is_newcombes_as_well():
    y = np.arange(80) >= 40
    found = estimate_auroc(np.arange(80), y, extra_stderr=0.1)
    assert (found.value, found.stderr) == (1.0, 0.1)
    assert found.interval == pytest.approx(newcombe_interval(1.0, 40, 40))


# --- within strata ---------------------------------------------------------------------------------------------------


def test_where_nothing_is_left_without_a_group_there_is_a_value_and_no_error():
    labels, strata = ([1] * 5 + [0] * 5) * 2, ["a"] * 10 + ["b"] * 10
    groups = [0] * 5 + list(range(1, 11)) + [0] * 5  # half of a class in either stratum
    scores = np.random.default_rng(0).normal(size=20)
    found = stratified_auroc(scores, labels, strata, groups=groups, each=False)
    pair = compare_within(scores, scores[::-1], labels, strata, groups=groups)
    assert None not in (found.value, pair.difference)
    assert (found.stderr, pair.stderr) == (None, None)
    assert (
        found.reason == pair.reason == "no standard error: without one of the groups there is nothing left to compare"
    )


def test_perfect_separation_within_strata_counts_pairs_within_strata():
    scores, labels = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5], [0, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    result = stratified_auroc(scores, labels, list("aaaaabbbbb"))
    assert (result.value, result.stderr) == (1.0, 0.0)
    assert result.interval == pytest.approx(wilson_interval(2, 2))
