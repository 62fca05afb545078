"""Numbers against experts: designs with known probabilities, and what they do to AUROCs, rates and differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import t as student

from hedge_tasks.errors import ConfigError
from hedge_tasks.statistics import auroc, ratio
from hedge_tasks.statistics.base import UndefinedStatistic, wilson
from hedge_tasks.statistics.curves import area_under_risk_coverage, average_precision
from hedge_tasks.statistics.designs import LEAST, Design, allocate, simple_random
from hedge_tasks.statistics.verified import (
    OfPairs,
    _Precision,
    _RiskCoverage,
    audited_auroc,
    audited_precision,
    audited_rate,
    audited_risk_coverage,
    audited_sums,
    compare_audited_runs,
    compare_audited_scores,
    cross_fitted,
    pseudo_labels,
    verified,
)


def all_designs(strata, units, take):
    """Every sample that the design can draw; all have the same probability."""
    strata, units = np.array(strata), np.array(units)
    of = [sorted(set(units[strata == h].tolist())) for h in range(len(take))]
    for chosen in itertools.product(*(itertools.combinations(u, k) for u, k in zip(of, take, strict=True))):
        yield Design(strata, units, np.isin(units, [unit for part in chosen for unit in part]))


def labels_of(y, judged, design, **about):
    return verified(judged, [v if drawn else None for v, drawn in zip(y, design.drawn, strict=True)], design, **about)


SMALL = {
    "documents": ([0, 0, 0, 0, 1, 1, 1], list(range(7)), (2, 2)),
    "whole images": ([0, 0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 3, 4, 4, 5], (2, 2)),
    "all of one stratum": ([0, 0, 0, 1, 1], list(range(5)), (2, 2)),
}


@pytest.mark.parametrize("name", SMALL)
def test_probabilities_are_those_of_all_samples(name):
    designs = list(all_designs(*SMALL[name]))
    drawn = np.array([design.drawn for design in designs], dtype=float)
    single, pairs = drawn.mean(0), drawn.T @ drawn / len(drawn)
    design = designs[0]
    np.testing.assert_allclose(design.probabilities, single)
    for i, j in itertools.combinations(range(len(single)), 2):
        if design.units[i] != design.units[j] and design.strata[i] == design.strata[j] and pairs[i, j] > 0:
            assert design.pair_factor(design.strata[i]) == pytest.approx(single[i] * single[j] / pairs[i, j])


@pytest.mark.parametrize("name", SMALL)
def test_sums_over_pairs_are_right_on_average(name):
    """Over every sample that can be drawn, whatever is predicted, ties and whole images included."""
    strata, units, take = SMALL[name]
    rng = np.random.default_rng(3)
    n = len(strata)
    x, y = rng.integers(0, 4, n).astype(float), np.resize([1.0, 0.0, 0.0, 1.0], n)
    predicted = rng.random(n), rng.random(n)
    found = []
    for design in all_designs(strata, units, take):
        labels = labels_of(y, y, design)
        found.append(OfPairs(x).pair_sums(*pseudo_labels(predicted, labels), design))
    positive, negative = x[y == 1], x[y == 0]
    wins = float(((positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)).sum())
    np.testing.assert_allclose(np.mean(found, axis=0), (wins, len(positive) * len(negative)))


def test_variance_is_the_textbooks_and_that_of_all_samples():
    strata, units, take = SMALL["documents"]
    values = np.array([1.0, 4.0, 2.0, 7.0, 0.0, 3.0, 5.0])
    designs = list(all_designs(strata, units, take))
    totals = [float((values * d.drawn / d.probabilities).sum()) for d in designs]
    assert np.mean(totals) == pytest.approx(values.sum())
    assert np.mean([d.variance(values)[0] for d in designs]) == pytest.approx(np.var(totals))


def test_a_few_labels_that_are_alike_do_not_seem_sure():
    drawn = np.arange(100) < 10
    labels = verified([0] * 100, [0.0] * 10 + [None] * 90, simple_random(drawn))
    rate = audited_rate(labels)
    assert rate.value == 0
    assert rate.interval[0] == 0
    assert rate.interval[1] > 0.15  # ten of ten: the exact upper limit is .26


@given(
    y=st.lists(st.booleans(), min_size=6, max_size=30).filter(lambda y: any(y) and not all(y)), seed=st.integers(0, 99)
)
@settings(max_examples=30, deadline=None)
def test_with_all_labels_the_judge_plays_no_role(y, seed):
    rng = np.random.default_rng(seed)
    n, x, truth = len(y), rng.integers(0, 5, len(y)).astype(float), np.array(y, dtype=float)
    judged = rng.integers(0, 2, n).tolist()
    labels = verified(judged, truth.tolist(), simple_random(np.ones(n, dtype=bool)))
    found = audited_auroc(x, labels)
    assert found.value == pytest.approx(auroc(x, truth))
    assert found.run_stderr == 0
    assert audited_rate(labels).value == pytest.approx(truth.mean())
    other = rng.normal(size=n)
    compared = compare_audited_scores(x, other, labels)
    assert compared.difference == pytest.approx(auroc(x, truth) - auroc(other, truth))


def test_sums_are_rates_where_they_count_the_same():
    rng = np.random.default_rng(5)
    y, judged = rng.integers(0, 2, 60).astype(float), rng.integers(0, 2, 60).tolist()
    strata = (rng.random(60) < 0.3).astype(int)
    drawn = np.zeros(60, dtype=bool)
    for h, k in ((0, 9), (1, 8)):
        drawn[np.flatnonzero(strata == h)[:k]] = True
    labels = labels_of(y, judged, Design(strata, np.arange(60), drawn))
    rate = audited_rate(labels)
    sums = audited_sums([[1.0, 1.0]] * 60, [[0.0, 1.0]] * 60, [[0.0, 0.0]] * 60, ratio, labels)
    assert (sums.value, sums.stderr) == pytest.approx((rate.value, rate.stderr))
    # By hand: expanded means of the strata.
    by_hand = sum((strata == h).sum() * y[drawn & (strata == h)].mean() for h in (0, 1)) / 60
    assert abs(rate.value - by_hand) < 0.08


def simulate(seed, *, whole=False, n_images=60, size=8):
    """Images with a common hallucination rate, a score that follows it, and a judge that errs."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(n_images), size)
    shared = rng.normal(size=n_images)[of]
    y = (1.6 * shared + rng.normal(size=len(of)) > 0.6).astype(float)
    x = np.round(1.5 * shared + 0.5 * y + 0.5 * rng.normal(size=len(of)), 1)
    judged = np.where(rng.random(len(of)) < 0.2, 1 - y, y)
    if whole:
        drawn = np.isin(of, rng.choice(n_images, 12, replace=False))
        design = Design(np.zeros(len(of), dtype=np.int64), of, drawn)
    else:
        strata = (2 * judged + (x > np.median(x))).astype(int)
        drawn = np.zeros(len(of), dtype=bool)
        for h, k in enumerate((8, 20, 20, 12)):
            drawn[rng.choice(np.flatnonzero(strata == h), k, replace=False)] = True
        design = Design(strata, np.arange(len(of)), drawn)
    return x, y, judged, of, design


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_the_experts_number_is_met(whole):
    """Bias and coverage in a small simulation; the judge's own AUROC is off by far more."""
    errors, judges, held = [], [], []
    for seed in range(120):
        x, y, judged, of, design = simulate(seed, whole=whole)
        truth = auroc(x, y)
        found = audited_auroc(x, labels_of(y, judged, design, groups=of.tolist()))
        errors.append(found.value - truth)
        judges.append(auroc(x, judged) - truth)
        held.append(found.run_interval[0] <= truth <= found.run_interval[1])
    assert abs(np.mean(errors)) < 0.01
    assert abs(np.mean(judges)) > 0.1
    assert np.mean(held) > 0.9


