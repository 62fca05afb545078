"""The curves behind the figures.

Labels are 1 = hallucinated, 0 = supported; higher scores mean more likely hallucinated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import Labelled, labelled
from hedge_tasks.statistics import (
    Curve,
    StratifiedAuroc,
    risk_coverage_curve,
)
from hedge_tasks.statistics.base import FloatArray, levels_of


def roc_curve(data: Labelled) -> tuple[FloatArray, FloatArray]:
    """Return false and true positive rates at every threshold, ascending, from (0, 0) to (1, 1).

    Tied scores make one straight line.

    Raises:
        ValueError: there is only one class.
    """
    if not data.both_classes:
        raise ValueError("a ROC curve needs hallucinated and supported answers")
    levels, positive = levels_of(data.values), data.labels == 1
    rates = []
    for in_class in (~positive, positive):
        counts = np.cumsum(np.bincount(levels[in_class], minlength=int(levels.max()) + 1)[::-1])
        rates.append(np.append(0.0, counts / counts[-1]))
    return rates[0], rates[1]


def risk_coverage(data: Labelled, declined: int = 0) -> Curve:
    """Return the share of hallucinations among the answers kept, lowest scores kept first; there must be one at least.

    Args:
        declined: answers that the model declined: they are kept by no threshold, so that the curve ends where all
            answers that were given are kept.
    """
    curve, n = risk_coverage_curve(data.values, 1 - data.labels), len(data.values)
    return Curve(curve.x * (n / (n + declined)), curve.y) if declined else curve


def within_strata(scores: Sequence[Scores], name: str) -> StratifiedAuroc | None:
    """Return the ROC-AUC within question types and of each; None where documents have no type or all the same."""
    data = labelled(scores, name)
    if (
        data.strata is None
        or len(set(data.strata)) < 2
        or len(data.values) < sum(s.reported_label is not None for s in scores)
    ):
        return None
    return data.within(each=True)
