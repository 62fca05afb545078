r"""Placement values: what DeLong's variance, the stratified one and the jackknife by group are made of.

The AUROC is a mean of *placement values*: of a hallucinated answer, the share of supported answers that score lower
(ties count half); of a supported one, the share of hallucinated answers that score higher. Its variance follows from
how much they vary. A *component* here is what one document adds to the deviation of the statistic from its expectation,
so that components of different statistics on the same documents can be subtracted (paired test) or added up (strata).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import WHOLE_PERCENT
from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray, UndefinedError, midranks

MOST_OF_A_CLASS = 0.5
"""Where one group has more of a class than this, nothing shows how that class varies between groups."""


def placement_values(x: FloatArray, positive: BoolArray) -> FloatArray:
    """Placement value of every document, in [0, 1]; the mean over either class is the AUROC.

    Midranks make this O(n log n): Sun & Xu 2014, "Fast implementation of DeLong's algorithm",
    IEEE Signal Processing Letters 21(11).

    Args:
        x: Scores, shape `(n,)`; infinities are ranked.
        positive: Which documents are hallucinated, shape `(n,)`; both classes occur.
    """
    n_positive = int(positive.sum())
    n_negative = len(x) - n_positive
    ranks = midranks(x)  # midranks: ties share their mean rank
    values = np.empty(len(x), dtype=np.float64)
    values[positive] = (ranks[positive] - midranks(x[positive])) / n_negative
    values[~positive] = 1 - (ranks[~positive] - midranks(x[~positive])) / n_positive
    return values


def placements_within(x: FloatArray, positive: BoolArray, strata: IntArray) -> tuple[FloatArray, IntArray]:
    """Placement value of every document among those of the other class in its stratum, for all strata in one go.

    Args:
        x: Scores, shape `(n,)`; infinities are ranked.
        positive: Which documents are hallucinated, shape `(n,)`.
        strata: Stratum of each document, whole numbers from 0, shape `(n,)`.

    Returns:
        The values, nan where the stratum has one class, and how many documents of the other class each is placed among,
        both of shape `(n,)`.
    """
    order = np.lexsort((x, strata))
    codes, values, hit = strata[order], x[order], positive[order]
    tie = np.cumsum(np.append(False, (codes[1:] != codes[:-1]) | (values[1:] != values[:-1])))
    sizes = np.stack([np.bincount(codes[hit == label], minlength=int(codes[-1]) + 1) for label in (False, True)])
    placed = np.full((2, len(x)), np.nan)
    for label in (0, 1):
        among = sizes[label][codes].astype(np.float64)
        tied = np.bincount(tie, hit == bool(label))
        before = np.cumsum(tied) - tied  # of all strata
        before_stratum = np.append(0, np.cumsum(sizes[label])[:-1])[codes]
        lower = before[tie] - before_stratum + tied[tie] / 2
        placed[label] = np.divide(lower, among, out=np.full(len(x), np.nan), where=among > 0)
    shares, others = np.empty(len(x)), np.empty(len(x), dtype=np.int64)
    # Of a hallucinated document the share of supported ones below it, of a supported one of hallucinated ones above.
    shares[order] = np.where(hit, placed[0], 1 - placed[1])
    others[order] = np.where(hit, sizes[0][codes], sizes[1][codes])
    return shares, others


def auroc_components(x: FloatArray, positive: BoolArray) -> tuple[float, FloatArray]:
    """AUROC, and what each document adds to its deviation: (placement value - AUROC) / size of its class."""
    values = placement_values(x, positive)
    area = float(values[positive].mean())
    n_positive = int(positive.sum())
    return area, (values - area) / np.where(positive, n_positive, len(x) - n_positive)


def component_variance(components: FloatArray, positive: BoolArray) -> float:
    r"""Variance of a statistic from its components :math:`c_i`, where documents are independent.

    .. math:: \frac{P}{P - 1} \sum_{i: y_i = 1} c_i^2 + \frac{N}{N - 1} \sum_{j: y_j = 0} c_j^2

    For the components of an AUROC this is DeLong, DeLong & Clarke-Pearson 1988 (Biometrics 44).

    Raises:
        UndefinedError: One of the classes occurs in a single document only, so that nothing shows how much it varies.
    """
    check_units(positive, None)
    a, b = components[positive], components[~positive]
    return float(_ratio(len(a)) * (a @ a) + _ratio(len(b)) * (b @ b))


def check_units(positive: BoolArray, groups: IntArray | None) -> None:
    """Raise UndefinedError where a class rests on one document or group: it would seem never to vary."""
    if min(units_of_each_class(positive, groups)) < 2:
        unit = "document" if groups is None else "group"
        raise UndefinedError(f"no standard error: one of the classes occurs in a single {unit} only")
    if groups is None:
        return
    largest = max(np.bincount(groups[chosen]).max() / chosen.sum() for chosen in (positive, ~positive))
    if largest > MOST_OF_A_CLASS:
        raise UndefinedError(f"no standard error: one group has {WHOLE_PERCENT(largest)} of one of the classes")


def effective_number(sizes: npt.ArrayLike) -> float:
    r"""Groups of equal size that are worth as many, :math:`(\sum_g m_g)^2 / \sum_g m_g^2`; 0 without any.

    Example:
        >>> effective_number([3, 1])
        1.6
    """
    m = np.asarray(sizes, dtype=np.float64)
    return float(m.sum() ** 2 / (m @ m)) if m.any() else 0.0


def without_each_group(
    x: FloatArray, positive: BoolArray, groups: IntArray, strata: IntArray | None = None
) -> FloatArray:
    """AUROC without each group in turn, shape `(groups,)`; nan where nothing is left to compare.

    Exact, and no more work than the AUROC itself: what goes is the pairs of the group's documents with all others, and
    those within the group were counted twice.

    Args:
        x: Scores, shape `(n,)`.
        positive: Which documents are hallucinated, shape `(n,)`.
        groups: Group of each document, whole numbers from 0, shape `(n,)`.
        strata: Stratum of each document, within which documents are compared; None: with all.
    """
    within = np.zeros(len(x), dtype=np.int64) if strata is None else strata
    cells = np.unique(np.stack([within, groups]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    n_groups = int(groups.max()) + 1
    sums = []
    for codes in (within, cells):
        values, pairs = placements_within(x, positive, codes)
        won = pairs * np.nan_to_num(values)
        sums.append([[np.bincount(groups[c], w[c], n_groups) for w in (won, pairs)] for c in (positive, ~positive)])
    ((won_p, pairs_p), (won_n, pairs_n)), ((won_w, pairs_w), _) = sums
    # Twice the pairs won are whole numbers: rounded, they are exact, and what does not vary has no variance.
    won = np.round(2 * (won_p.sum() - won_p - won_n + won_w)) / 2
    left = pairs_p.sum() - pairs_p - pairs_n + pairs_w
    return np.divide(won, left, out=np.full(n_groups, np.nan), where=left > 0.5)


def whole_auroc(x: FloatArray, positive: BoolArray, strata: IntArray | None = None) -> float:
    """AUROC (within strata), from the same whole numbers as `without_each_group`."""
    values, pairs = placements_within(x, positive, np.zeros(len(x), dtype=np.int64) if strata is None else strata)
    won = np.round(2 * (pairs * np.nan_to_num(values))[positive].sum()) / 2
    return float(won / pairs[positive].sum())


def deleted_spread(deviations: FloatArray) -> float:
    r"""Standard error from the values without each group, :math:`\sqrt{(G - 1) / G \sum_g d_g^2}` about the whole one.

    Deleting a group shows what it alone does to the statistic, which an influence (a derivative) does not where the
    group is large: the cluster-robust variance CR3 (MacKinnon, Nielsen & Webb 2023, Journal of Econometrics 232(2)).
    """
    n_groups = len(deviations)
    return float(np.sqrt((n_groups - 1) / n_groups * (deviations @ deviations)))


def units_of_each_class(positive: BoolArray, groups: IntArray | None) -> tuple[int, int]:
    """Number of documents (or groups) with hallucinated and with supported answers."""
    if groups is None:
        return int(positive.sum()), int((~positive).sum())
    return len(np.unique(groups[positive])), len(np.unique(groups[~positive]))


def degrees_of_freedom(
    positive: BoolArray, groups: IntArray | None, pairs: npt.NDArray[Any] | None = None
) -> float | None:
    r"""Of a standard error between groups: their effective number, less one, at least 1; None (normal) without groups.

    A group counts by its leverage on the AUROC, :math:`h_g = P_g / P + N_g / N`, its shares of both classes: with
    groups of unequal size fewer are worth as many, :math:`(\sum_g h_g)^2 / \sum_g h_g^2` (Carter, Schnepel &
    Steigerwald 2017, Review of Economics and Statistics 99(4)), and never more than there are with either class.

    Args:
        pairs: with how many documents each is compared, where not with all of the other class.
    """
    if groups is None:
        return None
    if pairs is None:
        pairs = np.where(positive, (~positive).sum(), positive.sum())
    leverage = np.bincount(groups, pairs)
    return max(1.0, min(effective_number(leverage), *units_of_each_class(positive, groups)) - 1)


def _ratio(n: int) -> float:
    return n / (n - 1)
