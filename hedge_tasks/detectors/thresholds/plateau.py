"""The middle of the range of thresholds that are as good as the best, and what choosing adds to an AUROC's error.

The AUROC over the threshold is a step function with hundreds of steps, some of them 1e-5 wide; which of them is highest
is decided by a few documents. A threshold in the middle of a wide range with about the best AUROC is the same in most
subsets of the documents. Both functions work on many weightings of the documents at once: a fold is a weighting with
zeros, a resample one with counts.
"""

from __future__ import annotations

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

# Weights in one go, as many as a fast cache holds.
_AT_ONCE = 100_000


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
        hallucinated, supported = self.by_class(weights)
        distinct, places = self._layouts
        return np.stack([_areas(layout, hallucinated, supported) for layout in distinct], axis=1)[:, places]

    def by_class(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights of the hallucinated and of the supported documents, a column each."""
        return weights[:, self.positive == 1], weights[:, self.positive == 0]

    @cached_property
    def _layouts(self) -> tuple[list[_Layout], IntArray]:
        """Return how each distinct row of scores orders the documents, and which of them each threshold has."""
        distinct, places = np.unique(self.scores, axis=0, return_inverse=True)
        return [_layout(scores, self.positive) for scores in distinct], places.reshape(-1)


def weighted_areas(scores: FloatArray, positive: FloatArray, weights: FloatArray) -> FloatArray:
    """AUROC (Mann-Whitney, ties half) of each row of scores under its weighting; nan where a class has none.

    Args:
        scores, weights: Shape `(r, n)`.
        positive: Whether hallucinated, shape `(n,)`.
    """
    order = np.argsort(scores, axis=1, kind="stable")
    ascending = np.take_along_axis(scores, order, axis=1)
    hallucinated, supported = (
        np.take_along_axis(weights * of_class, order, axis=1) for of_class in (positive, 1 - positive)
    )
    up_to = np.cumsum(supported, axis=1)
    # Where the run of equal scores that each document is in begins and ends.
    changes, places = ascending[:, 1:] != ascending[:, :-1], np.arange(scores.shape[1])
    first = np.pad(changes, ((0, 0), (1, 0)), constant_values=True)
    begins = np.maximum.accumulate(np.where(first, places, 0), axis=1)
    last = np.where(np.pad(changes, ((0, 0), (0, 1)), constant_values=True), places, scores.shape[1])
    ends = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    lower = np.take_along_axis(up_to - supported, begins, axis=1)
    at_most = np.take_along_axis(up_to, ends, axis=1)
    pairs = hallucinated.sum(axis=1) * supported.sum(axis=1)
    won = (hallucinated * (lower + at_most)).sum(axis=1) / 2
    areas: FloatArray = np.divide(won, pairs, out=np.full(len(won), np.nan), where=pairs > 0)
    return areas


_Layout = tuple[IntArray, IntArray, IntArray]
"""Supported documents in the order of their scores; and of each hallucinated one, how many score lower, and at most the
same."""


def _layout(scores: FloatArray, positive: FloatArray) -> _Layout:
    hallucinated, supported = scores[positive == 1], scores[positive == 0]
    order = np.argsort(supported, kind="stable")
    ascending = supported[order]
    return order, np.searchsorted(ascending, hallucinated), np.searchsorted(ascending, hallucinated, side="right")


def _areas(layout: _Layout, hallucinated: FloatArray, supported: FloatArray) -> FloatArray:
    order, lower, at_most = layout
    below = np.zeros((len(supported), len(order) + 1))
    np.cumsum(supported[:, order], axis=1, out=below[:, 1:])
    won = np.einsum("ri,ri->r", hallucinated, below[:, lower] + below[:, at_most]) / 2
    pairs = hallucinated.sum(axis=1) * supported.sum(axis=1)
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
    grid = Grid.of(profiles, target, low, high)
    names = [name for name in profiles[0].names if all(name in profile.names for profile in profiles)]
    tables = {name: Grid.of(profiles, name, low, high).scores for name in names}
    fixed = {
        name: _layout(np.array([p.at(name, t) for p, t in zip(profiles, thresholds, strict=True)]), grid.positive)
        for name in names
    }
    units = np.unique([p.group if p.group is not None else f"\0{p.id}" for p in profiles], return_inverse=True)[1]
    n_units, documents = int(units.max()) + 1, np.arange(len(profiles))
    rng = np.random.default_rng(seed)
    rechosen: dict[str, list[float]] = {name: [] for name in names}
    unchanged: dict[str, list[float]] = {name: [] for name in names}
    at_once = max(1, _AT_ONCE // (folds * repeats * len(profiles)))
    for start in range(0, RESAMPLES, at_once):
        resamples = []
        for _ in range(start, min(start + at_once, RESAMPLES)):
            times = rng.multinomial(n_units, np.full(n_units, 1 / n_units))[units].astype(np.float64)
            resamples.append((times, np.stack([rng.permutation(n_units)[units] % folds for _ in range(repeats)])))
        others = [times * (fold[:, None, :] != np.arange(folds)[None, :, None]) for times, fold in resamples]
        areas = grid.areas(np.concatenate(others).reshape(-1, len(profiles)))
        resample_areas = areas.reshape(len(resamples), folds * repeats, -1)
        # Without both classes in every fold nothing is chosen.
        usable = [i for i, rows in enumerate(resample_areas) if not np.isnan(rows).any()]
        if not usable:
            continue
        places = [plateau(resample_areas[i]).reshape(repeats, folds) for i in usable]
        chosen = np.stack(
            [
                np.median(np.take_along_axis(place, resamples[i][1], axis=1), axis=0).astype(np.int64)
                for i, place in zip(usable, places, strict=True)
            ]
        )
        weights = np.stack([resamples[i][0] for i in usable])
        for name in names:
            rechosen[name] += weighted_areas(tables[name][chosen, documents], grid.positive, weights).tolist()
            unchanged[name] += _areas(fixed[name], *grid.by_class(weights)).tolist()
    if len(rechosen[target]) < 2:
        return {}
    added = {name: float(np.var(rechosen[name], ddof=1) - np.var(unchanged[name], ddof=1)) for name in names}
    return {name: round(max(0.0, variance) ** 0.5, 6) for name, variance in added.items()}