def test_unequal_probabilities_are_weighed():
    """Labels taken mostly where answers are hallucinated tell a rate that is right on average."""
    rates = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        y = (np.arange(200) < 40).astype(float)
        strata = np.where(np.arange(200) < 50, 0, 1)
        drawn = np.zeros(200, dtype=bool)
        for h, k in ((0, 25), (1, 25)):
            drawn[rng.choice(np.flatnonzero(strata == h), k, replace=False)] = True
        rates.append(audited_rate(labels_of(y, [None] * 200, Design(strata, np.arange(200), drawn))).value)
    assert np.mean(rates) == pytest.approx(0.2, abs=0.01)


def test_a_document_is_predicted_without_its_group():
    _, y, judged, of, design = simulate(1)
    group = of[np.flatnonzero(design.drawn)[0]]
    mine = of == group
    other = np.where(mine, 1 - y, y)
    first, second = (cross_fitted(labels_of(v, judged, design, groups=of.tolist())) for v in (y, other))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a[mine], b[mine])
        assert (a != b).any()


def test_predictions_weigh_labels_as_they_were_drawn():
    """A stratum without labels in the other folds is predicted by the weighted rate of the judge's label."""
    strata = np.array([0] * 10 + [1] * 80 + [2] * 10)
    drawn = np.zeros(100, dtype=bool)
    drawn[[*range(8), *range(10, 18), 90, 95]] = True
    y, groups = np.where(strata == 0, 1.0, 0.0), np.where(strata == 2, 0, np.arange(100))
    design = Design(strata, np.arange(100), drawn)
    found = cross_fitted(labels_of(y, np.ones(100), design, groups=groups.tolist()))[0][90]
    train = drawn & (groups % 5 != 0)
    weights = 1 / design.probabilities[train]
    weights *= train.sum() / weights.sum()
    assert found == pytest.approx((weights @ y[train] + 0.8) / (train.sum() + 1))
    assert found < 0.3  # 6 of 12 without weights


