"""Paired comparisons: two scores of the same answers, two runs on the same documents."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from hedge_tasks.statistics import auroc, compare_runs, compare_scores
from hedge_tasks.statistics.base import UndefinedStatistic

NAN = math.nan


def kernel(scores, labels):
    positive, negative = scores[labels == 1], scores[labels == 0]
    return (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)


def delong_test(a, b, labels):
    """DeLong et al. 1988 with covariance matrices, as printed: L S L' for the contrast (1, -1)."""
    wins = [kernel(scores, labels) for scores in (a, b)]
    s10 = np.cov([w.mean(1) for w in wins])
    s01 = np.cov([w.mean(0) for w in wins])
    s = s10 / wins[0].shape[0] + s01 / wins[0].shape[1]
    difference = wins[0].mean() - wins[1].mean()
    stderr = math.sqrt(s[0, 0] + s[1, 1] - 2 * s[0, 1])
    return difference, stderr, 2 * norm.sf(abs(difference / stderr))


def two_scores(n=120, seed=0, decimals=1, gain=0.5):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(int)
    shared = rng.normal(size=n) + labels
    return (shared + rng.normal(size=n)).round(decimals), (shared + gain * labels).round(decimals), labels


# --- two scores of the same answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("decimals", [3, 0])
@pytest.mark.parametrize("seed", range(5))
def test_the_paired_test_equals_delongs_covariance_formula(seed, decimals):
    a, b, labels = two_scores(seed=seed, decimals=decimals)
    difference, stderr, p_value = delong_test(a, b, labels)
    result = compare_scores(a, b, labels)
    assert result.difference == pytest.approx(difference, abs=1e-12)
    assert result.stderr == pytest.approx(stderr, rel=1e-9)
    assert result.p_value == pytest.approx(p_value, rel=1e-9)
    assert result.interval == pytest.approx((difference - 1.959964 * stderr, difference + 1.959964 * stderr))
    assert (result.a, result.b) == (auroc(a, labels), auroc(b, labels))


def test_few_groups_are_tested_with_students_distribution():
    a, b, labels = two_scores(60, seed=4)
    result = compare_scores(a, b, labels, groups=[i // 10 for i in range(60)])
    shares = [np.bincount(np.arange(60) // 10, labels == c) / (labels == c).sum() for c in (0, 1)]
    degrees = 4 / (sum(shares) ** 2).sum() - 1
    assert 4 < degrees < 5  # six groups of about as many of either class
    half = student.ppf(0.975, degrees) * result.stderr
    assert result.interval == pytest.approx((result.difference - half, result.difference + half))
    assert result.p_value == pytest.approx(2 * student.sf(abs(result.difference) / result.stderr, degrees))


def test_by_group_each_group_is_deleted_in_turn():
    a, b, labels = two_scores(60, seed=5)
    groups, others = np.arange(60) // 4, np.roll(labels, 1)

    def deviations(first, second):
        whole = auroc(a, first) - auroc(b, second)
        kept = [groups != g for g in range(15)]
        return np.array([auroc(a[k], first[k]) - auroc(b[k], second[k]) - whole for k in kept])

    for result, wanted in (
        (compare_scores(a, b, labels, groups=groups.tolist()), deviations(labels, labels)),
        (compare_runs(a, labels, b, others, groups=groups.tolist()), deviations(labels, others)),
    ):
        assert result.stderr == pytest.approx(math.sqrt(14 / 15 * (wanted**2).sum()), rel=1e-9)


def test_two_perfect_scores_are_not_compared_with_certainty():
    labels, one, other = [0] * 5 + [1] * 5, list(range(10)), [4, 3, 2, 1, 0, 9, 8, 7, 6, 5]
    for result in (
        compare_scores(one, other, labels),
        compare_scores(one, other, labels, groups=list("abcdeabcde")),
        compare_runs(one, labels, other, labels),
    ):
        assert (result.difference, result.stderr, result.p_value, result.interval) == (0.0, None, None, None)
        assert "perfect separation" in result.reason


# --- what is undefined or wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (compare_scores([1, 2], [2, 1], [1, 1]), "every document is labelled hallucinated (2 documents)"),
        (compare_scores([1, NAN], [2, 1], [0, 1]), "a: the score of 1 of 2 documents is missing (NaN)"),
        (
            compare_runs([1, 2] * 5, [0, 1] * 5, [2, 1] * 5, [0] * 10),
            "b: no document is labelled hallucinated (10 documents)",
        ),
        (compare_runs([], [], [], []), "no documents"),
        (
            compare_runs([1, 2], [1, 1], [2, 1], [0, 0]),
            "a: every document is labelled hallucinated (2 documents); b: no",
        ),
    ],
)
def test_what_is_undefined_has_a_reason(result, reason):
    assert (result.difference, result.stderr, result.interval, result.p_value) == (None,) * 4
    assert result.reason.startswith(reason)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_scores([1, 2], [1], [0, 1]), "differ in length"),
        (lambda: compare_runs([1, 2], [0, 1], [1], [0]), "two runs differ in length: 2 and 1"),
        (lambda: compare_scores([1, 2], [1, 2], [0, 1], confidence=2), "between 0 and 1"),
        (lambda: compare_scores([1, 2], [1, 2], [0, 1], groups=["a"]), "groups has length 1"),
    ],
)
def test_a_mistake_of_the_caller_is_an_error(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert not isinstance(caught.value, UndefinedStatistic)
