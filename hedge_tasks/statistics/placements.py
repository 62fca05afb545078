r"""Placement values: what DeLong's variance, its clustered form and the stratified one are made of.

The AUROC is a mean of *placement values*: of a hallucinated answer, the share of supported answers that score lower
(ties count half); of a supported one, the share of hallucinated answers that score higher. Its variance follows from
how much they vary. A *component* here is what one document adds to the deviation of the statistic from its expectation,
so that components of different statistics on the same documents can be subtracted (paired test) or added up (strata).
"""

from __future__ import annotations

import numpy as np

from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray, UndefinedError, midranks


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
    sizes = np.stack([np.bincount(codes[hit == other], minlength=int(codes[-1]) + 1) for other in (False, True)])
    placed = np.full((2, len(x)), np.nan)
    for other in (0, 1):
        among = sizes[other][codes].astype(np.float64)
        tied = np.bincount(tie, hit == bool(other))
        before = np.cumsum(tied) - tied  # of all strata
        before_stratum = np.append(0, np.cumsum(sizes[other])[:-1])[codes]
        lower = before[tie] - before_stratum + tied[tie] / 2
        placed[other] = np.divide(lower, among, out=np.full(len(x), np.nan), where=among > 0)
    found, others = np.empty(len(x)), np.empty(len(x), dtype=np.int64)
    # Of a hallucinated document the share of supported ones below it, of a supported one of hallucinated ones above.
    found[order] = np.where(hit, placed[0], 1 - placed[1])
    others[order] = np.where(hit, sizes[0][codes], sizes[1][codes])
    return found, others


def auroc_components(x: FloatArray, positive: BoolArray) -> tuple[float, FloatArray]:
    """AUROC, and what each document adds to its deviation: (placement value - AUROC) / size of its class."""
    values = placement_values(x, positive)
    area = float(values[positive].mean())
    n_positive = int(positive.sum())
    return area, (values - area) / np.where(positive, n_positive, len(x) - n_positive)


def component_variance(components: FloatArray, positive: BoolArray, groups: IntArray | None) -> float:
    r"""Variance of a statistic from its components, where documents (or groups of documents) are independent.

    With :math:`a_k, b_k` the sums of the components of the hallucinated and the supported documents in group :math:`k`,
    and :math:`I_{10}, I_{01}, I` the numbers of groups with hallucinated, with supported, and with any documents,

    .. math::
        \frac{I_{10}}{I_{10} - 1} \sum_k a_k^2 + \frac{I_{01}}{I_{01} - 1} \sum_k b_k^2
        + \frac{2 I}{I - 1} \sum_k a_k b_k

    For the components of an AUROC this is Obuchowski 1997 ("Nonparametric analysis of clustered ROC curve data",
    Biometrics 53), and DeLong, DeLong & Clarke-Pearson 1988 (Biometrics 44) where every document is a group of its own.

    Raises:
        UndefinedError: One of the classes occurs in a single document or group only, so that nothing shows how much
            it varies.
    """
    check_units(positive, groups)
    codes = np.arange(len(components)) if groups is None else groups
    n_groups = int(codes.max()) + 1
    a = np.bincount(codes[positive], components[positive], n_groups)
    b = np.bincount(codes[~positive], components[~positive], n_groups)
    with_positive, with_negative = len(np.unique(codes[positive])), len(np.unique(codes[~positive]))
    variance = _ratio(with_positive) * (a @ a) + _ratio(with_negative) * (b @ b) + 2 * _ratio(n_groups) * (a @ b)
    return max(0.0, float(variance))  # zero may come out as minus one rounding error


def check_units(positive: BoolArray, groups: IntArray | None) -> None:
    """Raise UndefinedError where a class rests on one document or group: it would seem never to vary."""
    if min(units_of_each_class(positive, groups)) < 2:
        unit = "document" if groups is None else "group"
        raise UndefinedError(f"no standard error: one of the classes occurs in a single {unit} only")


def units_of_each_class(positive: BoolArray, groups: IntArray | None) -> tuple[int, int]:
    """Number of documents (or groups) with hallucinated and with supported answers."""
    if groups is None:
        return int(positive.sum()), int((~positive).sum())
    return len(np.unique(groups[positive])), len(np.unique(groups[~positive]))


def degrees_of_freedom(positive: BoolArray, groups: IntArray | None) -> int | None:
    """Of a standard error between groups: their number in the rarer class, less one; None (normal) without groups.

    Groups are often few, and with 25 of them an interval with normal quantiles covers 92 instead of 95 %.
    """
    return None if groups is None else min(units_of_each_class(positive, groups)) - 1


def disjoint_pairs(positive: BoolArray, groups: IntArray | None) -> int:
    """At least how many independent pairs (hallucinated, supported) there are, for a bound where nothing varies."""
    n_units = len(positive) if groups is None else int(groups.max()) + 1
    return max(1, min(*units_of_each_class(positive, groups), n_units // 2))


def _ratio(n: int) -> float:
    return n / (n - 1)