@pytest.mark.parametrize("name", SMALL)
def test_sums_of_average_precision_are_right_on_average(name):
    """Over every sample that may be drawn, with predictions that do not depend on it."""
    designs = list(all_designs(*SMALL[name]))
    n = len(designs[0].drawn)
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 4, n).astype(float), (np.arange(n) % 3 == 0).astype(float)
    m = np.abs(y - rng.uniform(0.05, 0.35, n))
    sums = []
    for design in designs:
        labels, residuals = pseudo_labels((m, 1 - m), labels_of(y, [None] * n, design))
        sums.append(_Precision(x).value(labels, residuals, design) * labels[0].sum())
    assert np.mean(sums) == pytest.approx(average_precision(x, y) * y.sum())


def test_answers_that_experts_do_not_find_count_for_nothing():
    y, answered = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1, 1, 1, 0, 1, 0]
    labels = verified([1, 0, 0, 1, 0, None], y, simple_random(np.ones(6, dtype=bool)), answered=answered)
    assert audited_rate(labels).value == pytest.approx(0.25)
    x = [0.9, 0.1, 0.95, 0.2, 0.3, 0.4]
    assert audited_auroc(x, labels).value == pytest.approx(auroc([0.9, 0.1, 0.95, 0.3], [1, 0, 0, 0]))


def test_experts_who_disagree_count_as_half():
    labels = verified([1, 0, 1, 0], [1.0, 0.0, 0.5, 0.5], simple_random(np.ones(4, dtype=bool)))
    assert audited_rate(labels).value == pytest.approx(0.5)


def test_a_few_labels_that_are_alike_are_not_sure():
    strata, drawn = np.repeat([0, 1], 100), np.isin(np.arange(200) % 100, np.arange(5))
    experts = [float(s) if d else None for s, d in zip(strata, drawn, strict=True)]
    rate = audited_rate(verified(strata.tolist(), experts, Design(strata, np.arange(200), drawn)))
    assert rate.run_interval[1] - rate.run_interval[0] > 0.1


