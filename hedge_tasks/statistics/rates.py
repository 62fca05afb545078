"""Proportions, such as the share of hallucinated answers, with Wilson's interval, and paired differences of two."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import (
    FloatArray,
    Interval,
    check_confidence,
    codes_of,
    quantile_of,
    two_sided_p,
    wilson,
)
from hedge_tasks.statistics.means import estimate_mean
from hedge_tasks.statistics.paired import Comparison, at_first


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of the proportion `successes / n` (Wilson 1927); covers well at any share and size.

    Raises:
        ValueError: If not `0 <= successes <= n` and `n >= 1`, or the level is not in (0, 1).

    Example:
        >>> [round(bound, 4) for bound in wilson_interval(0, 10)]
        [0.0, 0.2775]
    """
    check_confidence(confidence)
    if not (n >= 1 and 0 <= successes <= n):
        raise ValueError(f"need 0 <= successes <= n and n >= 1, got {successes} of {n}")
    return wilson(successes / n, n, confidence)


def estimate_rate(
    values: npt.ArrayLike, *, groups: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Number:
    r"""Share of ones with standard error and Wilson's interval.

    Without `groups` the standard error is :math:`\sqrt{p (1 - p) / n}`. With groups, e.g. several questions on one
    image, it is that of `estimate_mean`, and Wilson's interval takes the effective sample size
    :math:`p (1 - p) / \mathrm{SE}^2`, at most :math:`n` (Kish's design effect, as Korn & Graubard 1998 do for the exact
    interval). Where all values are equal nothing shows how alike the documents of a group are; then every group counts
    once.

    Args:
        values: 0 or 1, shape `(n,)`.
        groups: Group of each document, length `n`.
        confidence: Level of the interval, in (0, 1).

    Returns:
        The estimate; undefined without documents or where a value is `nan`. With a single group only standard error
        and interval are undefined.

    Raises:
        ValueError: If a value is anything else, lengths differ, or the level is not in (0, 1).

    Example:
        >>> rate = estimate_rate([1, 0, 0, 0])
        >>> rate.value, round(rate.stderr, 4), [round(bound, 3) for bound in rate.interval]
        (0.25, 0.2165, [0.046, 0.699])
    """
    check_confidence(confidence)
    y = np.asarray(values, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"values must have one dimension, got shape {y.shape}")
    wrong = ~(np.isin(y, (0, 1)) | np.isnan(y))
    if wrong.any():
        raise ValueError(f"values must be 0 or 1, but values[{wrong.argmax()}] is {y[wrong][0]:g}")
    mean = None if groups is None else estimate_mean(y, groups)
    n, n_positive = len(y), int((y == 1).sum())
    if not n:
        return Number(None, n=0, n_positive=0, reason="no documents")
    if missing := int(np.isnan(y).sum()):
        return Number(
            None, n=n, n_positive=n_positive, reason=f"the value of {missing} of {n} documents is missing (NaN)"
        )
    if mean is not None:
        return _by_group(mean, n_positive, confidence)
    share = n_positive / n
    stderr = math.sqrt(share * (1 - share) / n)
    return Number(
        share,
        stderr=stderr,
        n=n,
        n_positive=n_positive,
        interval=wilson(share, n, confidence),
        method="Wilson interval",
    )


def _by_group(mean: Number, n_positive: int, confidence: float) -> Number:
    share, stderr, n = mean.value, mean.stderr, mean.n
    if share is None or stderr is None:
        return Number(share, n=n, n_groups=mean.n_groups, n_positive=n_positive, reason=mean.reason)
    if 0 < share < 1:
        effective = min(float(n), share * (1 - share) / stderr**2) if stderr > 0 else float(n)
    else:
        effective = float(mean.n_groups)
    method = "Wilson interval with the effective sample size of groups"
    interval = wilson(share, effective, confidence)
    return Number(share, stderr, interval, n=n, n_groups=mean.n_groups, n_positive=n_positive, method=method)


def compare_rates(
    values_a: npt.ArrayLike,
    values_b: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Comparison:
    r"""Difference of two rates on the same documents, e.g. the hallucination rates of two models.

    Without `groups` the p-value is that of McNemar's exact test on the :math:`f_{10}` and :math:`f_{01}` discordant
    documents, and the interval that of Bonett & Price 2012 (Wald's with one document added to each of the two counts;
    it is centred a little nearer to 0 than the difference). With groups, the mean of the differences :math:`d_i` is
    tested by Student's t with one degree of freedom less than there are groups, as in `estimate_mean`.

    Args:
        values_a: 0 or 1, shape `(n,)`.
        values_b: 0 or 1 of the same documents in the same order, shape `(n,)`.
        groups: Group (e.g. image id) of each document, length `n`.
        confidence: Level of the interval, in (0, 1).

    Returns:
        The comparison; what is undefined is `None`, with the reason.

    Raises:
        ValueError: If lengths differ, a value is neither 0 nor 1, or the level is not in (0, 1).

    Example:
        >>> result = compare_rates([1, 1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1])
        >>> result.difference, result.p_value
        (0.5, 0.21875)
    """
    check_confidence(confidence)
    a, b = _outcomes(values_a, values_b)
    mean = None if groups is None else estimate_mean(a - b, groups, confidence=confidence)
    name = "McNemar's exact test" if mean is None else "paired t-test between groups"
    n = len(a)
    if not n:
        return Comparison.undefined(0, name, "no documents")
    shares = float(a.mean()), float(b.mean())
    difference = float((a - b).mean())
    if mean is None:
        stderr, interval, p_value = _discordant(a, b, confidence)
        return Comparison(*shares, difference, stderr, interval, p_value, n, name, deviations=a - b - difference)
    if mean.stderr is None or (mean.stderr == 0 and (a != b).any()):
        reason = mean.reason or "no standard error: all groups differ alike"
        return Comparison(*shares, difference, None, None, None, n, name, reason)
    if mean.stderr == 0:
        return Comparison(*shares, difference, 0.0, (0.0, 0.0), 1.0, n, name)
    low, high = mean.interval or (-1.0, 1.0)
    p_value = two_sided_p(abs(difference) / mean.stderr, mean.n_groups - 1)
    codes = codes_of(groups or (), n, "groups")
    deviations = at_first(np.bincount(codes, a - b - difference).astype(np.float64), codes)
    interval = (max(-1.0, low), min(1.0, high))
    return Comparison(*shares, difference, mean.stderr, interval, p_value, n, name, deviations=deviations)


def _outcomes(values_a: npt.ArrayLike, values_b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    a, b = (np.asarray(values, dtype=np.float64) for values in (values_a, values_b))
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"need two lists of one length, got shapes {a.shape} and {b.shape}")
    if not np.isin([a, b], (0, 1)).all():
        raise ValueError("values must be 0 or 1")
    return a, b


def _discordant(a: FloatArray, b: FloatArray, confidence: float) -> tuple[float, Interval, float]:
    """Standard error, interval and p-value from the documents on which the two differ."""
    from scipy.stats import binomtest

    n, only_a, only_b = len(a), int((a > b).sum()), int((b > a).sum())
    stderr = math.sqrt(only_a + only_b - (only_a - only_b) ** 2 / n) / n
    p_a, p_b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    half = quantile_of(confidence) * math.sqrt((p_a + p_b - (p_a - p_b) ** 2) / (n + 2))
    p_value = float(binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0
    return stderr, (max(-1.0, p_a - p_b - half), min(1.0, p_a - p_b + half)), p_value
