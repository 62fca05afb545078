"""All entries of a task compared in pairs, fast enough for every pair of two hundred at once.

What documents (or groups of them) add to the deviation of a number is known of each entry, and the variance of any
difference follows from the products of these columns: one matrix product for all pairs on the same documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedge_tasks.statistics.base import FEWEST_OF_A_CLASS, BoolArray, FloatArray, IntArray, UndefinedError
from hedge_tasks.statistics.multiple import root_of, step_down
from hedge_tasks.statistics.placements import (
    auroc_components,
    check_units,
    degrees_of_freedom,
    whole_auroc,
    without_each_group,
)
from hedge_tasks.statistics.strata import renumbered
from hedge_tasks.statistics.sums import Statistic, influences_of

_NOTHING = 1e-12
"""Variances below this, relative to those of the two sides, are the rounding of a product."""


@dataclass(frozen=True)
class LabelledScores:
    """Scores and labels behind a ROC-AUC of one entry.

    Attributes:
        ids: of the labelled documents, ascending, shape `(n,)`; the same number is the same document in every entry.
        values: scores, shape `(n,)`.
        labels: which are hallucinated, shape `(n,)`.
        groups: group of each document, shape `(n,)`; the document's own number where it has none.
        grouped: whether every document has a group.
    """

    ids: IntArray
    values: FloatArray
    labels: BoolArray
    groups: IntArray
    grouped: bool


@dataclass(frozen=True)
class Counted:
    """Records behind a number of a suite.

    Attributes:
        ids: of the documents, ascending, shape `(n,)`.
        parts: what each adds to the sums, shape `(n, ...)`.
        groups: group of each document, shape `(n,)`.
    """

    ids: IntArray
    parts: FloatArray
    groups: IntArray


@dataclass(frozen=True)
class Pairs:
    """Differences of every two entries, paired by document; matrices of shape `(entries, entries)`.

    Attributes:
        difference: row less column; nan where one of the two is undefined.
        stderr: of the difference; nan where nothing varies, or too little is there.
        degrees: of freedom of its distribution; inf: normal.
        n: documents that both have labelled; of sums those that count for either.
        products: of what groups of documents add to the numbers of the two.
    """

    difference: FloatArray
    stderr: FloatArray
    degrees: FloatArray
    n: IntArray
    products: FloatArray

    @cached_property
    def p_values(self) -> FloatArray:
        """Two-sided; nan where there is no standard error."""
        from scipy.special import ndtr, stdtr

        with np.errstate(invalid="ignore", divide="ignore"):
            deviation = -np.abs(self.difference) / self.stderr
        normal = np.isinf(self.degrees)
        p = np.where(normal, ndtr(deviation), stdtr(np.where(normal, 1.0, self.degrees), deviation))
        return np.asarray(2 * p, dtype=np.float64)

    @cached_property
    def adjusted(self) -> FloatArray:
        """p-values corrected for the number of pairs by step-down max-T; nan where there is none."""
        both = np.full(self.n.shape, np.nan)
        rows, columns = np.nonzero(np.triu(~np.isnan(self.p_values), 1))
        if not len(rows):
            return both
        tested = np.unique([rows, columns])
        root = root_of(self.products[np.ix_(tested, tested)])
        factors = root[:, np.searchsorted(tested, rows)] - root[:, np.searchsorted(tested, columns)]
        both[rows, columns] = both[columns, rows] = step_down(self.p_values[rows, columns], factors)
        return both

    @cached_property
    def half_widths(self) -> FloatArray:
        """Half the width of each 95 % interval."""
        from scipy.special import ndtri, stdtrit

        normal = np.isinf(self.degrees)
        quantiles = np.where(normal, ndtri(0.975), stdtrit(np.where(normal, 1.0, self.degrees), 0.975))
        return np.asarray(quantiles * self.stderr, dtype=np.float64)


def auroc_pairs(entries: Sequence[LabelledScores]) -> Pairs:
    r"""ROC-AUCs of every two entries, each on the documents that it has labelled.

    The standard error is that of the delete-one-group jackknife, paired, over the documents of either: one that only
    one of them has labelled varies that side alone. Of entries that have labelled the same documents it is, to the
    digit, what `hedge_tasks.statistics.compare_runs` says.
    """
    ids, groups = _together(entries)
    grouped = all(entry.grouped for entry in entries)
    codes, n_groups = _codes(groups if grouped else ids)
    have, totals, of_groups = _empty(entries, len(ids)), _empty(entries, n_groups), _empty(entries, n_groups)
    values, degrees = np.full(len(entries), np.nan), np.full(len(entries), np.nan)
    for i, entry in enumerate(entries):
        at = np.searchsorted(ids, entry.ids)
        have[i, at], of_groups[i, codes[at]] = 1.0, 1.0
        if min(entry.labels.sum(), (~entry.labels).sum()) < FEWEST_OF_A_CLASS:
            continue
        shared = of_groups[i].sum() < len(at)
        values[i], components = auroc_components(entry.values, entry.labels)
        if shared:
            totals[i] = _deleted(entry, codes[at], n_groups)
        else:
            totals[i] = np.bincount(codes[at], components, n_groups)
        degrees[i] = _degrees(entry.labels, renumbered(codes[at]) if shared else None)
    stderr = _stderr(totals, _either(of_groups))
    certain = ~np.isnan(degrees[:, None] + degrees[None])
    lowest = np.fmin(degrees[:, None], degrees[None])
    both = np.asarray((have @ have.T).round(), dtype=np.int64)
    return Pairs(values[:, None] - values[None], np.where(certain, stderr, np.nan), lowest, both, totals @ totals.T)


def sum_pairs(entries: Sequence[Counted], statistic: Statistic) -> Pairs:
    """A function of sums of every two entries, each on the documents that it has.

    Of entries with the same documents it is, to the digit, what `hedge_tasks.statistics.compare_sums` says.
    """
    ids, groups = _together(entries)
    codes, n_groups = _codes(groups)
    values = np.full(len(entries), np.nan)
    counts, totals, of_groups = _empty(entries, len(ids)), _empty(entries, n_groups), _empty(entries, n_groups)
    for i, entry in enumerate(entries):
        at = np.searchsorted(ids, entry.ids)
        value, totals[i] = influences_of(entry.parts, codes[at], statistic, n_groups)
        values[i] = np.nan if value is None else value
        counts[i, at] = entry.parts.reshape(len(at), -1).any(axis=1) if len(at) else 0.0
        of_groups[i] = np.bincount(codes, counts[i], n_groups) > 0
    n_counted = _either(of_groups)
    difference = values[:, None] - values[None]
    stderr = np.where(np.isnan(difference), np.nan, _stderr(totals, n_counted))
    return Pairs(difference, stderr, np.maximum(n_counted - 1.0, 1.0), _either(counts), totals @ totals.T)


def _together(entries: Sequence[LabelledScores] | Sequence[Counted]) -> tuple[IntArray, IntArray]:
    """Return the ids of the documents that any entry has, ascending, and their groups."""
    ids = np.unique(np.concatenate([entry.ids for entry in entries]))
    groups = np.zeros(len(ids), dtype=np.int64)
    for entry in entries[::-1]:
        groups[np.searchsorted(ids, entry.ids)] = entry.groups
    return ids, groups


def _empty(entries: Sequence[object], width: int) -> FloatArray:
    return np.zeros((len(entries), width))


def _degrees(labels: BoolArray, groups: IntArray | None) -> float:
    """Degrees of freedom, inf without groups; nan where nothing shows how much a class varies."""
    try:
        check_units(labels, groups)
    except UndefinedError:
        return np.nan
    degrees = degrees_of_freedom(labels, groups)
    return np.inf if degrees is None else float(degrees)


def _deleted(entry: LabelledScores, codes: IntArray, n_groups: int) -> FloatArray:
    """Contributions of groups, by deleting each, shape `(n_groups,)`; in the scale of `_stderr`."""
    present, own = np.unique(codes, return_inverse=True)
    own = own.reshape(-1).astype(np.int64)
    left = without_each_group(entry.values, entry.labels, own) - whole_auroc(entry.values, entry.labels)
    totals = np.zeros(n_groups)
    # Without one of the groups nothing may be left: there is no standard error then, which `check_units` says.
    totals[present] = -np.nan_to_num(left) * (len(present) - 1) / len(present)
    return totals


def _either(marks: FloatArray) -> IntArray:
    """How many columns are marked in either of two rows, for every two."""
    own = marks.sum(axis=1)
    return np.asarray((own[:, None] + own[None] - marks @ marks.T).round(), dtype=np.int64)


def _stderr(totals: FloatArray, n_groups: IntArray) -> FloatArray:
    r"""Of the difference of every two rows: :math:`\sqrt{K / (K - 1) \sum_k (t^a_k - t^b_k)^2}`; nan where it is 0."""
    products = totals @ totals.T
    own = np.diag(products)
    both = own[:, None] + own[None]
    squares = both - 2 * products
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.where(n_groups > 1, n_groups / (n_groups - 1.0), np.nan) * squares
        return np.where(squares > np.maximum(_NOTHING * both, _NOTHING**2), np.sqrt(np.maximum(variance, 0.0)), np.nan)


def _codes(groups: IntArray) -> tuple[IntArray, int]:
    names, codes = np.unique(groups, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), len(names)