def test_differences():
    x, y, judged, of, design = simulate(2)
    labels = labels_of(y, judged, design, groups=of.tolist())
    same = compare_audited_scores(x, x, labels)
    assert (same.difference, same.interval, same.p_value) == (0.0, (0.0, 0.0), 1.0)
    noise = np.random.default_rng(0).normal(size=len(x))
    worse = compare_audited_scores(x, noise, labels)
    assert worse.difference > 0.15
    assert worse.p_value < 0.01
    swapped = compare_audited_scores(noise, x, labels)
    assert swapped.difference == pytest.approx(-worse.difference)
    runs = compare_audited_runs(x, labels, noise, labels)
    assert runs.difference == pytest.approx(worse.difference)
    # Audits that are drawn apart have errors of their own, which do not cancel between scores that are alike.
    alike = x + 0.1 * noise
    apart, together = compare_audited_runs(x, labels, alike, labels), compare_audited_scores(x, alike, labels)
    assert apart.stderr > 1.5 * together.stderr
    rates = compare_audited_runs(None, labels, None, labels)
    assert rates.difference == 0
    assert rates.stderr > 0


def test_what_cannot_be_said_is_said():
    design = simple_random(np.array([True, True, False, False]))
    found = audited_auroc([0.1, 0.2, 0.3, 0.4], verified([0, 0, 1, 1], [0.0, 0.0, None, None], design))
    assert not found.defined
    assert "no answer hallucinated (2 labels)" in found.reason
    found = audited_auroc([0.1, math.nan, 0.3, 0.4], verified([0, 0, 1, 1], [0.0, 1.0, None, None], design))
    assert "missing" in found.reason
    with pytest.raises(ValueError, match="no label of an expert"):
        verified([0, 0, 1, 1], [0.0, None, None, None], design)
    with pytest.raises(UndefinedStatistic, match="a stratum has no label"):
        Design(np.array([0, 1]), np.arange(2), np.array([True, False]))
    with pytest.raises(ValueError, match="drawn in part"):
        Design(np.array([0, 0]), np.array([0, 0]), np.array([True, False]))


@given(
    sizes=st.lists(st.integers(1, 80), min_size=1, max_size=8),
    n=st.integers(20, 120),
    needs=st.lists(st.floats(0, 1), min_size=8, max_size=8),
)
@settings(max_examples=60, deadline=None)
def test_every_stratum_has_its_labels_and_no_more_than_it_is_large(sizes, n, needs):
    take = allocate(sizes, needs[: len(sizes)], n)
    assert sum(take) == min(n, sum(sizes))
    assert all(min(LEAST, size) <= k <= size for k, size in zip(take, sizes, strict=True))


def test_strata_of_a_plan():
    from hedge_tasks.judging.strata import strata_of

    rng = np.random.default_rng(0)
    x = rng.normal(size=400).round(1)
    judged = [None if i % 20 == 0 else int(i % 3 == 0) for i in range(400)]
    basis = ["softly read" if i % 7 == 0 else "" for i in range(400)]
    found = strata_of(x, judged, basis, 100)
    assert sum(found.take) == 100
    sizes = np.bincount(found.stratum)
    for h, title in enumerate(found.titles):
        here = np.flatnonzero(found.stratum == h)
        assert len({judged[i] for i in here}) == 1, title
        assert found.take[h] >= math.floor(0.5 * 100 * sizes[h] / 400)
    assert any("softly read" in title for title in found.titles)
    assert any("without a label" in title for title in found.titles)
    with pytest.raises(ConfigError, match="at least"):
        strata_of(x, judged, basis, 3)
    with pytest.raises(ConfigError, match="auroc"):
        strata_of(x, judged, basis, 50, purpose="aurok")


# --- precision and risk by rank ---------------------------------------------------------------------------------------


def ranked(n, seed, groups=None, wrong=0.2):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.35).astype(float)
    x = np.round(2 * (rng.normal(size=n) + 0.9 * y)) / 2
    judged = np.where(rng.random(n) < wrong, 1 - y, y)
    return x, y, judged


