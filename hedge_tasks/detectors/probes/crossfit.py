"""Cross-fitting: every document is scored by a state that has not seen its image, and no other document about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from hedge_tasks.detectors.probes.base import FittedDetector, FloatArray, IntArray, settled
from hedge_tasks.errors import DataError

REPEATS = 5
"""Partitions into folds: a number is the mean over them."""

INFLATION = 2.0
"""How many times as large the variance of a cross-fitted ROC-AUC is as its scores show.

Documents share what is fitted, so that their scores are wrong together: of two that each have a say in the other's
score the error counts twice. That is so where labels are shuffled (measured: about two, for every method); where there
is a signal it is less, and the interval rather too wide.
"""

FOLDS = 5


def cross_fitted(
    detector: FittedDetector,
    states: FloatArray,
    targets: IntArray,
    labels: IntArray,
    groups: Sequence[str],
    *,
    repeats: int = REPEATS,
    seed: int = 0,
) -> FloatArray:
    """Fit a detector on the documents of other groups, and score.

    Args:
        states: shape (n, layers, width).
        targets: what it is fitted to, 0 or 1, shape (n,).
        labels: what it is measured against, 0 or 1, shape (n,).
        groups: of the documents, length n.
        repeats: partitions.
        seed: of the partitions.

    Returns:
        Shape (n,), in (0, 1): the mean over partitions of the rank within the fold. Log-odds of two fits are not on one
        scale, and pooling them makes useless features look worse than chance.

    Raises:
        DataError: a class has too few groups.
    """
    index = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)[1]
    by_repeat = np.empty((repeats, len(labels)))
    for r in range(repeats):
        rng = np.random.default_rng([seed, r])
        for train, test in _folds(targets, labels, index, rng):
            arrays = detector.fit(states[train], targets[train], index[train])
            scores = settled(detector.score(arrays, states[test]))
            by_repeat[r, test] = (rankdata(scores) - 0.5) / len(test)
    values: FloatArray = np.round(by_repeat.mean(axis=0), 9)
    return values


def _folds(
    targets: IntArray, labels: IntArray, groups: IntArray, rng: np.random.Generator
) -> list[tuple[IntArray, IntArray]]:
    """Whole groups, dealt so that every fold has about as many positives; both classes are in every training part.

    Groups are shuffled, sorted by their number of positive labels, and dealt in turn.
    """
    n = int(groups.max()) + 1
    if n < 2 * FOLDS:
        raise DataError(f"cross-fitting needs {2 * FOLDS} images at least, and there are {n}")
    positives = np.bincount(groups, weights=labels, minlength=n)
    order = rng.permutation(n)
    order = order[np.argsort(-positives[order], kind="stable")]
    fold = np.empty(n, dtype=np.int64)
    # Every row of so many groups is dealt in an order of its own, or the first fold would have the most of everything.
    for start in range(0, n, FOLDS):
        row = order[start : start + FOLDS]
        fold[row] = rng.permutation(FOLDS)[: len(row)]
    folds = fold[groups]
    parts = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(FOLDS)]
    if any(len(set(targets[train].tolist())) < 2 for train, _ in parts):
        raise DataError("cross-fitting needs both classes in every fold; too few images have one of them")
    return parts
