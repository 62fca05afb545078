"""Rejection and risk-coverage curves, AURC, PRR, AUG, average precision; calibration."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import auc, average_precision_score

from hedge_tasks.statistics import (
    UndefinedStatistic,
    area_under_quality,
    area_under_risk_coverage,
    average_precision,
    estimate_calibration,
    estimate_curves,
    prediction_rejection_ratio,
    rejection_curve,
    risk_coverage_curve,
)
from hedge_tasks.statistics.calibration import _folds

NAN = math.nan


def untied(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.random(n)


def lm_polygraph_area(estimator, target, max_rejection=1.0):
    """`PredictionRejectionArea` of lm-polygraph: mean of the cumulative means, most certain first."""
    target = (target - target.min()) / np.ptp(target)
    n, rejected = len(target), int(max_rejection * len(target))
    cumulative = np.cumsum(target[np.argsort(estimator)])[-rejected:]
    return np.sum(cumulative / np.arange(n - rejected + 1, n + 1)) / rejected


def lm_polygraph_prr(estimator, target, max_rejection=1.0, shuffles=4000):
    rng = np.random.default_rng(0)
    random = np.mean([lm_polygraph_area(rng.permutation(len(target)), target, max_rejection) for _ in range(shuffles)])
    oracle = lm_polygraph_area(-target, target, max_rejection)
    return (lm_polygraph_area(estimator, target, max_rejection) - random) / (oracle - random)


def vase_aug(scores, quality, resolution=100):
    """`compute_aug` of the VASE paper's code, with shares as whole numbers."""
    in_order = quality[np.argsort(scores)]
    kept = [i * len(scores) // resolution for i in range(resolution + 1)]
    return auc(np.linspace(0, 1, resolution + 1), [in_order[:k].mean() if k else 0.0 for k in kept])


def over_all_orders(scores, quality, statistic):
    """Mean of a statistic over all orders of the documents that sort the scores: the brute force of ties."""
    values = []
    for order in permutations(range(len(scores))):
        in_order = np.array(scores)[list(order)]
        if (np.diff(in_order) >= 0).all():
            values.append(statistic(np.arange(len(scores)), np.array(quality, dtype=float)[list(order)]))
    return np.mean(values, axis=0)


# --- curves ----------------------------------------------------------------------------------------------------------


def test_curves_by_hand():
    scores, quality = [0.3, 0.1, 0.2, 0.4], [1, 1, 0, 0.5]
    risk = risk_coverage_curve(scores, quality)
    assert risk.x.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk.y == pytest.approx([0, 1 / 2, 1 / 3, 1.5 / 4])
    kept = rejection_curve(scores, quality)
    assert kept.x.tolist() == [0.0, 0.25, 0.5, 0.75]
    assert kept.y == pytest.approx([2.5 / 4, 2 / 3, 1 / 2, 1])
    assert area_under_risk_coverage(scores, quality) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1.5 / 4) / 4)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.3, 1.0])), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_ties_count_as_the_mean_over_all_their_orders(rows):
    scores, quality = zip(*rows, strict=True)
    means = over_all_orders(scores, quality, lambda x, q: np.cumsum(q) / np.arange(1, len(q) + 1))
    assert risk_coverage_curve(scores, quality).y == pytest.approx(1 - means)
    assert rejection_curve(scores, quality).y == pytest.approx(means[::-1])
    assert area_under_risk_coverage(scores, quality) == pytest.approx(1 - means.mean())
    aug = over_all_orders(scores, quality, lambda x, q: vase_aug(x, q, 7))
    assert area_under_quality(scores, quality, resolution=7) == pytest.approx(aug)
    if np.ptp(quality) > 0:
        prr = over_all_orders(scores, quality, lambda x, q: prediction_rejection_ratio(x, q))
        assert prediction_rejection_ratio(scores, quality) == pytest.approx(prr)


