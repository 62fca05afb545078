"""Shared by all statistics: the result, the checks of the input, and intervals from a standard error."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from hedge_tasks.errors import HedgeError
from hedge_tasks.numbers import Interval, count_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class UndefinedStatistic(HedgeError, ValueError):
    """The statistic does not exist for these data; the message says why, in words fit for a report."""


class UndefinedError(Exception):
    """The statistic exists, its standard error does not; the message says why."""


def as_data(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Scores and labels as float arrays of one length; labels are 0, 1 or nan.

    Raises:
        ValueError: They are anything else.
    """
    x, y = as_columns(scores, labels, "labels")
    wrong = ~(np.isin(y, (0, 1)) | np.isnan(y))
    if wrong.any():
        raise ValueError(f"labels must be 0 or 1 (1 = hallucinated), but labels[{wrong.argmax()}] is {y[wrong][0]:g}")
    return x, y


def as_columns(scores: npt.ArrayLike, values: npt.ArrayLike, name: str) -> tuple[FloatArray, FloatArray]:
    """Scores and other numbers as float arrays of one length."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"scores and {name} must have one dimension, got shapes {x.shape} and {y.shape}")
    if len(x) != len(y):
        raise ValueError(f"scores and {name} differ in length: {len(x)} and {len(y)}")
    return x, y


def check_defined(x: FloatArray, y: FloatArray) -> None:
    """Raise UndefinedStatistic unless there are scores without nan for documents of both classes."""
    check_complete(x, y, "label")
    if not (y == 1).any():
        raise UndefinedStatistic(f"no document is labelled hallucinated ({count_of(len(x), 'document')})")
    if not (y == 0).any():
        raise UndefinedStatistic(f"every document is labelled hallucinated ({count_of(len(x), 'document')})")


FEWEST_OF_A_CLASS = 5
"""Documents of the rarer class below which there is no AUROC."""


def check_enough(positive: BoolArray, fewest: int = FEWEST_OF_A_CLASS) -> None:
    """Raise UndefinedStatistic where a class has too few documents for an AUROC that says anything."""
    n, n_positive = len(positive), int(positive.sum())
    rarer, kind = (n_positive, "hallucinated") if 2 * n_positive <= n else (n - n_positive, "supported")
    if rarer < fewest:
        verb = "is" if rarer == 1 else "are"
        raise UndefinedStatistic(
            f"only {rarer} of {count_of(n, 'document')} {verb} {kind}; an AUROC needs {fewest} of each class"
        )


def check_complete(x: FloatArray, y: FloatArray, name: str) -> None:
    """Raise UndefinedStatistic where there is no document, or one without a score or without the other number."""
    if not len(x):
        raise UndefinedStatistic("no documents")
    for kind, values in (("score", x), (name, y)):
        if missing := int(np.isnan(values).sum()):
            raise UndefinedStatistic(f"the {kind} of {missing} of {len(x)} documents is missing (NaN)")


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence}")


def codes_of(values: Sequence[Hashable], n: int, name: str) -> IntArray:
    """Number of each value in order of first appearance."""
    if len(values) != n:
        raise ValueError(f"{name} has length {len(values)}, but there are {n} documents")
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)


def n_distinct(codes: IntArray | None) -> int:
    """Number of groups; 0 where groups play no role."""
    return 0 if codes is None else len(np.unique(codes))


def levels_of(x: FloatArray) -> IntArray:
    """Position of each number among the distinct numbers, ascending; equal numbers share one."""
    return np.unique(x, return_inverse=True)[1].astype(np.int64)


def midranks(x: npt.ArrayLike) -> FloatArray:
    """Ranks from 1 on; equal numbers share the mean of theirs, shape `(n,)`.

    As `scipy.stats.rankdata`, whose import takes as long as scoring some hundred questions.

    Example:
        >>> midranks([0.3, 0.1, 0.3]).tolist()
        [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(np.asarray(x, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def quantile_of(confidence: float, degrees: float | None = None) -> float:
    """Half the width of a two-sided interval, in standard errors: 1.96 for 0.95.

    Args:
        confidence: Level, in (0, 1).
        degrees: Degrees of freedom of Student's distribution; None: normal.
    """
    from scipy.special import ndtri, stdtrit

    p = (1 + confidence) / 2
    return float(ndtri(p) if degrees is None else stdtrit(degrees, p))


def two_sided_p(deviation: float, degrees: float | None = None) -> float:
    """Probability of at least this deviation from 0 to either side, in standard errors.

    Args:
        deviation: At least 0.
        degrees: Degrees of freedom of Student's distribution; None: normal.
    """
    # scipy.special has what scipy.stats is made of, and is imported in a tenth of the time.
    from scipy.special import ndtr, stdtr

    return float(2 * (ndtr(-deviation) if degrees is None else stdtr(degrees, -deviation)))


def logit_interval(value: float, stderr: float, confidence: float, degrees: float | None = None) -> Interval:
    r"""Interval of a number in (0, 1), normal (or Student's) on the logit scale.

    .. math::
        \operatorname{logit}^{-1}\Bigl(\operatorname{logit} A \pm z \frac{\mathrm{SE}}{A (1 - A)}\Bigr)

    It stays within (0, 1) and is longer on the side of 0.5, as the distribution of an AUROC near 1 is.
    """
    return interval_of_logit(value, stderr / (value * (1 - value)), confidence, degrees)


def interval_of_logit(value: float, stderr: float, confidence: float, degrees: float | None = None) -> Interval:
    """Interval of a number in (0, 1) from the standard error of its logit."""
    center = math.log(value / (1 - value))
    half = quantile_of(confidence, degrees) * stderr
    return _expit(center - half), _expit(center + half)


def logits_of(values: FloatArray, step: float) -> FloatArray:
    """Logits of numbers in [0, 1], of which 0 and 1 count as `step` inside."""
    inside = np.clip(values, step, 1 - step)
    return np.asarray(np.log(inside / (1 - inside)), dtype=np.float64)


def _expit(x: float) -> float:
    from scipy.special import expit

    return float(expit(x))


def wilson(share: float, n: float, confidence: float) -> Interval:
    r"""Wilson's score interval of a proportion (Wilson 1927, JASA 22(158)).

    .. math::
        \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}

    SciPy's asks for whole numbers, and statsmodels' takes a data frame library with it.

    Args:
        share: Proportion, in [0, 1].
        n: Number of documents; need not be whole (an effective sample size).
        confidence: Level, in (0, 1).
    """
    z = quantile_of(confidence)
    center, half = share + z**2 / (2 * n), z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    low, high = ((center + sign * half) / (1 + z**2 / n) for sign in (-1, 1))
    # The bounds are exactly 0 and 1 at shares 0 and 1; rounding may miss them by one unit.
    return (0.0 if share == 0 else low), (1.0 if share == 1 else high)
