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
    codes = np.arange(len(x)) if groups is None else codes_of(groups, len(x), "groups")
    try:
        check_defined(x, y)
        n_used = min(n_folds, *units_of_each_class(y == 1, codes))
        if n_used < 2:
            raise UndefinedStatistic("no cross-fitting: one of the classes occurs in a single document or group only")
        probabilities = _cross_fitted(levels_of(x).astype(np.float64), y, codes, n_used, seed)
    except UndefinedStatistic as error:
        return Calibration(None, None, (), (), len(x), int((y == 1).sum()), 0, str(error))
    bins = tuple(_bins(probabilities, y, n_bins, confidence))
    ece = sum(bin_.n * abs(bin_.share - bin_.probability) for bin_ in bins) / len(x)
    brier = float(((probabilities - y) ** 2).mean())
    return Calibration(ece, brier, bins, tuple(probabilities.tolist()), len(x), int(y.sum()), n_used)


def _cross_fitted(x: FloatArray, y: FloatArray, groups: IntArray, n_folds: int, seed: int) -> FloatArray:
    from sklearn.isotonic import IsotonicRegression
    from sklearn.model_selection import StratifiedGroupKFold

    # The folds follow what is in the groups, neither their names nor the order of the documents.
    content: dict[int, list[tuple[float, float]]] = {}
    for i in np.lexsort((y, x)):
        content.setdefault(int(groups[i]), []).append((float(x[i]), float(y[i])))
    place = {group: number for number, group in enumerate(sorted(content, key=content.__getitem__))}
    units = np.array([place[group] for group in groups.tolist()], dtype=np.int64)
    order = np.lexsort((y, x, units))
    x, y, units = x[order], y[order], units[order]
    probabilities = np.empty(len(y), dtype=np.float64)
    for train, test in StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed).split(x, y, units):
        if np.ptp(y[train]) == 0:
            raise UndefinedStatistic("no cross-fitting: the documents outside of a fold are all of one class")
        probabilities[order[test]] = IsotonicRegression(out_of_bounds="clip").fit(x[train], y[train]).predict(x[test])
    return probabilities


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
