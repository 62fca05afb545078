"""Paired comparisons: two scores of the same answers, two runs on the same documents."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from test_statistics_intervals import kernel

from hedge_tasks.statistics import auroc, compare_runs, compare_scores


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


def test_two_perfect_scores_are_not_compared_with_certainty():
    labels, one, other = [0] * 5 + [1] * 5, list(range(10)), [4, 3, 2, 1, 0, 9, 8, 7, 6, 5]
    for result in (
        compare_scores(one, other, labels),
        compare_scores(one, other, labels, groups=list("abcdeabcde")),
        compare_runs(one, labels, other, labels),
    ):
        assert (result.difference, result.stderr, result.p_value, result.interval) == (0.0, None, None, None)
        assert "perfect separation" in result.reason
