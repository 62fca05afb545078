"""Standard errors and intervals of AUROCs: DeLong, Newcombe, the jackknife, within strata; do they cover?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from hedge_tasks.numbers import WHOLE_PERCENT
from hedge_tasks.statistics import estimate_auroc, newcombe_interval, stratified_auroc, wilson_interval
from hedge_tasks.statistics.placements import placement_values

INF = math.inf


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


def test_delong_by_hand():
    # Placement values 1 and 1/2 of either class: the variance is (1/8) / 2 + (1/8) / 2.
    estimate = estimate_auroc([3, 1, 2, 0], [1, 1, 0, 0], fewest=2)
    assert estimate.value == 0.75
    assert estimate.stderr == pytest.approx(math.sqrt(1 / 8), abs=1e-12)


@pytest.mark.parametrize("decimals", [3, 1, 0])
@pytest.mark.parametrize("seed", range(5))
def test_delong_with_midranks_equals_the_quadratic_formula(seed, decimals):
    scores, labels, _ = clustered(60, seed=seed, decimals=decimals)
    assert estimate_auroc(scores, labels).stderr == pytest.approx(delong_stderr(scores, labels))
    wins = kernel(scores, labels)
    values = placement_values(scores, labels == 1)
    assert values[labels == 1] == pytest.approx(wins.mean(1))
    assert values[labels == 0] == pytest.approx(wins.mean(0))


def test_infinite_scores_are_ranked():
    finite = estimate_auroc([-9, 1, 2, 3, 9, 9] * 2, [0, 1, 0, 1, 0, 1] * 2)
    assert finite.stderr is not None
    assert estimate_auroc([-INF, 1, 2, 3, INF, INF] * 2, [0, 1, 0, 1, 0, 1] * 2) == finite


@pytest.mark.parametrize("seed", range(6))
def test_by_group_each_group_is_deleted_in_turn(seed):
    scores, labels, groups = clustered(seed=seed)
    found = estimate_auroc(scores, labels, groups=groups)
    left, whole = areas_without(scores, labels, groups)
    assert found.stderr == pytest.approx(jackknifed(left, whole), rel=1e-9)
    assert found.stderr != pytest.approx(delong_stderr(scores, labels), rel=0.01)
    of_logit = jackknifed(logit(left), logit(whole))
    shares = [np.bincount(groups, labels == c) / (labels == c).sum() for c in (0, 1)]
    with_either = min((share > 0).sum() for share in shares)
    effective = min(4 / (sum(shares) ** 2).sum(), with_either)
    half = student.ppf(0.975, effective - 1) * of_logit
    assert found.interval == pytest.approx(expit(logit(whole) + np.array([-half, half])))


def test_within_strata_each_group_is_deleted_in_turn():
    scores, labels, groups = clustered(seed=1)
    strata = np.arange(len(scores)) % 4
    found = stratified_auroc(scores, labels, strata.tolist(), groups=groups)
    left, whole = areas_without(scores, labels, groups, strata)
    assert (found.value, found.stderr) == pytest.approx((whole, jackknifed(left, whole)), rel=1e-9)


def test_groups_of_one_document_are_nearly_no_groups():
    scores, labels, _ = clustered(300)
    single = estimate_auroc(scores, labels, groups=range(len(scores)))
    assert single.stderr == pytest.approx(delong_stderr(scores, labels), rel=0.01)


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


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=4, max_size=30),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_an_interval_is_ordered_and_flips_with_score_or_label(pairs, by_group):
    scores, labels = np.array(pairs, dtype=float).T
    groups = [i % 7 for i in range(len(pairs))] if by_group else None
    options = {"groups": groups}
    estimate = estimate_auroc(scores, labels, **options)
    if estimate.interval is None:
        assert estimate.reason
        assert estimate.stderr is None
        return
    low, high = estimate.interval
    assert 0 <= low <= high <= 1
    assert low < high
    assert low <= estimate.value <= high
    for flipped in (estimate_auroc(-scores, labels, **options), estimate_auroc(scores, 1 - labels, **options)):
        assert flipped.value == pytest.approx(1 - estimate.value)
        assert flipped.stderr == pytest.approx(estimate.stderr)
        assert flipped.interval == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_a_higher_confidence_is_a_wider_interval():
    scores, labels, _ = clustered()
    narrow, wide = (estimate_auroc(scores, labels, confidence=level).interval for level in (0.8, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


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


def test_a_constant_score_is_at_chance_with_an_interval_about_it():
    low, high = estimate_auroc([1.0] * 20, [0, 1] * 10).interval
    assert (low, high) == pytest.approx(newcombe_interval(0.5, 10, 10))


def test_one_hallucination_has_no_interval():
    estimate = estimate_auroc([1, 2, 3], [0, 0, 1], fewest=1)
    assert (estimate.value, estimate.stderr, estimate.interval) == (1.0, None, None)
    assert "single document" in estimate.reason


# --- coverage --------------------------------------------------------------------------------------------------------


def misses(true, n_samples, sample, **options):
    """How many of the intervals of samples miss the true AUROC."""
    count = 0
    for seed in range(n_samples):
        scores, labels, groups = sample(np.random.default_rng(seed))
        low, high = estimate_auroc(scores, labels, groups=groups, **options).interval
        count += not low <= true <= high
    return count


def within_chance(n_missed, n_samples, level=0.95, spread=4.0):
    """Whether so many misses are within `spread` binomial standard errors of what the level promises."""
    share = 1 - level
    return abs(n_missed - share * n_samples) <= spread * math.sqrt(n_samples * share * (1 - share))


def binormal(area, n, *, decimals=2):
    def sample(rng):
        labels = (rng.random(n) < 0.3).astype(int)
        return (rng.normal(size=n) + norm.ppf(area) * math.sqrt(2) * labels).round(decimals), labels, None

    return sample


@pytest.mark.slow
@pytest.mark.parametrize("area", [0.7, 0.9])
def test_delong_intervals_cover(area):
    assert within_chance(misses(area, 800, binormal(area, 150)), 800)


@pytest.mark.slow
def test_intervals_by_group_cover_where_those_of_independent_documents_do_not():
    groups = np.arange(200) // 8

    def sample(rng):
        labels = (rng.random(200) < rng.beta(0.6, 1.2, size=25)[groups]).astype(int)
        shift = norm.ppf(0.75) * math.sqrt(2)
        scores = math.sqrt(0.6) * rng.normal(size=25)[groups] + math.sqrt(0.4) * rng.normal(size=200) + shift * labels
        return scores, labels, groups

    assert within_chance(misses(0.75, 500, sample), 500)
    alone = misses(0.75, 500, lambda rng: (*sample(rng)[:2], None))
    assert alone > 500 * 0.15


# --- within strata ---------------------------------------------------------------------------------------------------


def test_one_stratum_is_no_stratum():
    scores, labels, groups = clustered()
    for members in (None, groups):
        plain = estimate_auroc(scores, labels, groups=members)
        within = stratified_auroc(scores, labels, ["same"] * len(scores), groups=members)
        assert within.value == pytest.approx(plain.value)
        assert within.stderr == pytest.approx(plain.stderr)
        assert within.interval == pytest.approx(plain.interval)
        assert within.strata["same"] == plain


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_the_stderr_within_strata_agrees_with_resampling_of_documents_or_groups(grouped):
    scores, labels, groups = clustered(300, size=4, seed=6)
    strata = np.array(["open", "closed", "choice", "closed"])[np.arange(300) % 4]
    rng, values = np.random.default_rng(0), []
    units = np.array(groups) if grouped else np.arange(300)
    members = [np.flatnonzero(units == u) for u in np.unique(units)]
    for _ in range(2000):
        chosen = np.concatenate([members[i] for i in rng.integers(0, len(members), size=len(members))])
        values.append(stratified_value(scores[chosen], labels[chosen], strata[chosen]))
    result = stratified_auroc(scores, labels, list(strata), groups=groups if grouped else None)
    assert result.value == pytest.approx(stratified_value(scores, labels, strata))
    assert result.stderr == pytest.approx(np.std(values), rel=0.07)
    low, high = result.interval
    assert np.mean((np.array(values) > low) & (np.array(values) < high)) == pytest.approx(0.95, abs=0.02)


def stratified_value(scores, labels, strata):
    wins = [kernel(scores[strata == s], labels[strata == s]) for s in np.unique(strata)]
    return sum(w.sum() for w in wins) / sum(w.size for w in wins)


def test_a_stratum_with_one_hallucination_still_counts_in_the_pooled_stderr():
    scores, labels = [1, 4, 3, 2, 5, 3, 6, 1, 4, 7], [0, 1, 0, 0, 1, 1, 0, 0, 1, 1]
    result = stratified_auroc(scores, labels, list("aaabbbbbbb"))
    assert (result.strata["a"].value, result.strata["a"].n_rarer) == (None, 1)
    assert result.stderr > 0
    assert result.reason is None


def test_perfect_separation_within_strata_counts_pairs_within_strata():
    scores, labels = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5], [0, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    result = stratified_auroc(scores, labels, list("aaaaabbbbb"))
    assert (result.value, result.stderr) == (1.0, 0.0)
    assert result.interval == pytest.approx(wilson_interval(2, 2))


def test_strata_in_one_group_have_no_stderr():
    result = stratified_auroc([1, 2, 3, 4] * 3, [0, 1, 0, 1] * 3, list("aabb") * 3, groups=["image"] * 12)
    assert (result.value, result.stderr, result.interval) == (1.0, None, None)
    assert "single group" in result.reason
