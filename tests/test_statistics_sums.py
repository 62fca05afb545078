"""Functions of sums over documents in groups: against other estimators, by simulation, and at their edges."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm, ttest_rel
from scipy.stats import t as student

from hedge_tasks.statistics import compare_sums, estimate_of_sums, estimate_rate, ratio
from hedge_tasks.statistics.base import wilson
from hedge_tasks.suites.medhallu.measures import of_confusion

F1 = partial(of_confusion, "f1")


def test_an_interval_is_wilsons_of_the_effective_size_and_in_any_unit() -> None:
    parts = np.column_stack([np.random.default_rng(4).random(24) < 0.7, np.ones(24)])
    names = np.repeat(np.arange(12), 2).tolist()
    found = estimate_of_sums(parts, names, ratio)
    rarity = (norm.ppf(0.975) / student.ppf(0.975, 11)) ** 2
    share = found.value or 0.0
    effective = min(24, share * (1 - share) / (found.stderr or 0.0) ** 2) * rarity
    assert found.interval == pytest.approx(wilson(share, effective, 0.95))
    other = np.column_stack([np.roll(parts[:, 0], 1), np.ones(24)])
    pair = compare_sums(parts, other, names, ratio)
    half = student.ppf(0.975, 11) * (pair.stderr or 0.0)
    difference = pair.difference or 0.0
    assert pair.interval == pytest.approx((difference - half, difference + half))

    def turned(sums: np.ndarray) -> np.ndarray:
        return 20 - 50 * ratio(sums)

    again = estimate_of_sums(parts, names, turned, bounds=(-30.0, 20.0))
    assert (again.value, again.stderr) == pytest.approx((20 - 50 * share, 50 * (found.stderr or 0.0)))
    assert again.interval == pytest.approx(tuple(20 - 50 * limit for limit in reversed(found.interval or ())))
    nearly, nothing = (np.array([[1, 1], [1, 1], [0, 1]]) * [i, 1] for i in (1, 0))
    assert (compare_sums(nothing, nearly, range(3), turned, bounds=(-30.0, 20.0)).interval or ())[1] == 50
    assert (compare_sums(nearly, nothing, range(3), turned, bounds=(-30.0, 20.0)).interval or ())[0] == -50


def test_where_nothing_varies_every_group_counts_once() -> None:
    perfect = estimate_of_sums(np.eye(4)[[0, 3] * 20], list(np.repeat(range(20), 2)), F1)
    assert (perfect.value, perfect.stderr) == (1.0, 0.0)
    assert perfect.interval == estimate_rate([1] * 20).interval


def test_a_difference_of_means_is_students_paired_test() -> None:
    rng = np.random.default_rng(9)
    a, b = rng.random(30), rng.random(30)
    sides = (np.column_stack([x, np.ones(30)]) for x in (a, b))
    found = compare_sums(*sides, range(30), ratio)
    assert found.p_value == pytest.approx(ttest_rel(a, b).pvalue, rel=1e-5)
    assert found.difference == pytest.approx((a - b).mean())


def test_the_same_twice_and_one_side_without_documents() -> None:
    same = np.eye(4)[[0, 1, 2, 3]]
    assert compare_sums(same, same, range(4), F1).p_value == 1.0
    one = np.ones((4, 2))
    nothing = compare_sums(one, np.zeros((4, 2)), range(4), ratio)
    assert (nothing.a, nothing.b, nothing.difference) == (1.0, None, None)
    assert nothing.reason == "b: no document counts for it"
    apart = compare_sums(one, one * [0, 1], range(4), ratio)
    assert (apart.difference, apart.p_value) == (1.0, None)
    assert "deviates" in str(apart.reason)