@pytest.mark.parametrize(
    ("audited", "plain"),
    [
        (audited_precision, lambda x, y: average_precision(x, y)),
        (audited_risk_coverage, lambda x, y: area_under_risk_coverage(x, 1 - y)),
    ],
)
def test_by_rank_a_census_is_the_plain_number(audited, plain):
    x, y, judged = ranked(80, 3)
    design = simple_random(np.ones(80, dtype=bool))
    found = audited(x, labels_of(y, judged, design))
    assert found.value == pytest.approx(plain(x, y))
    assert found.run_interval == (found.value, found.value)


@pytest.mark.parametrize("audited", [audited_precision, audited_risk_coverage])
def test_by_rank_effects_are_derivatives(audited):
    statistic = {audited_precision: _Precision, audited_risk_coverage: _RiskCoverage}[audited]
    x, _, _ = ranked(30, 4)
    rng = np.random.default_rng(0)
    labels = rng.uniform(0.1, 0.9, 30), rng.uniform(0.1, 0.9, 30)
    of, nothing = statistic(x), (np.zeros(30), np.zeros(30))
    design = simple_random(np.ones(30, dtype=bool))
    value = of.value(labels, nothing, design)
    effects = of.effects(labels, value)
    for kind, i in itertools.product((0, 1), range(0, 30, 5)):
        moved = [part.copy() for part in labels]
        moved[kind][i] += 1e-6
        slope = (of.value(tuple(moved), nothing, design) - value) / 1e-6
        # A document's own square is no part of the derivative, and of order 1 / n**2.
        assert effects[kind][i] == pytest.approx(slope, abs=0.02)


@pytest.mark.parametrize(
    ("audited", "plain"),
    [
        (audited_precision, average_precision),
        (audited_risk_coverage, lambda x, y: area_under_risk_coverage(x, 1 - y)),
    ],
)
def test_by_rank_a_bad_judge_does_no_harm(audited, plain):
    """The mean over many draws is the experts' number, and intervals hold it about as often as they say."""
    x, y, judged = ranked(300, 5, wrong=0.35)
    rng, found = np.random.default_rng(1), []
    for _ in range(80):
        drawn = np.zeros(300, dtype=bool)
        drawn[rng.choice(300, 100, replace=False)] = True
        found.append(audited(x, labels_of(y, judged, simple_random(drawn))))
    truth = plain(x, y)
    values = np.array([f.value for f in found])
    assert abs(values.mean() - truth) < 3 * values.std() / math.sqrt(len(values)) + 0.005
    assert np.mean([f.run_interval[0] <= truth <= f.run_interval[1] for f in found]) > 0.87


def agreeing(n_right=21, n_wrong=9):
    """Labels that agree with the judge throughout, of 26 answers judged hallucinated and 94 judged supported."""
    judged = np.array([1] * 26 + [0] * 94)
    drawn = np.zeros(120, dtype=bool)
    drawn[np.r_[:n_wrong, 26 : 26 + n_right]] = True
    strata = (1 - judged).astype(np.int64)
    return labels_of(judged, judged, Design(strata, np.arange(120), drawn))


@pytest.mark.parametrize(("differing", "factor"), [(0, 2.0), (9, 0.2)])
def test_labels_that_are_alike_have_an_error_that_follows_how_often_the_judge_is_wrong(differing, factor):
    """One label more of either kind, drawn towards the judge's label by two; twice that where the judge is right."""
    labels = agreeing()
    if differing:  # the judge says of a whole stratum what experts never say of it
        y = np.zeros(120)
        labels = labels_of(y, labels.judged, labels.design)
    expected = 0.0
    for size, n in ((26, 9), (94, 21)):
        of_judge = 1 / (n + 2)
        p = 2 * of_judge / (n + 2)
        expected += factor * size**2 * (1 - n / size) / n * p * (1 - p) / 120**2
    assert audited_rate(labels).run_stderr == pytest.approx(math.sqrt(expected), rel=1e-6)


