"""Statistics by their definitions on few documents, what must not change them, and the borders of their thresholds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import pytest

from hedge_tasks.statistics import (
    area_under_risk_coverage,
    auroc,
    compare_rates,
    compare_runs,
    compare_scores,
    compare_sums,
    compare_within,
    estimate_auroc,
    estimate_mean,
    estimate_of_sums,
    estimate_rate,
    newcombe_interval,
    ratio,
    stratified_auroc,
)

RNG = np.random.default_rng(0)
FEW = [RNG.integers(0, 4, n).astype(float) for n in (2, 5, 8) for _ in range(3)]
"""Scores with ties."""


def both_classes(n: int) -> list[np.ndarray]:
    return [np.array(labels) for labels in product((0, 1), repeat=n) if 0 < sum(labels) < n]


# --- definitions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", FEW, ids=str)
def test_auroc_is_the_share_of_pairs_in_order(x: np.ndarray) -> None:
    for y in both_classes(len(x)):
        pairs = [(a > b) + (a == b) / 2 for a in x[y == 1] for b in x[y == 0]]
        assert auroc(x, y) == pytest.approx(np.mean(pairs), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_area_is_the_mean_over_all_orders_of_ties(n: int) -> None:
    x, y = np.array([0.0, 1, 1, 1, 2, 2])[:n], np.array([0, 1, 0, 1, 0, 1])[:n]
    orders = [order for order in permutations(range(n)) if (np.diff(x[list(order)]) >= 0).all()]
    of_orders = [np.mean(np.cumsum(y[list(o)]) / np.arange(1, n + 1)) for o in orders]
    assert area_under_risk_coverage(x, 1 - y) == pytest.approx(np.mean(of_orders), abs=1e-12)


# --- what changes nothing ---------------------------------------------------------------------------------------------

N = 40
X, Z = RNG.normal(size=N).round(1), RNG.normal(size=N).round(1)
Y = (X + RNG.normal(size=N) > 0).astype(int)
W = (Z + RNG.normal(size=N) > 0).astype(int)
KINDS = RNG.integers(0, 3, N)
GROUPS = RNG.permutation(np.arange(N) // 4)
Numbers = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], object]

GROUPED: dict[str, Numbers] = {
    "auroc": lambda x, z, y, w, k, g: estimate_auroc(x, y, groups=g.tolist()),
    "within": lambda x, z, y, w, k, g: stratified_auroc(x, y, k.tolist(), groups=g.tolist(), each=False),
    "scores": lambda x, z, y, w, k, g: compare_scores(x, z, y, groups=g.tolist()),
    "scores within": lambda x, z, y, w, k, g: compare_within(x, z, y, k.tolist(), groups=g.tolist()),
    "runs": lambda x, z, y, w, k, g: compare_runs(x, y, z, w, groups=g.tolist()),
    "rate": lambda x, z, y, w, k, g: estimate_rate(y, groups=g.tolist()),
    "rates": lambda x, z, y, w, k, g: compare_rates(y, w, groups=g.tolist()),
    "mean": lambda x, z, y, w, k, g: estimate_mean(x, g.tolist()),
    "sums": lambda x, z, y, w, k, g: estimate_of_sums(np.stack([y * w, w], axis=1), g.tolist(), ratio),
    "sums of two": lambda x, z, y, w, k, g: compare_sums(
        np.stack([y * w, w], axis=1), np.stack([y * w, y], axis=1), g.tolist(), ratio
    ),
}
ALONE: dict[str, Numbers] = {
    "auroc": lambda x, z, y, w, k, g: estimate_auroc(x, y),
    "within": lambda x, z, y, w, k, g: stratified_auroc(x, y, k.tolist(), each=False),
    "scores": lambda x, z, y, w, k, g: compare_scores(x, z, y),
    "scores within": lambda x, z, y, w, k, g: compare_within(x, z, y, k.tolist()),
    "runs": lambda x, z, y, w, k, g: compare_runs(x, y, z, w),
    "rates": lambda x, z, y, w, k, g: compare_rates(y, w),
}
CASES = [(f"{name}, {kind}", f) for kind, some in (("grouped", GROUPED), ("alone", ALONE)) for name, f in some.items()]


def numbers_of(result: object) -> np.ndarray:
    names = ("value", "difference", "stderr", "p_value")
    values = [getattr(result, name) for name in names if getattr(result, name, None) is not None]
    assert len(values) >= 2, result
    return np.array([*values, *result.interval], dtype=float)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "of"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_neither_order_nor_names_of_groups_nor_a_monotone_map_change_a_number(name: str, of: Numbers) -> None:
    base, order = numbers_of(of(X, Z, Y, W, KINDS, GROUPS)), RNG.permutation(N)
    assert numbers_of(of(*(c[order] for c in (X, Z, Y, W, KINDS, GROUPS)))) == pytest.approx(base, abs=1e-9)
    assert numbers_of(of(X, Z, Y, W, 9 - KINDS, 100 - GROUPS)) == pytest.approx(base, abs=1e-9)
    if name.split(",")[0] != "mean":
        assert numbers_of(of(np.exp(3 * X), Z**3, Y, W, KINDS, GROUPS)) == pytest.approx(base, abs=1e-9)


@pytest.mark.parametrize("name", GROUPED)
def test_documents_that_are_twice_in_their_group_count_once(name: str) -> None:
    """Value, error and test are those of the groups; an interval of a share is at most as sure as its documents."""
    base = GROUPED[name](X, Z, Y, W, KINDS, GROUPS)
    twice = GROUPED[name](*(np.concatenate([c, c]) for c in (X, Z, Y, W, KINDS, GROUPS)))
    assert numbers_of(twice)[:-2] == pytest.approx(numbers_of(base)[:-2], abs=1e-9)


@pytest.mark.parametrize(("name", "of"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_swapped_sides_have_the_other_sign(name: str, of: Numbers) -> None:
    kind = name.split(",")[0]
    if kind in {"scores", "scores within"}:
        a, b = of(X, Z, Y, W, KINDS, GROUPS), of(Z, X, Y, W, KINDS, GROUPS)
    elif kind in {"runs", "rates"}:
        a, b = of(X, Z, Y, W, KINDS, GROUPS), of(Z, X, W, Y, KINDS, GROUPS)
    else:
        return
    assert (a.difference, a.p_value) == pytest.approx((-b.difference, b.p_value), abs=1e-9)  # type: ignore[attr-defined]


# --- borders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rarer", "is_there"), [(4, False), (5, True)])
@pytest.mark.parametrize("flipped", [False, True])
def test_five_of_the_rarer_class_are_enough(rarer: int, is_there: bool, flipped: bool) -> None:
    y = np.array([1] * rarer + [0] * 20)
    y = 1 - y if flipped else y
    x = RNG.normal(size=len(y))
    assert estimate_auroc(x, y).defined == is_there
    assert (compare_scores(x, -x, y).difference is not None) == is_there
    assert stratified_auroc(x, y, ["a"] * len(y), each=False).defined == is_there


@pytest.mark.parametrize(("of_one", "is_there"), [(5, True), (6, False)])
def test_a_group_may_have_half_of_a_class(of_one: int, is_there: bool) -> None:
    y = np.array([1] * 10 + [0] * 10)
    groups = [0] * of_one + list(range(1, 11 - of_one)) + list(range(20, 30))
    x = RNG.normal(size=20)
    assert (estimate_auroc(x, y, groups=groups).stderr is not None) == is_there
    assert (compare_scores(x, x**2, y, groups=groups).p_value is not None) == is_there


@pytest.mark.parametrize(("rarer", "method"), [(29, "Newcombe"), (30, "logit")])
def test_below_thirty_of_a_class_the_interval_is_newcombes(rarer: int, method: str) -> None:
    y = np.array([1] * rarer + [0] * 50)
    estimate = estimate_auroc(RNG.normal(size=len(y)) + y, y)
    assert method in str(estimate.method)
    newcombe = newcombe_interval(estimate.value or 0.0, rarer, 50)
    assert (estimate.interval == pytest.approx(newcombe)) == (method == "Newcombe")


@pytest.mark.parametrize("value", [0.0, 0.3, 0.81, 1.0])
def test_newcombes_limits_are_as_far_away_as_their_own_error(value: float) -> None:
    p, n = 8, 13
    for limit in newcombe_interval(value, p, n):
        if 0 < limit < 1:
            q1, q2 = limit / (2 - limit), 2 * limit**2 / (1 + limit)  # Hanley & McNeil 1982
            more = ((p + n) / 2 - 1) * (q1 - limit**2 + q2 - limit**2)
            variance = (limit * (1 - limit) + more) / (p * n)
            assert abs(value - limit) == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-5)
    low, high = newcombe_interval(1 - value, p, n)
    assert newcombe_interval(value, p, n) == pytest.approx((1 - high, 1 - low), abs=1e-6)
