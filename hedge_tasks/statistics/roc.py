"""AUROC with standard error and interval: DeLong and bootstrap, for independent documents and for groups of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.errors import unknown
from hedge_tasks.numbers import FOUR_DIGITS, ONE_DIGIT, Number
from hedge_tasks.statistics.base import (
    FEWEST_OF_A_CLASS,
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    UndefinedError,
    UndefinedStatistic,
    as_data,
    check_confidence,
    check_defined,
    check_enough,
    check_resamples,
    codes_of,
    interval_of_logit,
    levels_of,
    logit_interval,
    logits_of,
    n_distinct,
    wilson,
)
from hedge_tasks.statistics.memory import by_content
from hedge_tasks.statistics.placements import (
    auroc_components,
    check_units,
    component_variance,
    degrees_of_freedom,
    deleted_spread,
    disjoint_pairs,
    whole_auroc,
    without_each_group,
)
from hedge_tasks.statistics.resampling import block_sizes, canonical_units, percentile_interval, unit_counts

METHODS = ("delong", "bootstrap", "percentile")

JACKKNIFE = "delete-one-group jackknife"
"""The name of clustered standard errors."""


def auroc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    r"""Area under the ROC curve: the probability that a hallucinated answer scores higher than a supported one.

    .. math::
        \mathrm{AUROC} = \frac{1}{P N} \sum_{i: y_i = 1} \sum_{j: y_j = 0}
        \bigl(\mathbf{1}[x_i > x_j] + \tfrac{1}{2} \mathbf{1}[x_i = x_j]\bigr)

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated. Infinite scores are ranked like any other.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.

    Returns:
        A number in `[0, 1]`.

    Raises:
        UndefinedStatistic: If there is no document, only one class, or a score or label is `nan`.
        ValueError: If the lengths differ or a label is neither 0 nor 1.

    Example:
        >>> auroc([0.1, 0.7, 0.7, 0.9], [0, 0, 1, 1])
        0.875
    """
    x, y = as_data(scores, labels)
    check_defined(x, y)
    # From whole numbers, as those of the resamples: equal to scikit-learn's to the last digits, which refuses infinite
    # scores and takes twenty times as long to check its arguments.
    levels, positive = levels_of(x), y == 1
    n_levels = int(levels.max()) + 1
    counts = [np.bincount(levels[chosen], minlength=n_levels)[None] for chosen in (positive, ~positive)]
    return float(_areas(*counts)[0])


def estimate_auroc(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
    method: str = "delong",
    confidence: float = 0.95,
    extra_stderr: float = 0.0,
    inflation: float = 1.0,
    fewest: int = FEWEST_OF_A_CLASS,
) -> Number:
    """AUROC with standard error and confidence interval; undefined cases are reported, not raised.

    `groups` are for documents that are not independent, such as several questions on one image: taken for
    independent, they would make the standard error too small. The methods:

    - `"delong"`: no resampling and so no seed: every machine gets the same interval, which reports, lmms-eval's table
      and leaderboards share. Standard error by DeLong et al. 1988, computed as in Sun & Xu 2014; interval from it on
      the logit scale. With groups both are those of the delete-one-group jackknife (CR3; MacKinnon, Nielsen & Webb
      2023), the interval's of the logit of the AUROC: groups of unequal size need it (benchmarks/RESULTS.md).
    - `"bootstrap"`: standard error over resamples, interval from it on the logit scale. Without groups the bootstrap
      is stratified: hallucinated and supported documents are resampled separately, so that no resample lacks a class.
      With groups whole groups are resampled (cluster bootstrap), and a resample that happens to lack a class is left
      out.
    - `"percentile"`: the same standard error; the interval has the quantiles of the resamples.

    Why the logit scale: near 1 the distribution of the AUROC is skewed. An interval symmetric about the estimate
    covers too rarely there, and so does one from the percentiles (`benchmarks/interval_coverage.py` measures all).
    With groups the quantiles are Student's, with the effective number of groups (`degrees_of_freedom`). Where one group
    carries a class there is no interval, and where a class has fewer than 5 documents there is no number.

    Where nothing varies (the classes are perfectly separated, or all scores are equal) the standard error comes out as
    0 and says nothing. The interval is then Wilson's, for as many independent pairs as there surely are: as many as
    the smaller class has documents (or groups).

    Neither the order of the documents, nor the names of groups, nor a monotone transformation of the scores changes the
    result.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        n_resamples: Number of bootstrap resamples, at least 2.
        seed: Seed of the resampling; the same seed gives the same standard error.
        groups: Group (e.g. image id) of each document, length `n`.
        method: `"delong"`, `"bootstrap"` or `"percentile"`.
        confidence: Level of the interval, in (0, 1).
        extra_stderr: Standard error of the AUROC that these scores do not show, such as that of a threshold which
            was chosen on the data; added in quadrature. The interval is then the logit one.
        inflation: Variance of the AUROC as a multiple of what these scores show, at least 1: that of scores which were
            fitted on the same data. The interval is then the logit one, as far as it is in Wilson's for the pairs that
            surely are independent: near 1 the jackknife's logit depends on a single group.
        fewest: documents of the rarer class below which there is no value: with two of them an interval of 95 % holds
            the true number 77 % of the time, and the number itself says next to nothing.

    Returns:
        The estimate. `value` is `None` if the AUROC is undefined or rests on fewer than `fewest` of a class; `stderr`
        and `interval` alone are `None` if one of the classes occurs in a single document (or group) only, or nearly so.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, `n_resamples < 2`, the method is unknown or the
            level is not in (0, 1): mistakes of the caller, not properties of the data.

    Example:
        >>> estimate = estimate_auroc([0.1, 0.3, 0.7, 0.2, 0.1, 0.6, 0.8, 0.9, 0.5, 0.7], [0] * 5 + [1] * 5)
        >>> round(estimate.value, 3), estimate.n, estimate.n_rarer
        (0.9, 10, 5)
        >>> [round(bound, 2) for bound in estimate.interval]
        [0.45, 0.99]
        >>> estimate_auroc([0.1, 0.3, 0.9], [0, 0, 1]).reason
        'only 1 of 3 documents is hallucinated; an AUROC needs 5 of each class'
        >>> estimate_auroc([0.1, 0.2], [0, 0]).reason
        'no document is labelled hallucinated (2 documents)'
    """
    check_resamples(n_resamples)
    check_confidence(confidence)
    if method not in METHODS:
        raise unknown("interval method", method, METHODS)
    x, y = as_data(scores, labels)
    codes = None if groups is None else codes_of(groups, len(x), "groups")
    positive = y == 1
    counts: dict[str, Any] = {"n": len(x), "n_groups": n_distinct(codes), "n_positive": int(positive.sum())}
    try:
        value = auroc(x, y)
        check_enough(positive, fewest)
    except UndefinedStatistic as error:
        return Number(None, reason=str(error), **counts)
    areas, of_logit = None, None
    try:
        if method == "delong" and codes is not None:
            stderr, of_logit = jackknifed(x, positive, codes)
        elif method == "delong":
            stderr = _delong_stderr(x, positive)
        else:
            areas = _resamples(levels_of(x), positive, codes, n_resamples, seed)
            stderr = float(np.nanstd(areas, ddof=1))
    except UndefinedError as error:
        return Number(value, reason=str(error), **counts)
    degrees, n_pairs = degrees_of_freedom(positive, codes), disjoint_pairs(positive, codes)
    stderr = math.hypot(math.sqrt(inflation) * stderr, extra_stderr)
    if of_logit and 0 < value < 1:
        of_logit = math.hypot(math.sqrt(inflation) * of_logit, extra_stderr / (value * (1 - value)))
        interval = interval_of_logit(value, of_logit, confidence, degrees)
    elif stderr > 0 and method == "percentile" and areas is not None and not extra_stderr and inflation == 1:
        interval = percentile_interval(areas, confidence)
    else:
        interval = auroc_interval(value, stderr, confidence, degrees, n_pairs)
    if inflation > 1:
        least = wilson(value, n_pairs / inflation, confidence)
        interval = (max(interval[0], least[0]), min(interval[1], least[1]))
    described = _described(method, n_resamples, grouped=codes is not None)
    if extra_stderr:
        described += f", with {FOUR_DIGITS(extra_stderr)} for the choice of the threshold"
    if inflation > 1:
        described += f", variance times {ONE_DIGIT(inflation)} for the fitting"
    return Number(value, stderr, interval, method=described, **counts)


def jackknifed(
    x: FloatArray, positive: BoolArray, groups: IntArray, strata: IntArray | None = None
) -> tuple[float, float]:
    """Standard errors of an AUROC and of its logit, from the values without each group in turn.

    Raises:
        UndefinedError: one group carries a class, or all pairs that are compared.
    """
    check_units(positive, groups)
    left = without_each_group(x, positive, groups, strata)
    if np.isnan(left).any():
        raise UndefinedError("no standard error: without one of the groups there is nothing left to compare")
    step = 0.5 / (int(positive.sum()) * int((~positive).sum()))  # half a pair: 0 and 1 have no logit
    value = whole_auroc(x, positive, strata)
    logits = logits_of(np.append(left, value), step)
    return deleted_spread(left - value), deleted_spread(logits[:-1] - logits[-1])


def auroc_interval(value: float, stderr: float, confidence: float, degrees: float | None, n_pairs: int) -> Interval:
    """Interval on the logit scale; Wilson's for `n_pairs` independent pairs where there is no variation to go by."""
    if stderr > 0 and 0 < value < 1:
        return logit_interval(value, stderr, confidence, degrees)
    return wilson(value, n_pairs, confidence)


