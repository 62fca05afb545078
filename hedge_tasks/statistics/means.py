"""Means of documents that come in groups, such as several questions on one image, with clustered standard errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import FloatArray, IntArray, check_confidence, codes_of, quantile_of


def estimate_mean(values: npt.ArrayLike, groups: Sequence[Hashable], *, confidence: float = 0.95) -> Number:
    r"""Mean of all documents, with its standard error over :math:`G` groups of them.

    .. math::
        \mathrm{SE}^2 = \frac{G}{G - 1} \frac{\sum_g \bigl(\sum_{i \in g} (x_i - \bar x)\bigr)^2}{n^2}

    It is the cluster-robust standard error of a regression on a constant alone, with the small-sample factor
    :math:`G / (G - 1)` (Liang & Zeger 1986, Biometrika 73(1)).

    Args:
        values: Numbers, shape `(n,)`.
        groups: Group of each document, length `n`; `None` makes a document a group of its own.
        confidence: Level of the interval, in (0, 1): Student's, with one degree of freedom less than there are groups.

    Returns:
        The mean; without standard error and interval where there are less than two groups.

    Raises:
        ValueError: If lengths differ, or the level is not in (0, 1).

    Example:
        >>> mean = estimate_mean([1.0, 2.0, 3.0, 6.0], ["a", "a", "b", "b"])
        >>> mean.value, mean.stderr, mean.n, mean.n_groups
        (3.0, 1.5, 4, 2)
    """
    check_confidence(confidence)
    x = np.asarray(values, dtype=np.float64)
    alone = [("document", i) if group is None else ("group", group) for i, group in enumerate(groups)]
    codes = codes_of(alone, len(x), "groups")
    if not len(x):
        return Number(None, n=0, n_groups=0, reason="no documents")
    mean, n_groups = float(x.mean()), int(codes.max()) + 1
    spread = clustered_spread(x - mean, codes)
    if spread is None:
        reason = "no standard error: all documents are in a single group"
        return Number(mean, n=len(x), n_groups=n_groups, reason=reason)
    stderr = spread / len(x)
    half = quantile_of(confidence, n_groups - 1) * stderr
    method = "clustered standard error, Student's interval between groups"
    return Number(mean, stderr, (mean - half, mean + half), n=len(x), n_groups=n_groups, method=method)


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
