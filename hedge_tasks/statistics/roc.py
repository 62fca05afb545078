"""AUROC with standard error and interval: DeLong for independent documents, the jackknife for groups of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
    codes_of,
    interval_of_logit,
    levels_of,
    logit_interval,
    logits_of,
    n_distinct,
    quantile_of,
    wilson,
)
from hedge_tasks.statistics.placements import (
    auroc_components,
    check_units,
    component_variance,
    degrees_of_freedom,
    deleted_spread,
    units_of_each_class,
    whole_auroc,
    without_each_group,
)

JACKKNIFE = "delete-one-group jackknife"
"""The name of clustered standard errors."""

FEW_OF_A_CLASS = 30
"""Documents of the rarer class below which the interval is Newcombe's: DeLong's on the logit scale covers .924 with 5
to 20 of them, .89 at worst (benchmarks/interval_coverage.py)."""


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
    # From whole numbers: equal to scikit-learn's to the last digits, which refuses infinite scores and takes twenty
    # times as long to check its arguments.
    levels, positive = levels_of(x), y == 1
    negatives = np.bincount(levels[~positive], minlength=int(levels.max()) + 1)
    twice_below = 2 * np.cumsum(negatives) - negatives
    return float(twice_below[levels[positive]].sum() / (2 * positive.sum() * negatives.sum()))


def estimate_auroc(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    extra_stderr: float = 0.0,
    inflation: float = 1.0,
    fewest: int = FEWEST_OF_A_CLASS,
) -> Number:
    """AUROC with standard error and confidence interval; undefined cases are reported, not raised.

    The standard error is that of DeLong et al. 1988, computed as in Sun & Xu 2014. `groups` are for documents that are
    not independent, such as several questions on one image: taken for independent, they would make it too small. With
    them it is that of the delete-one-group jackknife (CR3; MacKinnon, Nielsen & Webb 2023), and quantiles are Student's
    with the effective number of groups (`degrees_of_freedom`).

    The interval is normal on the logit scale (with groups by the jackknife of the logit): near 1 the distribution of
    the AUROC is skewed. With fewer than 30 documents of the rarer class, and where nothing varies (the classes are
    perfectly separated), it is Newcombe's (`newcombe_interval`) for classes that are smaller by the design effect: the
    variance between groups, of the fitting and of the choice of a threshold, as a multiple of DeLong's.
    Where one group carries a class there is no interval, and where a class has fewer than 5 documents no number.

    Neither the order of the documents, nor the names of groups, nor a monotone transformation of the scores changes the
    result.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        groups: Group (e.g. image id) of each document, length `n`.
        confidence: Level of the interval, in (0, 1).
        extra_stderr: Standard error of the AUROC that these scores do not show, such as that of a threshold which
            was chosen on the data; added in quadrature.
        inflation: Variance of the AUROC as a multiple of what these scores show, at least 1: that of scores which were
            fitted on the same data. The interval is then at most Wilson's for the pairs that surely are independent:
            near 1 the jackknife's logit depends on a single group.
        fewest: documents of the rarer class below which there is no value: with two of them an interval of 95 % holds
            the true number 77 % of the time, and the number itself says next to nothing.

    Returns:
        The estimate. `value` is `None` if the AUROC is undefined or rests on fewer than `fewest` of a class; `stderr`
        and `interval` alone are `None` if one of the classes occurs in a single document (or group) only, or nearly so.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or the level is not in (0, 1): mistakes of the
            caller, not properties of the data.

    Example:
        >>> estimate = estimate_auroc([0.1, 0.3, 0.7, 0.2, 0.1, 0.6, 0.8, 0.9, 0.5, 0.7], [0] * 5 + [1] * 5)
        >>> round(estimate.value, 3), estimate.n, estimate.n_rarer
        (0.9, 10, 5)
        >>> [round(bound, 2) for bound in estimate.interval]
        [0.53, 0.98]
        >>> estimate_auroc([0.1, 0.3, 0.9], [0, 0, 1]).reason
        'only 1 of 3 documents is hallucinated; an AUROC needs 5 of each class'
        >>> estimate_auroc([0.1, 0.2], [0, 0]).reason
        'no document is labelled hallucinated (2 documents)'
    """
    check_confidence(confidence)
    x, y = as_data(scores, labels)
    codes = None if groups is None else codes_of(groups, len(x), "groups")
    positive = y == 1
    counts: dict[str, Any] = {"n": len(x), "n_groups": n_distinct(codes), "n_positive": int(positive.sum())}
    try:
        value = auroc(x, y)
        check_enough(positive, fewest)
    except UndefinedStatistic as error:
        return Number(None, reason=str(error), **counts)
    try:
        alone = _delong_stderr(x, positive)
        shown, of_logit = (alone, 0.0) if codes is None else jackknifed(x, positive, codes)
    except UndefinedError as error:
        return Number(value, reason=str(error), **counts)
    stderr = math.hypot(math.sqrt(inflation) * shown, extra_stderr)
    degrees = degrees_of_freedom(positive, codes)
    sizes = units_of_each_class(positive, None)
    units = units_of_each_class(positive, codes)
    few = min(sizes) < FEW_OF_A_CLASS or not 0 < value < 1 or not stderr
    if few:
        # Where nothing varies nothing shows how alike the documents of a group are: every group counts once.
        effect = max(1.0, (stderr / alone) ** 2) if alone else max(n / k for n, k in zip(sizes, units, strict=True))
        interval = newcombe_interval(value, sizes[0] / effect, sizes[1] / effect, confidence, degrees)
    elif of_logit:
        spread = math.hypot(math.sqrt(inflation) * of_logit, extra_stderr / (value * (1 - value)))
        interval = interval_of_logit(value, spread, confidence, degrees)
    else:
        interval = logit_interval(value, stderr, confidence, degrees)
    if inflation > 1:
        least = wilson(value, min(units) / inflation, confidence)
        interval = (max(interval[0], least[0]), min(interval[1], least[1]))
    method = f"{'DeLong' if codes is None else JACKKNIFE}, {'Newcombe' if few else 'logit'} interval"
    return Number(value, stderr, interval, method=method + _widened(extra_stderr, inflation), **counts)


def _widened(extra_stderr: float, inflation: float) -> str:
    """Say what an interval allows for beside these scores."""
    extra = f", with {FOUR_DIGITS(extra_stderr)} for the choice of the threshold" if extra_stderr else ""
    return extra + (f", variance times {ONE_DIGIT(inflation)} for the fitting" if inflation > 1 else "")


def newcombe_interval(
    value: float, n_positive: float, n_negative: float, confidence: float = 0.95, degrees: float | None = None
) -> Interval:
    r"""Interval of an AUROC for few documents: all numbers whose own standard error reaches to the one that was seen.

    .. math::
        V(\theta) = \frac{\theta (1 - \theta)}{P N} \Bigl(1 + \Bigl(\frac{P + N}{2} - 1\Bigr)
        \Bigl(\frac{1 - \theta}{2 - \theta} + \frac{\theta}{1 + \theta}\Bigr)\Bigr), \qquad
        \lvert \hat\theta - \theta \rvert = z \sqrt{V(\theta)}

    Source: Newcombe 2006, Statistics in Medicine 25(4), method 5: Hanley & McNeil's variance (1982, Radiology 143)
    with the mean of both class sizes, at the limit itself instead of at the estimate.

    Args:
        value: AUROC, in [0, 1].
        n_positive, n_negative: documents of each class, need not be whole.
        confidence: level, in (0, 1).
        degrees: of Student's distribution; None: normal.

    Example:
        >>> [round(bound, 3) for bound in newcombe_interval(1.0, 10, 10)]
        [0.8, 1.0]
    """
    from scipy.optimize import brentq

    z = quantile_of(confidence, degrees)

    def beyond(theta: float) -> float:
        pairs = (1 - theta) / (2 - theta) + theta / (1 + theta)
        variance = theta * (1 - theta) / (n_positive * n_negative) * (1 + ((n_positive + n_negative) / 2 - 1) * pairs)
        return abs(value - theta) - z * math.sqrt(max(variance, 0.0))

    least, most = 1e-9, 1 - 1e-9  # at 0 and 1 themselves nothing varies
    middle = min(max(value, least), most)
    low = brentq(beyond, least, middle) if beyond(least) > 0 else 0.0
    high = brentq(beyond, middle, most) if beyond(most) > 0 else 1.0
    return float(low), float(high)


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


def _delong_stderr(x: FloatArray, positive: BoolArray) -> float:
    _, components = auroc_components(x, positive)
    return float(np.sqrt(component_variance(components, positive)))