def _described(method: str, n_resamples: int, *, grouped: bool) -> str:
    if method == "delong":
        return f"{JACKKNIFE if grouped else 'DeLong'}, logit interval"
    kind = "group bootstrap" if grouped else "stratified bootstrap"
    return f"{kind} ({n_resamples} resamples), {'percentile' if method == 'percentile' else 'logit'} interval"


def _delong_stderr(x: FloatArray, positive: BoolArray) -> float:
    _, components = auroc_components(x, positive)
    return float(np.sqrt(component_variance(components, positive)))


@by_content()
def _resamples(
    levels: IntArray, positive: BoolArray, groups: IntArray | None, n_resamples: int, seed: int
) -> FloatArray:
    """AUROC of each resample; nan where a resample lacks a class."""
    check_units(positive, groups)
    if groups is None:
        return _stratified_resamples(levels, positive, n_resamples, np.random.default_rng(seed))
    units, n_units = canonical_units(groups, levels, positive.astype(np.int64))
    count = LevelCounts(levels, positive, units)
    return np.concatenate([count.areas(times) for times in unit_counts(n_units, n_resamples, count.width, seed)])


def _stratified_resamples(
    levels: IntArray, positive: BoolArray, n_resamples: int, rng: np.random.Generator
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
            for size in block_sizes(n_resamples, n_levels)
        ]
    )


