r"""What a score is worth for answering only when sure: the risk-coverage curve and its area.

Scores of few sampled answers are full of ties. Among equal scores the mean quality :math:`Q(k)` of the :math:`k`
answers with the lowest scores is the expectation over all orders (the running sum of the qualities grows linearly
through a tie), so no result depends on the order of the documents, and a constant score is exactly as good as a random
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.statistics.base import FloatArray, as_columns, check_complete


@dataclass(frozen=True)
class Curve:
    """Points of a curve, ascending in `x`.

    Attributes:
        x: Shape `(n,)`.
        y: Shape `(n,)`.
    """

    x: FloatArray
    y: FloatArray


def risk_coverage_curve(scores: npt.ArrayLike, quality: npt.ArrayLike) -> Curve:
    """Mean risk (with labels: share of hallucinations) of the answers kept against their share, lowest scores first.

    Source: El-Yaniv & Wiener 2010, JMLR 11.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        quality: Quality of each answer in [0, 1], shape `(n,)`; `1 - label` where there is only a label.

    Returns:
        `n` points, at the coverages 1/n, 2/n, ..., 1.

    Raises:
        UndefinedStatistic: If there is no document or a number is `nan`.
        ValueError: If the lengths differ or a quality is outside [0, 1].

    Example:
        >>> risk_coverage_curve([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0]).y.tolist()
        [0.0, 0.25, 0.33333333333333337, 0.5]
    """
    x, q = as_columns(scores, quality, "quality")
    wrong = (q < 0) | (q > 1)
    if wrong.any():
        raise ValueError(f"quality must be between 0 and 1, but quality[{wrong.argmax()}] is {q[wrong][0]:g}")
    check_complete(x, q, "quality")
    levels, sizes = np.unique(x, return_inverse=True, return_counts=True)[1:]
    ends = np.append(0, np.cumsum(sizes))
    sums = np.append(0.0, np.cumsum(np.bincount(levels, q)))
    k = np.arange(1, len(x) + 1)
    return Curve(k / len(x), 1 - np.interp(k, ends, sums) / k)


def area_under_risk_coverage(scores: npt.ArrayLike, quality: npt.ArrayLike) -> float:
    r"""AURC: the mean of the risk over all coverages; lower is better, a random score has the mean risk.

    .. math::
        \mathrm{AURC} = \frac{1}{n} \sum_{k=1}^{n} \bigl(1 - Q(k)\bigr)

    Source: Geifman, Uziel & El-Yaniv 2019, "Bias-Reduced Uncertainty Estimation". Arguments and errors as for
    `risk_coverage_curve`.

    Example:
        >>> round(area_under_risk_coverage([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0]), 4)
        0.2708
    """
    return float(risk_coverage_curve(scores, quality).y.mean())
