"""Any statistic of documents with the delete-one-group jackknife: no closed form, no resampling, no seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import FloatArray, check_confidence, codes_of, quantile_of


def jackknife(
    statistic: Callable[[FloatArray], float | None],
    groups: Sequence[Hashable],
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
) -> Number:
    r"""A smooth statistic of weighted documents, with its standard error over :math:`G` groups of them.

    .. math:: \mathrm{SE}^2 = \frac{G - 1}{G} \sum_g (f_{-g} - f)^2

    where :math:`f_{-g}` is the statistic without a group (Efron & Tibshirani 1993, chapter 11; CR3: MacKinnon et al.
    2023). The interval is Student's with :math:`G - 1` degrees of freedom, within the bounds.

    Args:
        statistic: weights of the documents, 1 or 0, shape `(n,)`, to a value; None where it is undefined.
        groups: group of each document, length `n`.
        bounds: least and greatest possible value.
        confidence: level of the interval, in (0, 1).

    Returns:
        The estimate; the error is undefined with a single group, or where nothing is left without some group.

    Example:
        >>> x = np.array([1.0, 2.0, 3.0, 6.0])
        >>> mean = jackknife(lambda weights: float(weights @ x / weights.sum()), "aabb")
        >>> mean.value, mean.stderr, mean.n_groups
        (3.0, 1.5, 2)
    """
    check_confidence(confidence)
    codes = codes_of(groups, len(groups), "groups")
    n, n_groups = len(codes), int(codes.max(initial=-1)) + 1
    value = statistic(np.ones(n))
    if value is None:
        return Number(None, n=n, n_groups=n_groups, reason="it is undefined for these documents")
    without = [statistic((codes != group).astype(np.float64)) for group in range(n_groups)]
    if n_groups < 2 or None in without:
        return Number(value, n=n, n_groups=n_groups, reason="no standard error: it is undefined without some group")
    deviations = np.array(without, dtype=np.float64) - value
    stderr = math.sqrt((n_groups - 1) / n_groups * float(deviations @ deviations))
    if stderr < 1e-12:
        return Number(value, n=n, n_groups=n_groups, reason="no standard error: it is the same without each group")
    half = quantile_of(confidence, n_groups - 1) * stderr
    interval = max(bounds[0], value - half), min(bounds[1], value + half)
    return Number(value, stderr, interval, n=n, n_groups=n_groups, method="delete-one-group jackknife")
