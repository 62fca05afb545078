"""How well scores can be turned into probabilities: cross-fitted isotonic regression, reliability diagram, ECE."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.statistics.base import (
    FloatArray,
    IntArray,
    Interval,
    UndefinedStatistic,
    as_data,
    check_confidence,
    check_defined,
    codes_of,
    levels_of,
    wilson,
)
from hedge_tasks.statistics.placements import units_of_each_class
from hedge_tasks.statistics.resampling import canonical_units


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers with a predicted probability in one bin.

    Attributes:
        low: Lower end of the bin (within).
        high: Upper end (not within, but for the last bin).
        n: Number of answers, at least 1.
        probability: Their mean predicted probability of being hallucinated.
        share: Share of them that is hallucinated.
        interval: Wilson's interval of the share.
    """

    low: float
    high: float
    n: int
    probability: float
    share: float
    interval: Interval


@dataclass(frozen=True)
class Calibration:
    """A reliability diagram and its summaries.

    Attributes:
        ece: Expected calibration error, in [0, 1]; `None` if undefined.
        brier: Mean squared difference of probability and label, in [0, 1].
        bins: The non-empty bins, ascending.
        probabilities: Of each document, predicted without it, shape `(n,)`.
        n: Number of documents.
        n_positive: Number of documents labelled hallucinated.
        n_folds: Number of folds, at most as many as asked for; 0 if undefined.
        reason: Why `ece` is `None`.
    """

    ece: float | None
    brier: float | None
    bins: tuple[ReliabilityBin, ...]
    probabilities: tuple[float, ...]
    n: int
    n_positive: int
    n_folds: int
    reason: str | None = None


def estimate_calibration(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    n_folds: int = 5,
    n_bins: int = 10,
    seed: int = 0,
    confidence: float = 0.95,
) -> Calibration:
    r"""Calibration error after isotonic regression, every document predicted by a fit that it had no part in.

    .. math::
        \mathrm{ECE} = \sum_b \frac{n_b}{n} \lvert \bar y_b - \bar p_b \rvert

    over bins of equal width in the predicted probability (Naeini et al. 2015; Guo et al. 2017, Eq. 3). A score such as
    an entropy is no probability, so it is first mapped to one by isotonic regression. Fitted on the documents that are
    then reported, that would be perfectly calibrated on any data; hence the folds. They have equal shares of
    hallucinations as far as possible, and a group lies in one fold as a whole. Only the order of the scores is used.
    The ECE is biased upwards with few documents: compare it on equal numbers, and read the bins with their intervals.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        groups: Group (e.g. image id) of each document, length `n`.
        n_folds: Number of folds, at least 2; fewer are taken where a class has fewer documents (or groups).
        n_bins: Number of bins, at least 1.
        seed: Seed of the folds.
        confidence: Level of the bins' intervals, in (0, 1).

    Returns:
        The calibration; undefined (with the reason) with one class only, with `nan`, or where a class occurs in a
        single document (or group), so that no fit without it knows both classes.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or a number is out of range.

    Example:
        >>> found = estimate_calibration([1, 1, 1, 1, 2, 2, 2, 2], [0, 0, 0, 0, 1, 1, 1, 1], n_folds=2, n_bins=2)
        >>> found.ece, [(each.n, each.probability, each.share) for each in found.bins]
        (0.0, [(4, 0.0, 0.0), (4, 1.0, 1.0)])
    """
    check_confidence(confidence)
    if n_folds < 2 or n_bins < 1:
        raise ValueError(f"need n_folds >= 2 and n_bins >= 1, got {n_folds} and {n_bins}")
    x, y = as_data(scores, labels)
    codes = None if groups is None else codes_of(groups, len(x), "groups")
    try:
        check_defined(x, y)
        folds = _folds(levels_of(x), y, codes, n_folds, seed)
        probabilities = _cross_fitted(levels_of(x), y, folds)
    except UndefinedStatistic as error:
        return Calibration(None, None, (), (), len(x), int((y == 1).sum()), 0, str(error))
    bins = tuple(_bins(probabilities, y, n_bins, confidence))
    ece = sum(bin_.n * abs(bin_.share - bin_.probability) for bin_ in bins) / len(x)
    brier = float(((probabilities - y) ** 2).mean())
    n_used = int(folds.max()) + 1
    return Calibration(ece, brier, bins, tuple(probabilities.tolist()), len(x), int(y.sum()), n_used)


