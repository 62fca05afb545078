"""Agreement of judges, and rates with Wilson intervals."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binomtest, norm
from scipy.stats import t as student
from sklearn.metrics import cohen_kappa_score

from hedge_tasks.statistics import (
    cohen_kappa,
    estimate_rate,
    krippendorff_alpha,
    percent_agreement,
    wilson_interval,
)
from hedge_tasks.statistics.agreement import weighted_kappa
from hedge_tasks.statistics.base import wilson

NAN = math.nan
KINDS = ["supported", "hallucinated", "partly"]


def ratings(n=60, n_raters=3, seed=0, n_kinds=2, missing=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_kinds, size=n)
    rows = [np.where(rng.random(n) < 0.7, truth, rng.integers(0, n_kinds, size=n)) for _ in range(n_raters)]
    return [[None if rng.random() < missing else int(v) for v in row] for row in rows]


# --- values ----------------------------------------------------------------------------------------------------------


def test_alpha_with_missing_ratings_is_that_of_the_krippendorff_package():
    krippendorff = pytest.importorskip("krippendorff")
    rows = ratings(n_raters=4, n_kinds=3, missing=0.3)
    data = [[NAN if v is None else v for v in row] for row in rows]
    expected = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    assert krippendorff_alpha(rows).value == pytest.approx(expected)
    assert krippendorff_alpha(data).value == pytest.approx(expected)


def pairs_of(items):
    """Whether any two judges agree, item by item."""
    return [[a == b for a, b in permutations([v for v in item if v is not None], 2)] for item in items]


def percent_by_hand(items):
    return np.mean([np.mean(pairs) for pairs in pairs_of(items) if pairs])


def alpha_by_hand(items):
    """Krippendorff 2011: 1 less observed over expected disagreement, of pairs within items and of all ratings."""
    items = [rated for item in items if len(rated := [v for v in item if v is not None]) > 1]
    unlike = [np.mean(np.logical_not(pairs)) * len(item) for item, pairs in zip(items, pairs_of(items), strict=True)]
    rated = [v for item in items for v in item]
    return 1 - sum(unlike) / len(rated) / np.mean([a != b for a, b in permutations(rated, 2)])


def kappa_by_hand(items):
    return cohen_kappa_score(*zip(*items, strict=True))


@pytest.mark.parametrize("by_group", [False, True])
@pytest.mark.parametrize(
    ("statistic", "by_hand", "n_raters", "missing"),
    [
        (percent_agreement, percent_by_hand, 3, 0.3),
        (krippendorff_alpha, alpha_by_hand, 3, 0.3),
        (lambda rows, **options: cohen_kappa(*rows, **options), kappa_by_hand, 2, 0.0),
    ],
)
def test_errors_leave_out_each_item_or_group(statistic, by_hand, n_raters, missing, by_group):
    rows = ratings(40, n_raters, n_kinds=3, missing=missing)
    rows = [[None if v is None else KINDS[v] for v in row] for row in rows]
    groups = [i // 3 if by_group else i for i in range(40)]
    items = list(zip(*rows, strict=True))
    found = statistic(rows, groups=groups if by_group else None, confidence=0.9)
    counted = [g for g, item in zip(groups, items, strict=True) if sum(v is not None for v in item) > 1]
    left = [by_hand([item for item, h in zip(items, groups, strict=True) if h != g]) for g in set(counted)]
    n, value = len(left), by_hand(items)
    assert (found.n, found.n_groups, found.n_raters) == (len(counted), n * by_group, n_raters)
    stderr = math.sqrt((n - 1) / n * ((np.array(left) - value) ** 2).sum())
    assert (found.value, found.stderr) == pytest.approx((value, stderr))
    half = student.ppf(0.95, n - 1) * stderr
    assert found.interval == pytest.approx((max(-1, value - half), min(1, value + half)))


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_weighted_kappa_of_a_table_is_scikit_learns_of_its_items(weights):
    a, b = ratings(50, 2, n_kinds=4)
    table = np.zeros((4, 4))
    np.add.at(table, (a, b), 1)
    assert weighted_kappa(table, weights) == pytest.approx(cohen_kappa_score(a, b, weights=weights))
    assert weighted_kappa(np.diag([0, 3])) is None
    for wrong, message in ((([[1, 2]], weights), "square"), (([1], weights), "square"), ((table, "cubic"), "cubic")):
        with pytest.raises(ValueError, match=message):
            weighted_kappa(*wrong)


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