@pytest.mark.parametrize("max_rejection", [1.0, 0.5, 0.33])
@pytest.mark.parametrize("seed", range(3))
def test_prr_equals_lm_polygraphs(seed, max_rejection):
    scores, quality = untied(seed=seed)
    found = prediction_rejection_ratio(scores, quality, max_rejection=max_rejection)
    assert found == pytest.approx(lm_polygraph_prr(scores, quality, max_rejection), abs=0.02)


def test_prr_is_one_for_the_oracle_and_zero_for_a_constant_score():
    _, quality = untied()
    assert prediction_rejection_ratio(-quality, quality) == pytest.approx(1)
    assert prediction_rejection_ratio(np.ones(60), quality) == pytest.approx(0, abs=1e-12)
    assert prediction_rejection_ratio(quality, quality) < -0.5
    labels = quality.round()
    assert prediction_rejection_ratio(-labels, labels) == pytest.approx(1)


def test_prr_does_not_depend_on_scale_of_scores_or_quality():
    scores, quality = untied()
    first = prediction_rejection_ratio(scores, quality)
    assert prediction_rejection_ratio(np.exp(scores), quality / 2 + 0.25) == pytest.approx(first)


@pytest.mark.parametrize("n", [7, 60, 100, 451])
def test_aug_equals_the_vase_code(n):
    scores, quality = untied(n, seed=n)
    assert area_under_quality(scores, quality) == pytest.approx(vase_aug(scores, quality))
    assert area_under_quality(scores, quality, resolution=10) == pytest.approx(vase_aug(scores, quality, 10))


def test_aug_of_flawless_answers_lacks_only_the_empty_share():
    assert area_under_quality(range(200), np.ones(200)) == pytest.approx(0.995)


@pytest.mark.parametrize("decimals", [2, 0])
def test_average_precision_is_scikit_learns(decimals):
    rng = np.random.default_rng(0)
    labels = (rng.random(80) < 0.3).astype(int)
    scores = (rng.normal(size=80) + labels).round(decimals)
    assert average_precision(scores, labels) == pytest.approx(average_precision_score(labels, scores), rel=1e-12)
    assert average_precision(np.where(scores > 2, np.inf, scores), labels) > 0.3
    assert average_precision(np.zeros(80), labels) == pytest.approx(labels.mean())


