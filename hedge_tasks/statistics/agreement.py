"""How far judges agree, beyond what chance would do: percent, Cohen's and Fleiss' kappa, Krippendorff's alpha.

Ratings are given judge by judge, each a sequence over the same items. A rating is any hashable value: 0, 1, a string.
None (or nan) is a missing one. Intervals are bootstrap intervals over items (or over groups of items, such as the
questions on one image); a resample where the statistic is undefined is left out.

Cohen's and Fleiss' kappa are those of scikit-learn and statsmodels. Only the resamples are computed here, all at once:
1000 of them take less than a millisecond, and would take 12 s and 0.5 s there (500 items, three judges).
Krippendorff's alpha is computed here altogether: its package is under the GPL, which a package under the Apache licence
must not impose on its users, so that it only checks ours, in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.errors import unknown
from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import FloatArray, IntArray, check_confidence, check_resamples, codes_of
from hedge_tasks.statistics.resampling import canonical_units, percentile_interval, unit_counts

Ratings = Sequence[Sequence[Hashable]]
_MISSING = -1
WEIGHTS = ("linear", "quadratic")


@dataclass(frozen=True)
class Agreement(Number):
    """An agreement statistic, at most 1, with its bootstrap error and percentile interval.

    Attributes:
        n_raters: number of judges.
    """

    n_raters: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "n_raters": self.n_raters}


@dataclass(frozen=True)
class ConfusionMatrix:
    """How often one judge says this where another says that.

    Attributes:
        categories: Of rows and columns.
        counts: `counts[i][j]` items have `categories[i]` from the first judge, `categories[j]` from the second.
        n_missing: Items that a judge did not rate; they are in no cell.
    """

    categories: tuple[Hashable, ...]
    counts: tuple[tuple[int, ...], ...]
    n_missing: int


def percent_agreement(
    ratings: Ratings,
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Agreement:
    """Share of pairs of judges that agree, averaged over the items that at least two judges rated.

    Args:
        ratings: Ratings of each judge, shape `(judges, items)`; None or nan = missing.
        groups: Group of each item that is resampled as a whole, length `items`.
        n_resamples: Number of bootstrap resamples, at least 2.
        seed: Seed of the bootstrap.
        confidence: Level of the interval, in (0, 1).

    Raises:
        ValueError: If there are fewer than two judges, lengths differ, or a number is out of range.

    Example:
        >>> percent_agreement([[1, 0, 1, 1], [1, 0, 0, 1]]).value
        0.75
    """
    table = _Table(ratings, groups, at_least=2)
    return table.estimate("percent agreement", _percent, None, n_resamples, seed, confidence)


def cohen_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Agreement:
    r"""Cohen's kappa of two judges, unweighted, over the items that both rated.

    .. math::
        \kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_e = \sum_c p_{c \cdot}\, p_{\cdot c}

    Source: Cohen 1960, Educational and Psychological Measurement 20(1). Undefined where both judges say the same of all
    items. For two judges only; arguments otherwise as for `percent_agreement`.

    Example:
        >>> round(cohen_kappa([1, 0, 1, 1], [1, 0, 0, 1]).value, 3)
        0.5
    """
    table = _Table([a, b], groups, at_least=2)
    return table.estimate("Cohen's kappa", _cohen, _cohen_of_sklearn, n_resamples, seed, confidence)


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
    from sklearn.metrics import cohen_kappa_score

    if weights not in WEIGHTS:
        raise unknown("kappa weights", weights, WEIGHTS)
    counts = np.asarray(confusion, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"confusion: expected a square table, got the shape {counts.shape}")
    pairs = np.nonzero(counts)
    if len(np.union1d(*pairs)) < 2:
        return None
    return float(cohen_kappa_score(*pairs, labels=np.arange(len(counts)), weights=weights, sample_weight=counts[pairs]))


def weighted_kappas(tables: FloatArray, weights: str) -> FloatArray:
    """`weighted_kappa` of many tables, shape `(n, k, k)` -> `(n,)`, nan where it is undefined.

    For resamples: for 1000 of them scikit-learn takes 4.3 s, this takes 0.005 s.
    """
    places = np.arange(tables.shape[-1])
    distance = np.abs(places[:, None] - places) ** (1 if weights == "linear" else 2)
    chance = np.einsum("ni,nj,ij->n", tables.sum(2), tables.sum(1), distance)
    observed = tables.sum((1, 2)) * np.einsum("nij,ij->n", tables, distance)
    # An observed disagreement is an expected one, so that nothing is expected only where nobody ever disagrees.
    return np.where(chance > 0, 1 - observed / np.where(chance > 0, chance, 1), np.nan)


def fleiss_kappa(
    ratings: Ratings,
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Agreement:
    r"""Fleiss' kappa over the items that all :math:`r` judges rated.

    .. math::
        \kappa = \frac{\bar P - \bar P_e}{1 - \bar P_e}, \qquad
        \bar P = \frac{1}{n} \sum_i \frac{\sum_c n_{ic} (n_{ic} - 1)}{r (r - 1)}, \qquad
        \bar P_e = \sum_c \Bigl(\frac{1}{n r} \sum_i n_{ic}\Bigr)^2

    Source: Fleiss 1971, Psychological Bulletin 76(5). Arguments as for `percent_agreement`.

    Example:
        >>> round(fleiss_kappa([[1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 0]]).value, 3)
        0.314
    """
    table = _Table(ratings, groups, at_least=len(ratings))
    return table.estimate("Fleiss' kappa", _fleiss, _fleiss_of_statsmodels, n_resamples, seed, confidence)


def krippendorff_alpha(
    ratings: Ratings,
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
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
    table = _Table(ratings, groups, at_least=2)
    return table.estimate("Krippendorff's alpha, nominal", _krippendorff, None, n_resamples, seed, confidence)


def confusion_matrix(
    a: Sequence[Hashable], b: Sequence[Hashable], categories: Sequence[Hashable] | None = None
) -> ConfusionMatrix:
    """Table of two judges' ratings.

    Args:
        a: Ratings of the first judge (rows), length `items`; None or nan = missing.
        b: Ratings of the second (columns).
        categories: Which there are, in which order; None: those that occur, sorted.

    Raises:
        ValueError: If lengths differ or a rating is not among the categories.

    Example:
        >>> confusion_matrix([1, 0, 1, None], [1, 0, 0, 1]).counts
        ((1, 0), (1, 1))
    """
    codes, labels = _codes([a, b])
    if categories is not None:
        place = {category: i for i, category in enumerate(categories)}
        if absent := [category for category in labels if category not in place]:
            raise ValueError(f"the rating {absent[0]!r} is not among the categories {list(categories)}")
        codes = np.array([*(place[category] for category in labels), _MISSING])[codes]
        labels = tuple(categories)
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    rated = (codes != _MISSING).all(axis=0)
    np.add.at(counts, (codes[0, rated], codes[1, rated]), 1)
    return ConfusionMatrix(labels, tuple(tuple(row) for row in counts.tolist()), int((~rated).sum()))


class _Table:
    """Items by pattern: items that all judges rated alike are one pattern, and a resample is how often each occurs."""

    def __init__(self, ratings: Ratings, groups: Sequence[Hashable] | None, *, at_least: int) -> None:
        codes, self.categories = _codes(ratings)
        self.n_raters = len(ratings)
        group_codes = None if groups is None else codes_of(groups, codes.shape[1], "groups")
        rated = (codes != _MISSING).sum(axis=0) >= at_least
        self.n = int(rated.sum())
        self.patterns, self.pattern = np.unique(codes[:, rated].T, axis=0, return_inverse=True)
        self.pattern = self.pattern.reshape(-1).astype(np.int64)
        self.groups = None if group_codes is None else group_codes[rated]
        self.at_least = at_least

    @property
    def counts(self) -> FloatArray:
        """How many judges put a pattern into each category, shape `(patterns, categories)`."""
        return np.stack([(self.patterns == c).sum(axis=1) for c in range(len(self.categories))], axis=1).astype(float)

    def estimate(
        self,
        name: str,
        statistic: Callable[[_Table, FloatArray], FloatArray],
        of_library: Callable[[_Table], float] | None,
        n_resamples: int,
        seed: int,
        level: float,
    ) -> Agreement:
        """The statistic with its bootstrap.

        Args:
            statistic: the table, and how often each pattern occurs, shape `(resamples, patterns)` -> values of shape
                `(resamples,)`, nan where it is undefined.
            of_library: the same of the table itself, where a library has it.
        """
        check_resamples(n_resamples)
        check_confidence(level)
        if not self.n:
            who = "all judges" if self.at_least > 2 else "two judges"
            return Agreement.undefined(f"no item is rated by {who}", n_raters=self.n_raters)
        counts_of: dict[str, Any] = {"n": self.n, "n_raters": self.n_raters}
        weights = np.bincount(self.pattern, minlength=len(self.patterns)).astype(float)[None]
        value = float(statistic(self, weights)[0])
        if np.isnan(value):
            return Agreement.undefined("all ratings are the same: chance would agree as well", **counts_of)
        value = value if of_library is None else of_library(self)
        values = np.concatenate([statistic(self, times) for times in self._resamples(n_resamples, seed)])
        values = values[~np.isnan(values)]
        if len(values) < 2 or np.ptp(values) < 1e-12:
            reason = "no standard error: it is the same in every resample"
            return Agreement(value, reason=reason, **counts_of)
        kind = "item" if self.groups is None else "group"
        method = f"{name}; {kind} bootstrap ({n_resamples} resamples), percentile interval"
        stderr, interval = float(values.std(ddof=1)), percentile_interval(values, level)
        return Agreement(value, stderr, interval, method=method, **counts_of)

    def _resamples(self, n_resamples: int, seed: int) -> list[FloatArray]:
        """How often each pattern occurs, in blocks of shape `(resamples, patterns)`."""
        units, n_units = canonical_units(self.groups, self.pattern)
        members = np.zeros((n_units, len(self.patterns)))
        np.add.at(members, (units, self.pattern), 1)
        return [times @ members for times in unit_counts(n_units, n_resamples, len(self.patterns), seed)]


def _percent(table: _Table, times: FloatArray) -> FloatArray:
    n_ratings = table.counts.sum(axis=1)
    agreeing = (table.counts * (table.counts - 1)).sum(axis=1) / (n_ratings * (n_ratings - 1))
    return np.asarray(times @ agreeing / times.sum(axis=1))


def _cohen(table: _Table, times: FloatArray) -> FloatArray:
    share = times / times.sum(axis=1, keepdims=True)
    first, second = (np.equal.outer(table.patterns[:, j], np.arange(len(table.categories))) for j in (0, 1))
    observed = share @ (table.patterns[:, 0] == table.patterns[:, 1])
    return _beyond_chance(observed, ((share @ first) * (share @ second)).sum(axis=1))


def _cohen_of_sklearn(table: _Table) -> float:
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(*table.patterns[table.pattern].T))


def _fleiss_of_statsmodels(table: _Table) -> float:
    from statsmodels.stats.inter_rater import fleiss_kappa

    return float(fleiss_kappa(table.counts[table.pattern]))


def _fleiss(table: _Table, times: FloatArray) -> FloatArray:
    share = times / times.sum(axis=1, keepdims=True)
    expected = ((share @ table.counts / table.n_raters) ** 2).sum(axis=1)
    return _beyond_chance(_percent(table, times), expected)


def _krippendorff(table: _Table, times: FloatArray) -> FloatArray:
    n_ratings = table.counts.sum(axis=1)
    pairs = (table.counts * (table.counts - 1)).sum(axis=1) / (n_ratings - 1)
    by_category = times @ table.counts
    n = by_category.sum(axis=1)
    return _beyond_chance(times @ pairs / n, (by_category * (by_category - 1)).sum(axis=1) / (n * (n - 1)))


def _beyond_chance(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """(observed - expected) / (1 - expected); nan where chance alone agrees always."""
    room = 1 - expected
    # Sums of shares that are 1 on paper miss it by rounding.
    defined = room > 1e-12
    return np.where(defined, (observed - expected) / np.where(defined, room, 1), np.nan)


def _codes(ratings: Ratings) -> tuple[IntArray, tuple[Hashable, ...]]:
    """Ratings as numbers of sorted categories, -1 = missing, shape `(judges, items)`; and the categories."""
    if len(ratings) < 2:
        raise ValueError(f"agreement needs at least two judges, got {len(ratings)}")
    lengths = [len(row) for row in ratings]
    if len(set(lengths)) > 1:
        raise ValueError(f"the judges rated different numbers of items: {lengths}")
    code_of = {rating: None for row in ratings for rating in row if not _is_missing(rating)}
    # Of mixed types, too: numbers before texts, each in their order.
    categories = tuple(sorted(code_of, key=_order))
    number = {category: i for i, category in enumerate(categories)}
    rows = [[_MISSING if _is_missing(rating) else number[rating] for rating in row] for row in ratings]
    return np.array(rows, dtype=np.int64).reshape(len(ratings), lengths[0]), categories


def _is_missing(rating: Hashable) -> bool:
    return rating is None or rating != rating  # nan is the one value that is not itself


def _order(category: Hashable) -> tuple[int, float, str]:
    if isinstance(category, (bool, int, float, np.number)):
        return 0, float(category), ""
    return 1, 0.0, str(category)
