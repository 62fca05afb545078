r"""How well a score tells hallucinated answers from sound ones, over many questions.

Conventions: a *label* of 1 means hallucinated, 0 means not; a higher *score* means more likely hallucinated. A number
that is not defined is never replaced by a guess such as 0.5: it is reported as undefined, together with the reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.errors import HedgeError

__all__ = ["Estimate", "StratifiedAuroc", "UndefinedStatistic", "auroc", "estimate_auroc", "stratified_auroc"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Resamples are drawn in blocks of at most this many counts, which bounds memory at some ten megabytes.
_BLOCK = 1_000_000


class UndefinedStatistic(HedgeError, ValueError):
    """The statistic does not exist for these data; the message says why, in words fit for a report."""


@dataclass(frozen=True)
class Estimate:
    """A statistic with its uncertainty, or the reason why there is none.

    Attributes:
        value: The statistic; ``None`` if undefined.
        stderr: Its standard error; ``None`` if undefined or not asked for.
        n: Number of documents.
        n_positive: Number of documents labelled hallucinated.
        reason: Why ``value``, or ``stderr`` where it was asked for, is ``None``; ``None`` if nothing is missing.
    """

    value: float | None
    stderr: float | None
    n: int
    n_positive: int
    reason: str | None = None


@dataclass(frozen=True)
class StratifiedAuroc:
    """AUROC within strata.

    Attributes:
        value: Pooled within-stratum AUROC; ``None`` if no stratum has both classes.
        strata: AUROC of each stratum (without standard error), in order of first appearance.
        n_pairs: Number of (hallucinated, sound) pairs compared.
        reason: Why ``value`` is ``None``; ``None`` if it is not.
    """

    value: float | None
    strata: Mapping[Hashable, Estimate]
    n_pairs: int
    reason: str | None = None


def auroc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    r"""Area under the ROC curve: the probability that a hallucinated answer scores higher than a sound one.

    .. math::
        \mathrm{AUROC} = \frac{1}{P N} \sum_{i: y_i = 1} \sum_{j: y_j = 0}
        \bigl(\mathbf{1}[x_i > x_j] + \tfrac{1}{2} \mathbf{1}[x_i = x_j]\bigr)

    Args:
        scores: Scores, shape ``(n,)``; higher = more likely hallucinated. Infinite scores are ranked like any other.
        labels: Labels 0 or 1, shape ``(n,)``; 1 = hallucinated.

    Returns:
        A number in ``[0, 1]``.

    Raises:
        UndefinedStatistic: If there is no document, only one class, or a score or label is ``nan``.
        ValueError: If the lengths differ or a label is neither 0 nor 1.

    Example:
        >>> auroc([0.1, 0.7, 0.7, 0.9], [0, 0, 1, 1])
        0.875
    """
    # Imported late: scikit-learn takes longer to import than the rest of this module takes to run.
    from sklearn.metrics import roc_auc_score

    x, y = _as_data(scores, labels)
    _check_defined(x, y)
    # Ranks order the documents just as the scores do, and scikit-learn would refuse infinite scores.
    return float(roc_auc_score(y, _levels(x)))


def estimate_auroc(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
) -> Estimate:
    """AUROC with its bootstrap standard error; undefined cases are reported, not raised.

    Without ``groups`` the bootstrap is stratified: hallucinated and sound documents are resampled separately, so that
    no resample lacks a class. With ``groups`` whole groups are resampled (cluster bootstrap): several questions on one
    image are not independent, and treating them as such would make the standard error too small. A resample that
    happens to lack a class is then left out.

    Neither the order of the documents nor a monotone transformation of the scores changes the stratified result.

    Args:
        scores: Scores, shape ``(n,)``; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape ``(n,)``; 1 = hallucinated.
        n_resamples: Number of bootstrap resamples, at least 2.
        seed: Seed of the resampling; the same seed gives the same standard error.
        groups: Group (e.g. image id) of each document, length ``n``.

    Returns:
        The estimate. ``value`` is ``None`` if the AUROC is undefined; ``stderr`` alone is ``None`` if the data are too
        few to be resampled: one of the classes occurs in a single document (or group) only.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or ``n_resamples < 2``: mistakes of the caller, not
            properties of the data.

    Example:
        >>> estimate = estimate_auroc([0.1, 0.3, 0.7, 0.6, 0.8, 0.9], [0, 0, 0, 1, 1, 1])
        >>> round(estimate.value, 3), estimate.n, estimate.n_positive
        (0.889, 6, 3)
        >>> estimate_auroc([0.1, 0.2], [0, 0]).reason
        'no document is labelled hallucinated (2 documents)'
    """
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2, got {n_resamples}")
    x, y = _as_data(scores, labels)
    codes = None if groups is None else _codes(groups, len(x), "groups")
    n, n_positive = len(x), int((y == 1).sum())
    try:
        value = auroc(x, y)
        stderr, reason = _bootstrap_stderr(x, y, codes, n_resamples, np.random.default_rng(seed)), None
    except _UndefinedStderr as error:
        stderr, reason = None, str(error)
    except UndefinedStatistic as error:
        return Estimate(None, None, n, n_positive, str(error))
    return Estimate(value, stderr, n, n_positive, reason)


def stratified_auroc(scores: npt.ArrayLike, labels: npt.ArrayLike, strata: Sequence[Hashable]) -> StratifiedAuroc:
    r"""AUROC that compares documents only within the same stratum, e.g. within the same kind of question.

    .. math::
        \mathrm{AUROC}_\mathrm{within} = \frac{\sum_s P_s N_s \, \mathrm{AUROC}_s}{\sum_s P_s N_s}

    A score that merely recognises the harder kind of question has a high plain AUROC and one of 0.5 here.

    Args:
        scores: Scores, shape ``(n,)``; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape ``(n,)``; 1 = hallucinated.
        strata: Stratum of each document, length ``n``.

    Returns:
        The pooled value, with the number of pairs it rests on, and the AUROC of every stratum. A stratum with one class
        only has an undefined AUROC and adds nothing to the pooled one. A ``nan`` score makes the pooled value
        undefined: leaving its stratum out would silently change what is compared.

    Raises:
        ValueError: If lengths differ or a label is neither 0 nor 1.

    Example:
        >>> result = stratified_auroc([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1], ["open", "open", "closed", "closed"])
        >>> result.value, result.n_pairs
        (1.0, 2)
    """
    x, y = _as_data(scores, labels)
    codes = _codes(strata, len(x), "strata")
    parts = {name: _without_stderr(x[codes == i], y[codes == i]) for i, name in enumerate(dict.fromkeys(strata))}
    if np.isnan(x).any() or np.isnan(y).any():
        return StratifiedAuroc(None, parts, 0, "a score or label is missing (NaN)")
    pairs = {name: part.n_positive * (part.n - part.n_positive) for name, part in parts.items()}
    total = sum(pairs.values())
    if not total:
        reason = "no documents" if not len(x) else "no stratum has both hallucinated and sound documents"
        return StratifiedAuroc(None, parts, 0, reason)
    pooled = sum(pairs[name] * part.value for name, part in parts.items() if part.value is not None) / total
    return StratifiedAuroc(pooled, parts, total)


class _UndefinedStderr(Exception):
    """The statistic exists, its bootstrap standard error does not."""


def _without_stderr(x: FloatArray, y: FloatArray) -> Estimate:
    n, n_positive = len(x), int((y == 1).sum())
    try:
        return Estimate(auroc(x, y), None, n, n_positive)
    except UndefinedStatistic as error:
        return Estimate(None, None, n, n_positive, str(error))


def _as_data(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"scores and labels must have one dimension, got shapes {x.shape} and {y.shape}")
    if len(x) != len(y):
        raise ValueError(f"scores and labels differ in length: {len(x)} and {len(y)}")
    wrong = ~(np.isin(y, (0, 1)) | np.isnan(y))
    if wrong.any():
        raise ValueError(f"labels must be 0 or 1 (1 = hallucinated), but labels[{wrong.argmax()}] is {y[wrong][0]:g}")
    return x, y


def _check_defined(x: FloatArray, y: FloatArray) -> None:
    if not len(x):
        raise UndefinedStatistic("no documents")
    for name, values in (("score", x), ("label", y)):
        if missing := int(np.isnan(values).sum()):
            raise UndefinedStatistic(f"the {name} of {missing} of {len(x)} documents is missing (NaN)")
    if not (y == 1).any():
        raise UndefinedStatistic(f"no document is labelled hallucinated ({_documents(len(x))})")
    if not (y == 0).any():
        raise UndefinedStatistic(f"every document is labelled hallucinated ({_documents(len(x))})")


def _documents(n: int) -> str:
    return "1 document" if n == 1 else f"{n} documents"


def _codes(values: Sequence[Hashable], n: int, name: str) -> IntArray:
    """Number of each value in order of first appearance."""
    if len(values) != n:
        raise ValueError(f"{name} has length {len(values)}, but there are {n} documents")
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)


def _levels(x: FloatArray) -> IntArray:
    """Position of each score among the distinct scores; ties share one."""
    return np.unique(x, return_inverse=True)[1].astype(np.int64)


def _bootstrap_stderr(
    x: FloatArray, y: FloatArray, groups: IntArray | None, n_resamples: int, rng: np.random.Generator
) -> float:
    positive = y == 1
    units = np.arange(len(x)) if groups is None else groups
    # A class that rests on one unit never varies between resamples: the standard error would be far too small.
    if min(len(np.unique(units[positive])), len(np.unique(units[~positive]))) < 2:
        unit = "document" if groups is None else "group"
        raise _UndefinedStderr(f"no standard error: one of the classes occurs in a single {unit} only")
    if groups is None:
        areas = _stratified_resamples(_levels(x), positive, n_resamples, rng)
    else:
        areas = _group_resamples(_levels(x), positive, groups, n_resamples, rng)
    return float(np.nanstd(areas, ddof=1))


def _stratified_resamples(
    levels: IntArray, positive: npt.NDArray[np.bool_], n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """AUROCs of resamples drawn within each class.

    Drawing documents with replacement and counting them by score is one multinomial draw over the distinct scores.
    """
    n_levels = int(levels.max()) + 1
    positives = np.bincount(levels[positive], minlength=n_levels)
    negatives = np.bincount(levels[~positive], minlength=n_levels)
    rng_positive, rng_negative = rng.spawn(2)  # a stream for each class, so that the size of the blocks plays no role
    return np.concatenate(
        [
            _areas(_resample_counts(positives, size, rng_positive), _resample_counts(negatives, size, rng_negative))
            for size in _block_sizes(n_resamples, n_levels)
        ]
    )


def _resample_counts(counts: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    n = int(counts.sum())
    return rng.multinomial(n, counts / n, size=size)


def _group_resamples(
    levels: IntArray, positive: npt.NDArray[np.bool_], groups: IntArray, n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """AUROCs of resamples of whole groups; ``nan`` where a resample lacks a class."""
    from scipy.sparse import csr_array

    n_groups, n_levels = int(groups.max()) + 1, int(levels.max()) + 1

    def members(chosen: npt.NDArray[np.bool_]) -> csr_array:
        cells = (groups[chosen], levels[chosen])
        return csr_array((np.ones(int(chosen.sum()), dtype=np.int64), cells), shape=(n_groups, n_levels))

    positives, negatives = members(positive), members(~positive)
    areas = []
    for size in _block_sizes(n_resamples, max(n_groups, n_levels)):
        times = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=size)
        areas.append(_areas(times @ positives, times @ negatives))
    return np.concatenate(areas)


def _areas(positives: IntArray, negatives: IntArray) -> FloatArray:
    """AUROC of each row, given how many documents of each class it has at each distinct score, ascending."""
    below = np.cumsum(negatives, axis=1) - negatives
    wins = (positives * (2 * below + negatives)).sum(axis=1)  # twice the wins, so that ties stay whole numbers
    pairs = 2 * positives.sum(axis=1) * negatives.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(wins / pairs, dtype=np.float64)


def _block_sizes(n_resamples: int, width: int) -> list[int]:
    size = max(1, min(n_resamples, _BLOCK // width))
    whole, rest = divmod(n_resamples, size)
    return [size] * whole + [rest] * (rest > 0)
