"""The middle of the range of thresholds that are as good as the best, and what choosing adds to an AUROC's error.

The AUROC over the threshold is a step function with hundreds of steps, some of them 1e-5 wide; which of them is highest
is decided by a few documents. A threshold in the middle of a wide range with about the best AUROC is the same in most
subsets of the documents. Both functions work on many weightings of the documents at once: a fold is a weighting with
zeros, a resample one with counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedge_tasks.detectors.thresholds.profile import DocumentProfile, FloatArray, IntArray

STEP = 0.002
WINDOW = 5
"""Neighbours on either side that the AUROC is averaged with: over 0.02."""
TOLERANCE = 0.01
"""How much less AUROC, after averaging, is as good as the best."""
RESAMPLES = 100


@dataclass(frozen=True, eq=False)
class Grid:
    """A score of labelled documents at evenly spaced thresholds.

    Attributes:
        thresholds: Shape `(g,)`.
        scores: Shape `(g, n)`.
        positive: Whether hallucinated, shape `(n,)`.
    """

    thresholds: FloatArray
    scores: FloatArray
    positive: FloatArray

    @classmethod
    def of(cls, profiles: Sequence[DocumentProfile], score: str, low: float, high: float) -> Grid:
        """Tabulate the profiles from `low` to `high`, both ends included."""
        thresholds = np.linspace(low, high, max(2, round((high - low) / STEP) + 1))
        columns = [p.scores[score][np.searchsorted(p.thresholds, thresholds.clip(low, high))] for p in profiles]
        positive = np.array([profile.label == 1 for profile in profiles], dtype=np.float64)
        return cls(thresholds, np.stack(columns, axis=1), positive)

    def areas(self, weights: FloatArray) -> FloatArray:
        """AUROC at every threshold under each weighting of the documents, shapes `(r, n)` to `(r, g)`."""
        distinct, places = self._distinct
        return np.stack([weighted_areas(scores, self.positive, weights) for scores in distinct], axis=1)[:, places]

    @cached_property
    def _distinct(self) -> tuple[FloatArray, IntArray]:
        """Return the distinct rows of scores, and which of them each threshold has."""
        distinct, places = np.unique(self.scores, axis=0, return_inverse=True)
        return distinct, places.reshape(-1)


def weighted_areas(scores: FloatArray, positive: FloatArray, weights: FloatArray) -> FloatArray:
    """AUROC (Mann-Whitney, ties half) under each weighting, shape `(r,)`; nan where a class has no weight.

    Args:
        scores: Shape `(n,)`.
        positive: Whether hallucinated, shape `(n,)`.
        weights: Of the documents, shape `(r, n)`.
    """
    hallucinated, supported = weights[:, positive == 1], weights[:, positive == 0]
    order = np.argsort(scores[positive == 0], kind="stable")
    ascending, own = scores[positive == 0][order], scores[positive == 1]
    below = np.pad(np.cumsum(supported[:, order], axis=1), ((0, 0), (1, 0)))
    twice = below[:, np.searchsorted(ascending, own)] + below[:, np.searchsorted(ascending, own, side="right")]
    won, pairs = (hallucinated * twice).sum(axis=1) / 2, hallucinated.sum(axis=1) * supported.sum(axis=1)
    areas: FloatArray = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return areas


def plateau(areas: FloatArray) -> IntArray:
    """Index of the middle of each row's plateau: around the highest moving average, as far as it stays as good.

    Args:
        areas: AUROC at evenly spaced thresholds, shape `(r, g)`.

    Example:
        >>> spike = np.full((1, 60), 0.6)
        >>> spike[0, 10:31], spike[0, 50] = 0.7, 0.75
        >>> plateau(spike)
        array([20])
    """
    n = areas.shape[1]
    sums = np.cumsum(np.pad(areas, ((0, 0), (1, 0))), axis=1)
    ends, begins = np.minimum(np.arange(n) + WINDOW + 1, n), np.maximum(np.arange(n) - WINDOW, 0)
    smooth = (sums[:, ends] - sums[:, begins]) / (ends - begins)
    best = smooth.argmax(axis=1)
    worse = smooth < np.take_along_axis(smooth, best[:, None], axis=1) - TOLERANCE
    places = np.arange(n)
    left = np.where(worse & (places < best[:, None]), places, -1).max(axis=1) + 1
    right = np.where(worse & (places > best[:, None]), places, n).min(axis=1) - 1
    middle: IntArray = (left + right) // 2
    return middle


def _chosen(grid: Grid, times: FloatArray, fold: IntArray, folds: int) -> IntArray | None:
    """Return each document's place on the grid, chosen from the folds it is not in; None where one lacks a class.

    Args:
        times: how often each document counts, shape `(n,)`.
        fold: of each document in each split, shape `(repeats, n)`.
    """
    areas = grid.areas((times * (fold[:, None, :] != np.arange(folds)[:, None])).reshape(-1, len(times)))
    if np.isnan(areas).any():
        return None
    places = np.take_along_axis(plateau(areas).reshape(len(fold), folds), fold, axis=1)
    return np.median(places, axis=0).astype(np.int64)


def choice_errors(
    profiles: Sequence[DocumentProfile],
    thresholds: FloatArray,
    target: str,
    low: float,
    high: float,
    *,
    folds: int,
    repeats: int,
    seed: int,
) -> dict[str, float]:
    """Return what choosing the threshold by cross-fitting adds to the standard error of each score's AUROC.

    A bootstrap through the choice: groups of documents are resampled, split anew, and every document's threshold is
    chosen again from the other folds. The variance of the AUROC over that, less its variance over the same resamples
    with the thresholds left as they are, is what the choice adds. Target of the search and of the error may differ:
    the thresholds follow the target, the AUROC is each score's.

    Args:
        profiles: labelled documents, sorted by id.
        thresholds: chosen for them, shape `(n,)`.
        target: score that is searched.
        low, high: range that is searched.
        folds, repeats: of the cross-fitting.
        seed: of resamples and splits.
    """
    names = [name for name in profiles[0].names if all(name in profile.names for profile in profiles)]
    tables = {name: Grid.of(profiles, name, low, high) for name in names}
    fixed = {name: np.array([p.at(name, t) for p, t in zip(profiles, thresholds, strict=True)]) for name in names}
    grid, documents = tables[target], np.arange(len(profiles))
    units = np.unique([p.group if p.group is not None else f"\0{p.id}" for p in profiles], return_inverse=True)[1]
    n_units = int(units.max()) + 1
    rng = np.random.default_rng(seed)
    rechosen: dict[str, list[float]] = defaultdict(list)
    unchanged: dict[str, list[float]] = defaultdict(list)
    for _ in range(RESAMPLES):
        times = rng.multinomial(n_units, np.full(n_units, 1 / n_units))[units].astype(np.float64)
        fold = np.stack([rng.permutation(n_units)[units] % folds for _ in range(repeats)])
        chosen = _chosen(grid, times, fold, folds)
        if chosen is None:
            continue
        for name in names:
            again = tables[name].scores[chosen, documents]
            rechosen[name] += weighted_areas(again, grid.positive, times[None]).tolist()
            unchanged[name] += weighted_areas(fixed[name], grid.positive, times[None]).tolist()
    if len(rechosen[target]) < 2:
        return {}
    added = {name: float(np.var(rechosen[name], ddof=1) - np.var(unchanged[name], ddof=1)) for name in names}
    return {name: round(max(0.0, variance) ** 0.5, 6) for name, variance in added.items()}
