"""Agreement of judges, and rates with Wilson intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from sklearn.metrics import cohen_kappa_score

from hedge_tasks.statistics import (
    cohen_kappa,
    estimate_rate,
    krippendorff_alpha,
    percent_agreement,
    wilson_interval,
)
from hedge_tasks.statistics.base import wilson

NAN = math.nan
KINDS = ["supported", "hallucinated", "partly"]


def ratings(n=60, n_raters=3, seed=0, n_kinds=2, missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_kinds, size=n)
    rows = [np.where(rng.random(n) < 0.7, truth, rng.integers(0, n_kinds, size=n)) for _ in range(n_raters)]
    return [[None if rng.random() < missing else int(v) for v in row] for row in rows]


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kinds", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_cohens_kappa_is_scikit_learns(seed, n_kinds):
    a, b = ratings(seed=seed, n_raters=2, n_kinds=n_kinds)
    expected = cohen_kappa_score(a, b)
    assert cohen_kappa(a, b).value == pytest.approx(expected)
    words = [[KINDS[v] for v in row] for row in (a, b)]
    assert cohen_kappa(*words).value == pytest.approx(expected)


def test_krippendorffs_alpha_of_the_published_example():
    # Krippendorff 2011, section C: four observers, twelve units, missing values; alpha = 0.743.
    rows = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    found = krippendorff_alpha(rows)
    assert found.value == pytest.approx(0.743, abs=0.0005)
    assert (found.n, found.n_raters) == (11, 4)


def test_alpha_with_missing_ratings_is_that_of_the_krippendorff_package():
    krippendorff = pytest.importorskip("krippendorff")
    rows = ratings(n_raters=4, n_kinds=3, missing=0.3)
    data = [[NAN if v is None else v for v in row] for row in rows]
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    assert krippendorff_alpha(rows).value == pytest.approx(expected)
    assert krippendorff_alpha(data).value == pytest.approx(expected)


# --- intervals -------------------------------------------------------------------------------------------------------


def test_ratings_all_the_same_have_no_kappa():
    for found in (cohen_kappa([1, 1], [1, 1]), krippendorff_alpha([[0, 0]] * 3)):
        assert (found.value, found.interval) == (None, None)
        assert "all ratings are the same" in found.reason
    assert percent_agreement([[1, 1], [1, 1]]).value == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: percent_agreement([[1, 0]]), "at least two judges, got 1"),
        (lambda: cohen_kappa([1, 0], [1]), r"different numbers of items: \[2, 1\]"),
        (lambda: cohen_kappa([1, 0], [1, 1], groups=["a"]), "groups has length 1"),
    ],
)
def test_a_mistake_of_the_caller_is_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- rates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (10, 10), (1, 1), (3, 17), (120, 451)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_wilsons_interval_is_scipys(successes, n, confidence):
    expected = binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert wilson_interval(successes, n, confidence) == pytest.approx((expected.low, expected.high))
    rate = estimate_rate([1] * successes + [0] * (n - successes), confidence=confidence)
    assert rate.interval == wilson_interval(successes, n, confidence)
    assert rate.stderr == pytest.approx(math.sqrt(successes * (n - successes) / n**3))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.987, 1.0])
@pytest.mark.parametrize("n", [0.7, 3.2, 41.9])
def test_wilsons_interval_of_an_effective_sample_size_solves_its_equation(share, n):
    # Its ends are the proportions p at which the observed share is z standard errors sqrt(p (1 - p) / n) away.
    z = norm.ppf(0.975)
    for end in wilson(share, n, 0.95):
        assert 0 <= end <= 1
        assert (share - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / n, abs=1e-12)


def test_the_stderr_of_equal_groups_is_that_of_the_mean_of_their_shares():
    values = np.array([1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0])
    shares = values.reshape(4, 3).mean(axis=1)
    rate = estimate_rate(values, groups=[i // 3 for i in range(12)])
    assert rate.stderr == pytest.approx(shares.std(ddof=1) / 2)


def test_a_rate_of_zero_counts_groups():
    assert estimate_rate([0] * 20, groups=[i // 4 for i in range(20)]).interval == pytest.approx(wilson_interval(0, 5))


def test_an_undefined_rate_has_a_reason():
    assert estimate_rate([]).reason == "no documents"
    assert "1 of 2 documents is missing" in estimate_rate([1, NAN]).reason
    alone = estimate_rate([1, 0], groups=["a", "a"])
    assert (alone.value, alone.stderr, alone.interval) == (0.5, None, None)
    assert "single group" in alone.reason
    for call in (lambda: estimate_rate([2]), lambda: wilson_interval(3, 2), lambda: wilson_interval(0, 0)):
        with pytest.raises(ValueError, match=r"0 or 1|successes"):
            call()
