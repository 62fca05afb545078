r"""An AUROC by a judge's labels, as it would be without the judge's errors, if these have nothing to do with the score.

With errors independent of the score given the truth, what the judge calls hallucinated is a mixture of both kinds, and

.. math:: A_J - \tfrac12 = (\mathrm{PPV} + \mathrm{NPV} - 1) \, (A - \tfrac12).

A judge whose errors go with the score moves the AUROC either way; no check without scores tells, only an audit does.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from hedge_tasks.numbers import Interval, Number
from hedge_tasks.statistics.base import wilson


def if_independent(
    by_judge: Number,
    rate: float,
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    *,
    confidence: float = 0.95,
) -> Number:
    """Return the AUROC without the judge's errors, if these are independent of the score.

    Args:
        by_judge: AUROC by the judge's labels.
        rate: share of hallucinated answers, by the judge, where the AUROC was measured.
        sensitivity, specificity: of the judge where it was checked: right ones, and of how many.
        confidence: level of the intervals of sensitivity and specificity.

    Returns:
        The AUROC; its interval are the extremes over the intervals of all three: bounds, longer than an interval need
        be. No value where the judge is no better than chance within these.

    Example:
        >>> round(if_independent(Number(0.75, interval=(0.7, 0.8)), 0.36, (92, 100), (85, 100)).value, 3)
        0.877
    """
    counts: dict[str, Any] = {"n": by_judge.n, "n_groups": by_judge.n_groups, "unit": by_judge.unit}
    if by_judge.value is None:
        return replace(by_judge)
    if not sensitivity[1] or not specificity[1]:
        return Number.undefined("the check has no answers of one of the classes", **counts)
    point = _corrected(by_judge.value, rate, sensitivity[0] / sensitivity[1], specificity[0] / specificity[1])
    if point is None:
        return Number.undefined("the judge of the check is no better than chance at this rate", **counts)
    bounds = [by_judge.interval or (by_judge.value, by_judge.value), *_intervals(sensitivity, specificity, confidence)]
    corners = [_corrected(area, rate, a, b) for area, a, b in product(*bounds)]
    defined = [corner for corner in corners if corner is not None]
    interval = (0.0, 1.0) if len(defined) < len(corners) else (min(defined), max(defined))
    return Number(point, interval=interval, method="bounds, if errors are independent of the score", **counts)


def _intervals(sensitivity: tuple[int, int], specificity: tuple[int, int], confidence: float) -> list[Interval]:
    return [wilson(right / n, n, confidence) for right, n in (sensitivity, specificity)]


def _corrected(area: float, rate: float, sensitivity: float, specificity: float) -> float | None:
    """The AUROC in [0, 1]; None where the judge's labels say nothing of the truth."""
    informed = sensitivity + specificity - 1
    if informed <= 0 or not 0 < rate < 1:
        return None
    true_rate = min(1.0, max(0.0, (rate + specificity - 1) / informed))
    ppv, npv = sensitivity * true_rate / rate, specificity * (1 - true_rate) / (1 - rate)
    shrunk = ppv + npv - 1
    return None if shrunk <= 0 else min(1.0, max(0.0, 0.5 + (area - 0.5) / shrunk))
