"""Numbers made of sums over documents (an F1, a ratio of counts, a mean of several rates), by groups of documents.

Everything follows from what each group adds to the sums, without resampling: every machine gets the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import (
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    check_confidence,
    codes_of,
    quantile_of,
    two_sided_p,
    wilson,
)
from hedge_tasks.statistics.means import clustered_spread
from hedge_tasks.statistics.paired import Comparison, at_first

Statistic = Callable[[FloatArray], FloatArray]
"""Sums, shape `(m, ...)`, to values, shape `(m,)`; nan where it is undefined. Sums twice as large give the same."""

_STEP = 1e-5
"""Of the derivative, relative to a group's share: its error is quadratic in it, and rounding takes 1e-11."""

_SCALE = 2.0**20
"""Counts are made large first, so that a statistic that guards against dividing by less than 1 is not disturbed."""

_NO_VARIATION = 1e-9
"""Spreads below this are rounding of a derivative that is 0."""


def estimate_of_sums(
    parts: npt.ArrayLike,
    groups: Sequence[Hashable],
    statistic: Statistic,
    *,
    bounds: Interval = (0.0, 1.0),
    confidence: float = 0.95,
) -> Number:
    r"""A function of sums over documents, with the standard error between :math:`G` groups of them.

    .. math::
        \mathrm{SE}^2 = \frac{G}{G - 1} \sum_g c_g^2, \qquad c_g = \frac{d}{d\varepsilon} f(T + \varepsilon t_g)

    where :math:`t_g` is what a group adds to the sums :math:`T` (the infinitesimal jackknife, or delta method, over
    groups: Efron 1982; for a mean it is `estimate_mean`'s). The interval is Wilson's with the effective sample size
    :math:`p (1 - p) / \mathrm{SE}^2`, at most what all documents count together (their number, or that of the objects
    in them), times :math:`(z / t_{G-1})^2` for few groups (Korn & Graubard 1998). Where no group deviates from the
    others every group counts once: a number in [0, 1] with mean :math:`p` varies by at most :math:`p (1 - p)`.

    Args:
        parts: what each document adds to the sums, shape `(n, ...)`; one that does not count adds zeros.
        groups: group of each document, length `n`.
        statistic: of the sums.
        bounds: least and greatest possible value.
        confidence: level of the interval, in (0, 1).

    Example:
        >>> of_groups = estimate_of_sums([[1, 1], [0, 1], [1, 1], [1, 1]], "aabb", ratio)
        >>> of_groups.value, round(of_groups.stderr, 6), of_groups.n_groups
        (0.75, 0.25, 2)
    """
    check_confidence(confidence)
    counted, codes, _ = _counted(parts, groups)
    n, n_groups = len(counted), len(np.unique(codes))
    value = _value(counted, statistic)
    if value is None:
        return Number(None, n=n, n_groups=n_groups, reason="no document counts for it")
    stderr = _spread(_influences(counted, codes, statistic), np.arange(n_groups))
    if stderr is None:
        return Number(value, n=n, n_groups=n_groups, reason="no standard error: all documents are in a single group")
    low, high = bounds
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    scaled = stderr / (high - low)
    units = float(counted.reshape(n, -1).max(axis=1).sum())
    effective = _effective(share, scaled, units, n_groups, confidence)
    of_share = wilson(share, effective, confidence)
    interval = low + of_share[0] * (high - low), low + of_share[1] * (high - low)
    return Number(value, stderr=stderr, interval=interval, n=n, n_groups=n_groups)