def _resample_counts(counts: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    n = int(counts.sum())
    return rng.multinomial(n, counts / n, size=size)


class LevelCounts:
    """Turns how often each unit is drawn into AUROCs.

    Args:
        levels: Position of each score among the distinct scores, shape `(n,)`.
        positive: Which documents are hallucinated, shape `(n,)`.
        units: Unit (document or group) that each document is drawn with, shape `(n,)`.
    """

    def __init__(self, levels: IntArray, positive: BoolArray, units: IntArray) -> None:
        from scipy.sparse import csr_array

        self.width = int(levels.max()) + 1
        shape = (int(units.max()) + 1, self.width)
        self._members = [
            csr_array((np.ones(int(chosen.sum()), dtype=np.int64), (units[chosen], levels[chosen])), shape=shape)
            for chosen in (positive, ~positive)
        ]

    def areas(self, times: IntArray) -> FloatArray:
        """AUROC of each resample, shape `(resamples,)`, from counts `(resamples, units)`; nan: one class only."""
        positives, negatives = self._members
        return _areas(times @ positives, times @ negatives)


def _areas(positives: IntArray, negatives: IntArray) -> FloatArray:
    """AUROC of each row, given how many documents of each class it has at each distinct score, ascending."""
    below = np.cumsum(negatives, axis=1) - negatives
    wins = (positives * (2 * below + negatives)).sum(axis=1)  # twice the wins, so that ties stay whole numbers
    pairs = 2 * positives.sum(axis=1) * negatives.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray(wins / pairs, dtype=np.float64)
