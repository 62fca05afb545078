"""Cross-fitting: every document is scored by a state that has not seen its image, and no other document about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from hedge_tasks.detectors.probes.base import FittedDetector, FloatArray, IntArray, settled
from hedge_tasks.detectors.probes.folds import cross_fitting_folds
from hedge_tasks.errors import DataError

REPEATS = 5
"""Partitions into folds: a number is the mean over them."""

INFLATION = 2.0
"""How many times as large the variance of a cross-fitted ROC-AUC is as its scores show.

Documents share what is fitted, so that their scores are wrong together: of two that each have a say in the other's
score the error counts twice. That is so where labels are shuffled (measured: about two, for every method); where there
is a signal it is less, and the interval rather too wide.
"""


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
        for train, test in cross_fitting_folds(labels, groups, seed * repeats + r):
            if len(set(targets[train].tolist())) < 2:
                raise DataError("cross-fitting needs both targets in every fold; too few images have one of them")
            arrays = detector.fit(states[train], targets[train], index[train])
            scores = settled(detector.score(arrays, states[test]))
            by_repeat[r, test] = (rankdata(scores) - 0.5) / len(test)
    values: FloatArray = np.round(by_repeat.mean(axis=0), 9)
    return values