def clustered(n_groups=30, size=4, seed=8):
    """Labels that are alike within groups, and a judge who is wrong in a fifth."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(n_groups), size)
    y = (rng.random(len(of)) < np.repeat(rng.beta(0.6, 1.0, n_groups), size)).astype(float)
    return of, y, np.where(rng.random(len(of)) < 0.2, 1 - y, y), rng


def by_groups(values, of):
    """Standard error of a mean of documents in groups, by the textbook."""
    sums = np.bincount(of, values - values.mean())
    return math.sqrt(len(sums) / (len(sums) - 1) * float(sums @ sums)) / len(values)


def test_with_all_labels_the_error_is_that_of_the_groups():
    of, y, judged, _ = clustered()
    found = audited_rate(labels_of(y, judged, simple_random(np.ones(120, dtype=bool)), groups=of.tolist()))
    assert found.stderr == pytest.approx(by_groups(y, of))
    assert found.run_stderr == 0


def test_of_documents_like_these_the_draw_of_the_labels_counts_once():
    of, y, judged, rng = clustered()
    added = []
    for _ in range(100):
        drawn = np.zeros(120, dtype=bool)
        drawn[rng.choice(120, 40, replace=False)] = True
        found = audited_rate(labels_of(y, judged, simple_random(drawn), groups=of.tolist()))
        added.append(found.stderr**2 - found.run_stderr**2)
    assert np.mean(added) == pytest.approx(by_groups(y, of) ** 2, rel=0.25)


def test_two_runs_are_paired_by_group_and_their_audits_add_up():
    of, y, judged, rng = clustered()
    other, whole = np.where(rng.random(120) < 0.3, 1 - y, y), simple_random(np.ones(120, dtype=bool))
    first, second = (labels_of(v, judged, whole, groups=of.tolist()) for v in (y, other))
    assert compare_audited_runs(None, first, None, second).stderr == pytest.approx(by_groups(y - other, of))
    part = labels_of(y, judged, simple_random(np.arange(120) % 4 == 1), groups=of.tolist())
    for a, b in ((first, part), (part, first)):
        assert compare_audited_runs(None, a, None, b).stderr >= audited_rate(part).run_stderr


def test_labels_are_worth_more_with_a_good_judge_and_no_more_without():
    _, y, _, _ = clustered()
    design = simple_random(np.arange(120) % 3 == 1)
    alone, good = (audited_rate(labels_of(y, of, design)).n_effective for of in ([None] * 120, y))
    assert 0.8 * 40 < alone < 1.25 * 40
    assert good > 1.5 * 40


def test_intervals_are_students_on_the_logit_scale():
    """One stratum of 20 labels: 19 degrees of freedom, and two for what the least variance rests on."""
    y = np.array(([1.0] * 6 + [0.0] * 14) * 10)
    found = audited_rate(labels_of(y, [None] * 200, simple_random(np.arange(200) < 20)))
    half = student.ppf(0.975, 21) * found.run_stderr / (found.value * (1 - found.value))
    assert logit(found.run_interval) == pytest.approx(logit(found.value) + np.array([-half, half]))


def test_a_share_and_the_rest_are_equally_sure():
    """Supported and hallucinated answers add up to all where nobody declines, and so do the ends of their intervals."""
    labels = agreeing()
    n = len(labels.judged)
    ones, counted = np.tile([1.0, 1.0], (n, 1)), np.tile([0.0, 1.0], (n, 1))
    rate = audited_rate(labels)
    share = audited_sums(counted, ones, counted, ratio, labels)
    assert share.value == pytest.approx(1 - rate.value)
    for a, b in ((share.interval, rate.interval), (share.run_interval, rate.run_interval)):
        assert a == pytest.approx((1 - b[1], 1 - b[0]), abs=1e-6)


def test_a_share_of_nothing_is_as_sure_as_its_labels():
    labels = agreeing()
    n = len(labels.judged)
    counted, ones = np.tile([0.0, 1.0], (n, 1)), np.tile([1.0, 1.0], (n, 1))
    declined = audited_sums(counted, counted, ones, ratio, labels)
    weights = 1 / labels.design.probabilities[labels.design.drawn]
    low, high = wilson(0.0, weights.sum() ** 2 / (weights**2).sum(), 0.95)
    assert declined.value == pytest.approx(0.0, abs=1e-9)
    assert declined.run_interval == pytest.approx((low, high), abs=1e-6)
