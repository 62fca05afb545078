"""How far judges agree, beyond what chance would do: percent, Cohen's kappa, Krippendorff's alpha.

Ratings are given judge by judge, each a sequence over the same items. A rating is any hashable value: 0, 1, a string.
None (or nan) is a missing one. Errors and intervals are the jackknife's over items (or over groups of items, such as
the questions on one image).

Cohen's kappa is scikit-learn's. Krippendorff's alpha is computed here: its package is under the GPL, which a package
under the Apache licence must not impose on its users, so that it only checks ours, in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.errors import unknown
from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import FloatArray, IntArray, codes_of
from hedge_tasks.statistics.jackknife import jackknife

Ratings = Sequence[Sequence[Hashable]]
WEIGHTS = ("linear", "quadratic")
_MISSING = -1


@dataclass(frozen=True)
class Agreement(Number):
    """An agreement statistic, at most 1, with its jackknife error and interval.

    Attributes:
        n_raters: number of judges.
    """

    n_raters: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "n_raters": self.n_raters}


def percent_agreement(
    ratings: Ratings, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Agreement:
    """Share of pairs of judges that agree, averaged over the items that at least two judges rated.

    Args:
        ratings: Ratings of each judge, shape `(judges, items)`; None or nan = missing.
        groups: Group of each item, length `items`.
        confidence: Level of the interval, in (0, 1).

    Raises:
        ValueError: If there are fewer than two judges, lengths differ, or the level is out of range.

    Example:
        >>> percent_agreement([[1, 0, 1, 1], [1, 0, 0, 1]]).value
        0.75
    """
    return _estimated("percent agreement", ratings, groups, confidence, _percent)


def cohen_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Agreement:
    r"""Cohen's kappa of two judges, unweighted, over the items that both rated (`sklearn.metrics.cohen_kappa_score`).

    .. math::
        \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_e = \sum_c p_{c \cdot}\, p_{\cdot c}

    Source: Cohen 1960, Educational and Psychological Measurement 20(1). Undefined where both judges say the same of all
    items. For two judges only; arguments otherwise as for `percent_agreement`.

    Example:
        >>> round(cohen_kappa([1, 0, 1, 1], [1, 0, 0, 1]).value, 3)
        0.5
    """
    return _estimated("Cohen's kappa", [a, b], groups, confidence, _kappa)


def weighted_kappa(confusion: npt.ArrayLike, weights: str = "linear") -> float | None:
    r"""Cohen's weighted kappa of two judges of an ordinal scale (`sklearn.metrics.cohen_kappa_score`).

    .. math::
        \kappa_w = 1 - \frac{\sum_{ij} w_{ij} n_{ij}}{\sum_{ij} w_{ij} n_{i \cdot} n_{\cdot j} / n},
        \qquad w_{ij} = |i - j| \text{ or } (i - j)^2

    Source: Cohen 1968, Psychological Bulletin 70(4).

    Args:
        confusion: Counts, shape `(k, k)`: how often one judge says i where the other says j.
        weights: `"linear"` or `"quadratic"`.

    Returns:
        The statistic, at most 1; `None` where both judges only ever say the same one thing.

    Raises:
        ConfigError: There are no such weights.
        ValueError: The table is not square.

    Example:
        >>> round(weighted_kappa([[2, 0, 0], [0, 1, 1], [0, 0, 2]]), 3)
        0.824
    """
    if weights not in WEIGHTS:
        raise unknown("kappa weights", weights, WEIGHTS)
    counts = np.asarray(confusion, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"confusion: expected a square table, got the shape {counts.shape}")
    pairs = np.stack(np.nonzero(counts))
    return _kappa(pairs, counts[tuple(pairs)], weights)


def krippendorff_alpha(
    ratings: Ratings, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Agreement:
    r"""Krippendorff's alpha for nominal ratings; items with any two ratings count, so missing ones cost little.

    With :math:`n_{uc}` ratings :math:`c` of item :math:`u`, :math:`m_u = \sum_c n_{uc} \ge 2`,
    :math:`n_c = \sum_u n_{uc}` and :math:`n = \sum_c n_c`,

    .. math::
        \alpha = 1 - \frac{D_o}{D_e}, \qquad
        D_o = 1 - \frac{1}{n} \sum_u \sum_c \frac{n_{uc} (n_{uc} - 1)}{m_u - 1}, \qquad
        D_e = 1 - \frac{\sum_c n_c (n_c - 1)}{n (n - 1)}

    Source: Krippendorff, "Content Analysis", and "Computing Krippendorff's Alpha-Reliability" (2011), section C.
    Arguments as for `percent_agreement`.

    Example:
        >>> round(krippendorff_alpha([[1, 0, 1, None], [1, 0, 0, 1], [1, None, 1, 1]]).value, 3)
        0.571
    """
    return _estimated("Krippendorff's alpha, nominal", ratings, groups, confidence, _krippendorff)


def _estimated(
    name: str,
    ratings: Ratings,
    groups: Sequence[Hashable] | None,
    confidence: float,
    statistic: Callable[[IntArray, FloatArray], float | None],
) -> Agreement:
    """A statistic of patterns of ratings, shape `(judges, patterns)`, and how often each occurs, `(patterns,)`."""
    codes = _codes(ratings)
    units = range(codes.shape[1]) if groups is None else codes_of(groups, codes.shape[1], "groups").tolist()
    rated = (codes != _MISSING).sum(axis=0) > 1
    if not rated.any():
        return Agreement.undefined("no item is rated by two judges", n_raters=len(codes))
    # Items that all judges rated alike are one pattern: few differ, and each is computed once.
    patterns, place = np.unique(codes[:, rated], axis=1, return_inverse=True)
    computed: dict[bytes, float | None] = {}

    def of_items(weights: FloatArray) -> float | None:
        times = np.bincount(place.reshape(-1), weights, patterns.shape[1]).astype(np.float64)
        if (key := times.tobytes()) not in computed:
            computed[key] = statistic(patterns[:, times > 0], times[times > 0])
        return computed[key]

    rated_units = [unit for unit, is_rated in zip(units, rated, strict=True) if is_rated]
    number = jackknife(of_items, rated_units, bounds=(-1.0, 1.0), confidence=confidence)
    reason = number.reason if number.defined else "all ratings are the same: chance would agree as well"
    n_groups = 0 if groups is None else number.n_groups
    method = f"{name}; {number.method}" if number.method else ""
    return Agreement(
        **{**vars(replace(number, reason=reason, n_groups=n_groups, method=method)), "n_raters": len(codes)}
    )


def _percent(patterns: IntArray, times: FloatArray) -> float | None:
    counts = _counts(patterns)
    n_ratings = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (n_ratings * (n_ratings - 1))
    return float(agreeing @ times / times.sum()) if len(times) else None


def _kappa(pairs: IntArray, times: FloatArray, weights: str | None = None) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if len(np.unique(pairs)) < 2:
        return None
    labels = np.arange(int(pairs.max()) + 1)
    return float(cohen_kappa_score(*pairs, labels=labels, weights=weights, sample_weight=times))


def _krippendorff(patterns: IntArray, times: FloatArray) -> float | None:
    counts = _counts(patterns)
    pairs = (counts * (counts - 1)).sum(axis=1) / (counts.sum(axis=1) - 1)
    by_category = times @ counts
    n = by_category.sum()
    unlike = n * (n - 1) - (by_category * (by_category - 1)).sum()
    return float(1 - (n - times @ pairs) * (n - 1) / unlike) if unlike > 0 else None


def _counts(codes: IntArray) -> FloatArray:
    """How many judges put an item into each category, shape `(items, categories)`."""
    return np.stack([(codes == c).sum(axis=0) for c in range(int(codes.max(initial=0)) + 1)], axis=1).astype(float)


def _codes(ratings: Ratings) -> IntArray:
    """Ratings as numbers of categories, -1 = missing, shape `(judges, items)`."""
    if len(ratings) < 2:
        raise ValueError(f"agreement needs at least two judges, got {len(ratings)}")
    lengths = [len(row) for row in ratings]
    if len(set(lengths)) > 1:
        raise ValueError(f"the judges rated different numbers of items: {lengths}")
    # nan is the one value that is not itself.
    rated = dict.fromkeys(r for row in ratings for r in row if r is not None and r == r)
    number = {rating: i for i, rating in enumerate(rated)}
    return np.array([[number.get(r, _MISSING) for r in row] for row in ratings], dtype=np.int64).reshape(
        len(ratings), -1
    )