def compare_sums(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    groups: Sequence[Hashable],
    statistic: Statistic,
    *,
    bounds: Interval = (0.0, 1.0),
    confidence: float = 0.95,
) -> Comparison:
    """Difference of a function of sums between two runs on the same documents, such as the F1 of two models.

    What a group adds to each side is paired: the standard error is that of the differences of both sides' influences,
    tested by Student's t with one degree of freedom less than there are groups.

    Args:
        a, b: what each document adds on either side, shape `(n, ...)`, in the same order.
        groups: group of each document, length `n`.
        statistic, bounds, confidence: as for `estimate_of_sums`.

    Example:
        >>> first, second = [[1, 1], [1, 1], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1], [0, 1]]
        >>> result = compare_sums(first, second, range(4), ratio)
        >>> result.difference, round(result.p_value, 2)
        (0.5, 0.18)
    """
    check_confidence(confidence)
    parts_a, parts_b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if parts_a.shape != parts_b.shape:
        raise ValueError(f"the two sides differ in shape: {parts_a.shape} and {parts_b.shape}")
    counted, codes, nonempty = _counted(np.stack([parts_a, parts_b], axis=1), groups)
    parts_a, parts_b = counted[:, 0], counted[:, 1]
    first, second = _value(parts_a, statistic), _value(parts_b, statistic)
    n, name = len(counted), "paired t-test between groups of documents"
    if first is None or second is None:
        missing = [side for side, value in (("a", first), ("b", second)) if value is None]
        reason = "; ".join(f"{side}: no document counts for it" for side in missing)
        return Comparison(first, second, None, None, None, None, n, name, reason)
    difference, n_groups = first - second, len(np.unique(codes))
    influences = _influences(parts_a, codes, statistic) - _influences(parts_b, codes, statistic)
    stderr = _spread(influences, np.arange(n_groups))
    if stderr == 0 and np.array_equal(_totals(parts_a, codes), _totals(parts_b, codes)):
        return Comparison(first, second, difference, 0.0, (0.0, 0.0), 1.0, n, name)
    if not stderr:
        why = "all documents are in a single group" if stderr is None else "no group deviates from the others"
        return Comparison(first, second, difference, None, None, None, n, name, f"no standard error: {why}")
    interval, p_value = _tested(difference, stderr, n_groups - 1, bounds[1] - bounds[0], confidence)
    deviations = np.zeros(len(nonempty))
    deviations[nonempty] = at_first(influences, codes)
    return Comparison(first, second, difference, stderr, interval, p_value, n, name, deviations=deviations)


def _tested(difference: float, stderr: float, degrees: int, width: float, confidence: float) -> tuple[Interval, float]:
    """Student's interval of a difference, no wider than it can be, and the two-sided p-value."""
    half = quantile_of(confidence, degrees) * stderr
    interval = max(-width, difference - half), min(width, difference + half)
    return interval, two_sided_p(abs(difference) / stderr, degrees)


def _value(parts: FloatArray, statistic: Statistic) -> float | None:
    value = float(statistic(parts.sum(axis=0)[None])[0]) if len(parts) else float("nan")
    return None if np.isnan(value) else value


def of_values(values: Sequence[float | None]) -> FloatArray:
    """Contributions of values to sum and size, shape `(n, 2)`; None adds nothing.

    Example:
        >>> of_values([0.5, None]).tolist()
        [[0.5, 1.0], [0.0, 0.0]]
    """
    parts = [(0.0, 0.0) if value is None else (value, 1.0) for value in values]
    return np.array(parts, dtype=np.float64).reshape(-1, 2)


def ratio(sums: FloatArray) -> FloatArray:
    """Of (part, whole), shape `(m, 2)`; nan where the whole is 0."""
    part, whole = np.moveaxis(sums, -1, 0)
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)


def _effective(share: float, stderr: float, units: float, n_groups: int, confidence: float) -> float:
    """Effective sample size of a share: of how many independent units it would be as sure."""
    if not stderr or not 0 < share < 1:
        return float(n_groups)
    rarity = (quantile_of(confidence) / quantile_of(confidence, n_groups - 1)) ** 2
    return min(units, share * (1 - share) / stderr**2) * rarity


def _counted(parts: npt.ArrayLike, groups: Sequence[Hashable]) -> tuple[FloatArray, IntArray, BoolArray]:
    """The documents that add anything, their groups as numbers without gaps, and which of all they are."""
    values = np.asarray(parts, dtype=np.float64)
    codes = codes_of(groups, len(values), "groups")
    some: BoolArray = (
        np.asarray(values.reshape(len(values), -1).any(axis=1)) if len(values) else np.zeros(0, dtype=bool)
    )
    return values[some], np.unique(codes[some], return_inverse=True)[1].reshape(-1).astype(np.int64), some


def _totals(parts: FloatArray, codes: IntArray, n_groups: int = 0) -> FloatArray:
    totals = np.zeros((max(n_groups, int(codes.max(initial=-1)) + 1), *parts.shape[1:]))
    np.add.at(totals, codes, parts)
    return totals


def _influences(parts: FloatArray, codes: IntArray, statistic: Statistic, n_groups: int = 0) -> FloatArray:
    """Contributions of groups to the deviation of the statistic, shape `(groups,)`, by central differences."""
    totals = _SCALE * _totals(parts, codes, n_groups)
    whole, step = totals.sum(axis=0)[None], _STEP
    return (statistic(whole + step * totals) - statistic(whole - step * totals)) / (2 * step)


def _spread(influences: FloatArray, codes: npt.NDArray[np.int64]) -> float | None:
    spread = clustered_spread(influences, codes)
    return 0.0 if spread is not None and spread < _NO_VARIATION else spread
