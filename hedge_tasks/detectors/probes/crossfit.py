"""Cross-fitting: every document is scored by a state that has not seen its image, and no other document about it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.detectors.probes.base import FittedDetector, FloatArray, IntArray, settled
from hedge_tasks.errors import DataError
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import estimate_auroc, stratified_auroc
from hedge_tasks.statistics.base import midranks

REPEATS = 5
"""Partitions into folds: a number is the mean over them."""

SHUFFLES = 40
"""Shuffles of the labels that say what fitting adds to the error of a ROC-AUC."""

FOLDS = 5


@dataclass(frozen=True)
class Shuffled:
    """The AUROC that is left when labels are shuffled.

    Documents share what is fitted, so that their scores are wrong together: of two that each have a say in the other's
    score the error counts twice. A score that is not fitted has none of that. How many times as large the variance is
    is a property of the method and of its states, and carries over to where there is a signal; there it is less, and
    the interval rather too wide.

    Attributes:
        mean: ROC-AUC; 0.5 where nothing leaks.
        inflation: mean square of its distance from 0.5, as a multiple of the variance that the scores alone show; 1 at
            least.
        within: the same of the ROC-AUC within strata that are part of a group each.
    """

    mean: float
    inflation: float
    within: float = 1.0


def cross_fitted(
    detector: FittedDetector,
    states: FloatArray,
    targets: IntArray,
    labels: IntArray,
    groups: Sequence[str],
    *,
    n_labels: int | None = None,
    repeats: int = REPEATS,
    seed: int = 0,
) -> FloatArray:
    """Fit a detector on the documents of other groups, and score.

    Args:
        states: shape (n, layers, width).
        targets: what it is fitted to, 0 or 1, shape (n,).
        labels: what it is measured against, 0 or 1, shape (n,).
        groups: of the documents, length n.
        n_labels: at most so many documents to fit on; None takes all of the other folds.
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
            chosen = train if n_labels is None else _sample(train, targets, n_labels, rng)
            arrays = detector.fit(states[chosen], targets[chosen], index[chosen])
            scores = settled(detector.score(arrays, states[test]))
            by_repeat[r, test] = (np.asarray(midranks(scores.tolist())) - 0.5) / len(test)
    values: FloatArray = np.round(by_repeat.mean(axis=0), 9)
    return values


def shuffled(
    detector: FittedDetector,
    states: FloatArray,
    targets: IntArray,
    labels: IntArray,
    groups: Sequence[str],
    *,
    strata: Sequence[Hashable] | None = None,
    repeats: int = REPEATS,
    seed: int = 0,
) -> Shuffled:
    """Cross-fit on shuffled labels. Arguments as of `cross_fitted`; targets and labels are shuffled together.

    Whole groups are shuffled: documents about one image have alike labels and alike states, and there are fewer images
    to be fitted to by chance than documents.

    Args:
        strata: each within a group, such as the answers of sentences: all of one are scored by the same fit. Within
            strata that lie across folds useless features have no ROC-AUC of 0.5: the more errors of a stratum there are
            to fit on, the fewer are in the fold.

    Raises:
        DataError: hardly any shuffle leaves both classes in every fold.
    """
    index = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)[1]
    rng, pooled, within = np.random.default_rng([seed, 1]), list[Number](), list[Number]()
    for _ in range(SHUFFLES):
        order, folds = shuffle_groups(index, rng), int(rng.integers(1 << 30))
        try:
            scores = cross_fitted(detector, states, targets[order], labels[order], groups, repeats=repeats, seed=folds)
        except DataError:  # by bad luck a fold has one class alone
            continue
        units = index.tolist()
        pooled.append(estimate_auroc(scores, labels[order], groups=units, fewest=1))
        if strata is not None:
            within.append(stratified_auroc(scores, labels[order], strata, groups=units, each=False))
    if len(pooled) < SHUFFLES // 2:
        raise DataError("too few images have one of the classes: shuffled labels leave folds without it")
    mean = float(np.mean([number.value for number in pooled if number.value is not None]))
    return Shuffled(mean, _inflation(pooled), _inflation(within))


def _inflation(numbers: Sequence[Number]) -> float:
    """Mean square of the numbers' distance from 0.5, as a multiple of the variance that they state; 1 at least."""
    pairs = [(number.value, number.stderr) for number in numbers if number.value is not None and number.stderr]
    if not pairs:
        return 1.0
    values, stderrs = np.array(pairs).T
    return max(1.0, float(np.mean((values - 0.5) ** 2) / np.mean(stderrs**2)))


def shuffle_groups(groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the documents in an order in which whole groups have changed places.

    Groups of one size exchange their documents; where sizes differ, a group's documents still stay side by side. Within
    a group they are shuffled, too: what follows from the place of a sentence in its answer is gone.
    """
    at_home = np.argsort(groups, kind="stable")
    blocks = np.split(at_home, np.flatnonzero(np.diff(groups[at_home])) + 1)
    order = np.empty(len(groups), dtype=np.int64)
    order[at_home] = np.concatenate([rng.permutation(blocks[k]) for k in rng.permutation(len(blocks))])
    return order


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


def _sample(train: IntArray, targets: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return at most n documents by chance, with one of each class at least."""
    if n >= len(train):
        return train
    firsts = [int(rng.choice(train[targets[train] == kind])) for kind in (0, 1)]
    others: IntArray = rng.choice(np.setdiff1d(train, firsts), size=max(0, n - len(firsts)), replace=False)
    return np.sort(np.concatenate([firsts, others]))
