"""Means of documents that come in groups, such as several questions on one image, with clustered standard errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.statistics.base import FloatArray, IntArray, Interval, check_confidence, codes_of, quantile_of


@dataclass(frozen=True)
class Mean:
    """A mean with its uncertainty.

    Attributes:
        value: The mean; `None` without documents.
        stderr: Its standard error between groups; `None` with less than two of them.
        n: Number of documents.
        n_groups: Number of groups.
        reason: Why `value`, or `stderr`, is `None`; `None` if neither is.
    """

    value: float | None
    stderr: float | None
    n: int
    n_groups: int
    reason: str | None = None

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Student's interval with one degree of freedom less than there are groups; `None` where `stderr` is."""
        check_confidence(confidence)
        if self.value is None or self.stderr is None:
            return None
        half = quantile_of(confidence, self.n_groups - 1) * self.stderr
        return self.value - half, self.value + half


def estimate_mean(values: npt.ArrayLike, groups: Sequence[Hashable]) -> Mean:
    r"""Mean of all documents, with its standard error over :math:`G` groups of them.

    .. math::
        \mathrm{SE}^2 = \frac{G}{G - 1} \frac{\sum_g \bigl(\sum_{i \in g} (x_i - \bar x)\bigr)^2}{n^2}

    It is the cluster-robust standard error of a regression on a constant alone, with the small-sample factor
    :math:`G / (G - 1)` (Liang & Zeger 1986, Biometrika 73(1)).

    Args:
        values: Numbers, shape `(n,)`.
        groups: Group of each document, length `n`; `None` makes a document a group of its own.

    Raises:
        ValueError: If lengths differ.

    Example:
        >>> estimate_mean([1.0, 2.0, 3.0, 6.0], ["a", "a", "b", "b"])
        Mean(value=3.0, stderr=1.5, n=4, n_groups=2, reason=None)
    """
    x = np.asarray(values, dtype=np.float64)
    alone = [("document", i) if group is None else ("group", group) for i, group in enumerate(groups)]
    codes = codes_of(alone, len(x), "groups")
    if not len(x):
        return Mean(None, None, 0, 0, "no documents")
    mean, n_groups = float(x.mean()), int(codes.max()) + 1
    spread = clustered_spread(x - mean, codes)
    if spread is None:
        return Mean(mean, None, len(x), n_groups, "no standard error: all documents are in a single group")
    return Mean(mean, spread / len(x), len(x), n_groups)


def clustered_spread(deviations: FloatArray, groups: IntArray) -> float | None:
    r"""Standard error of a sum to which every document adds its deviation, where groups are independent.

    .. math:: \sqrt{\frac{G}{G - 1} \sum_g \Bigl(\sum_{i \in g} d_i\Bigr)^2}

    Args:
        deviations: What each document adds to the deviation of a statistic from its expectation, shape `(n,)`.
        groups: Group of each document, as whole numbers of which some may be missing, shape `(n,)`.

    Returns:
        The standard error; `None` with a single group, where nothing shows how much groups vary.
    """
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        return None
    sums = np.bincount(groups, deviations)
    return math.sqrt(n_groups / (n_groups - 1) * float(sums @ sums))