def _folds(levels: IntArray, y: FloatArray, groups: IntArray | None, n_folds: int, seed: int) -> IntArray:
    """Fold of each document, shape `(n,)`.

    The groups with most hallucinations come first, each to the fold that has fewest of them by then; of those, and for
    groups without any, to the fold with fewest documents. Equal ones come in a random order.
    """
    n_folds = min(n_folds, *units_of_each_class(y == 1, groups))
    if n_folds < 2:
        unit = "document" if groups is None else "group"
        raise UndefinedStatistic(f"no cross-fitting: one of the classes occurs in a single {unit} only")
    units, n_units = canonical_units(groups, levels, y.astype(np.int64))
    n_positive, sizes = np.bincount(units, y, n_units), np.bincount(units, minlength=n_units)
    fold_of = np.empty(n_units, dtype=np.int64)
    has = [(0.0, 0, fold) for fold in range(n_folds)]  # hallucinations, documents
    for unit in np.lexsort((np.random.default_rng(seed).permutation(n_units), -sizes, -n_positive)).tolist():
        positives, documents, fold = min(has) if n_positive[unit] else min(has, key=lambda state: (state[1], state[2]))
        fold_of[unit], has[fold] = fold, (positives + float(n_positive[unit]), documents + int(sizes[unit]), fold)
    return np.asarray(fold_of[units])


def _cross_fitted(levels: IntArray, y: FloatArray, folds: IntArray) -> FloatArray:
    probabilities = np.empty(len(y), dtype=np.float64)
    for fold in np.unique(folds):
        held_out = folds == fold
        if np.ptp(y[~held_out]) == 0:
            raise UndefinedStatistic("no cross-fitting: the documents outside of a fold are all of one class")
        fitted_levels, place, times = np.unique(levels[~held_out], return_inverse=True, return_counts=True)
        fit = isotonic(np.bincount(place, y[~held_out]), times)
        probabilities[held_out] = np.interp(levels[held_out], fitted_levels, fit)
    return probabilities


def isotonic(sums: npt.ArrayLike, times: npt.ArrayLike) -> FloatArray:
    """Isotonic regression of labels on levels: the closest shares in the squared sense that never fall.

    Pool adjacent violators (Barlow et al. 1972). Importing SciPy's takes longer than all fits of a report.

    Args:
        sums: Sum of the labels at each level, ascending, shape `(levels,)`.
        times: Number of documents at each level, positive, shape `(levels,)`.

    Returns:
        Fitted share of each level, shape `(levels,)`.

    Example:
        >>> isotonic([0, 1, 0, 2], [1, 1, 1, 2]).tolist()
        [0.0, 0.5, 0.5, 1.0]
    """
    blocks: list[tuple[float, float, int]] = []  # sum, documents, levels
    for total, n in zip(np.asarray(sums, dtype=np.float64).tolist(), np.asarray(times).tolist(), strict=True):
        block = (total, float(n), 1)
        # Blocks of equal shares become one, too: the fit is the same, and whole numbers are compared exactly.
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    shares, widths = [total / n for total, n, _ in blocks], [width for *_, width in blocks]
    return np.repeat(np.array(shares, dtype=np.float64), widths)


def _bins(probabilities: FloatArray, y: FloatArray, n_bins: int, confidence: float) -> list[ReliabilityBin]:
    number = np.minimum((probabilities * n_bins).astype(np.int64), n_bins - 1)
    bins = []
    for b in np.unique(number):
        inside = number == b
        n, share = int(inside.sum()), float(y[inside].mean())
        interval = wilson(share, n, confidence)
        mean = float(probabilities[inside].mean())
        bins.append(ReliabilityBin(float(b / n_bins), float((b + 1) / n_bins), n, mean, share, interval))
    return bins