# --- intervals -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_equal_resampling_one_by_one(grouped):
    rng = np.random.default_rng(2)
    n = 90
    labels = (rng.random(n) < 0.4).astype(int)
    scores, groups = (rng.normal(size=n) + labels).round(1), (np.arange(n) // 3).tolist()
    members = [np.flatnonzero(np.array(groups) == g) for g in range(30)] if grouped else [[i] for i in range(n)]
    values = {name: [] for name in ("auprc", "aurc", "prr", "prr_50", "aug")}
    for _ in range(600):
        chosen = np.concatenate([members[i] for i in rng.integers(0, len(members), size=len(members))])
        x, q = scores[chosen], 1.0 - labels[chosen]
        values["auprc"].append(average_precision_score(1 - q, x))
        values["aurc"].append(area_under_risk_coverage(x, q))
        values["prr"].append(prediction_rejection_ratio(x, q))
        values["prr_50"].append(prediction_rejection_ratio(x, q, max_rejection=0.5))
        values["aug"].append(area_under_quality(x, q))
    found = estimate_curves(scores, 1 - labels, groups=groups if grouped else None, n_resamples=1500)
    assert list(found) == list(values)
    assert found["auprc"].value == pytest.approx(average_precision_score(labels, scores))
    for name, estimate in found.items():
        assert estimate.stderr == pytest.approx(np.std(values[name]), rel=0.15)
        spread = 6 * estimate.stderr / math.sqrt(600)
        assert np.mean(values[name]) == pytest.approx(np.mean(estimate.interval), abs=spread + 0.02)
        low, high = estimate.interval
        assert np.mean((np.array(values[name]) >= low) & (np.array(values[name]) <= high)) > 0.92
        assert (estimate.n, estimate.n_positive) == (n, labels.sum())


def test_neither_order_nor_names_of_groups_play_a_role():
    scores, quality = untied(60)
    scores, groups = scores.round(0), [i // 4 for i in range(60)]
    order = np.random.default_rng(1).permutation(60)
    renamed = [f"image {977 * groups[i] % 1000}" for i in order]
    first = estimate_curves(scores, quality.round(1), groups=groups, n_resamples=60)
    again = estimate_curves(scores[order], quality.round(1)[order], groups=renamed, n_resamples=60)
    for name, estimate in first.items():
        assert again[name].value == (None if estimate.value is None else pytest.approx(estimate.value))
        if estimate.interval:
            assert again[name].interval == pytest.approx(estimate.interval)
    assert first["auprc"].value is None
    assert "degree" in first["auprc"].reason


@pytest.mark.parametrize(
    ("scores", "quality", "name", "reason"),
    [
        ([], [], "aurc", "no documents"),
        ([1, NAN], [0, 1], "aug", "score of 1 of 2 documents is missing"),
        ([1, 2], [NAN, 1], "prr", "quality of 1 of 2 documents is missing"),
        ([1, 2], [1, 1], "prr", "all answers have the same quality"),
        ([1, 2], [1, 1], "auprc", "no document is labelled hallucinated"),
        ([1], [0], "prr_50", "no answer can be rejected"),
    ],
)
def test_what_is_undefined_has_a_reason(scores, quality, name, reason):
    estimate = estimate_curves(scores, quality, n_resamples=5)[name]
    assert (estimate.value, estimate.stderr) == (None, None)
    assert reason in estimate.reason


def test_what_never_varies_has_no_stderr():
    estimate = estimate_curves([1, 2, 3], [1, 1, 1], n_resamples=20)["aurc"]
    assert (estimate.value, estimate.stderr, estimate.interval) == (0.0, None, None)
    assert "same in every resample" in estimate.reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection_curve([1, 2], [0]), "differ in length"),
        (lambda: rejection_curve([1, 2], [0, 1.5]), r"quality\[1\] is 1.5"),
        (lambda: area_under_quality([1], [1], resolution=0), "at least 1"),
        (lambda: prediction_rejection_ratio([1, 2], [0, 1], max_rejection=0), r"\(0, 1\], got 0"),
        (lambda: average_precision([1, 2], [0, 0.5]), "labels must be 0 or 1"),
    ],
)
def test_a_mistake_of_the_caller_is_an_error(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert not isinstance(caught.value, UndefinedStatistic)


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


def test_every_document_is_predicted_by_a_fit_to_the_other_folds():
    scores, labels, groups = judged(90)
    levels = np.unique(scores, return_inverse=True)[1]
    folds = _folds(levels, labels, np.array(groups), 3, 0)
    for fold in range(3):
        assert labels[folds == fold].mean() == pytest.approx(labels.mean(), abs=0.1)
        assert (folds == fold).sum() == pytest.approx(30, abs=3)
    for group in set(groups):
        assert len(set(folds[np.array(groups) == group])) == 1
    expected = np.empty(90)
    for fold in range(3):
        fit = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        fit.fit(levels[folds != fold], labels[folds != fold])
        expected[folds == fold] = fit.predict(levels[folds == fold])
    found = estimate_calibration(scores, labels, groups=groups, n_folds=3)
    assert found.probabilities == pytest.approx(expected)


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
        ([1, 2, 3], [0, 0, 1], None, "one of the classes occurs in a single document"),
        ([1, 2, 3, 4], [0, 1, 0, 1], ["a"] * 4, "one of the classes occurs in a single group"),
    ],
)
def test_an_undefined_calibration_has_a_reason(scores, labels, groups, reason):
    found = estimate_calibration(scores, labels, groups=groups)
    assert (found.ece, found.brier, found.bins, found.n_folds) == (None, None, (), 0)
    assert reason in found.reason


def test_calibration_options_are_checked():
    for options in ({"n_folds": 1}, {"n_bins": 0}, {"confidence": 1}):
        with pytest.raises(ValueError, match=r"n_folds|confidence"):
            estimate_calibration([1, 2], [0, 1], **options)
