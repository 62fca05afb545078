"""The risk-coverage panel: a reader sets a risk and reads how many answers a threshold would accept.

Everything on it is read off the labels that the threshold was chosen on, which is optimistic; the page says so. What
can be promised is `hedge calibrate`'s business (`hedge_tasks.statistics.risk_control`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.measures.curves import labelled
from hedge_tasks.report.analysis import Analysis

RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Of the table that is there without script."""

_STEPS = 1000
"""The risks that a reader may set are multiples of one over this."""


@dataclass(frozen=True)
class Accepted:
    """Labelled answers that a threshold accepts.

    Attributes:
        threshold: an answer with at most this score is accepted.
        n: accepted answers.
        n_wrong: those of them that are hallucinated.
    """

    threshold: float
    n: int
    n_wrong: int

    @property
    def risk(self) -> float:
        """Share of hallucinated answers among the accepted."""
        return self.n_wrong / self.n


@dataclass(frozen=True)
class ThresholdRule:
    """A detector under a clustering, with every threshold that is the best one for some risk.

    Attributes:
        clustering, detector: their names.
        name: of the detector, for people.
        n, n_wrong: labelled answers with a score and those that were declined, which no threshold accepts; and how many
            are hallucinated.
        rate: share of hallucinated answers among the labelled.
        points: the more are accepted the later; the risk rises with them.
    """

    clustering: str
    detector: str
    name: str
    n: int
    n_wrong: int
    rate: float
    points: tuple[Accepted, ...]

    def at(self, risk: float) -> Accepted | None:
        """Return what is accepted where the threshold accepts most at no more than this risk; None for nothing."""
        return next((point for point in reversed(self.points) if point.risk <= risk + 1e-12), None)


def best_thresholds(values: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Accepted, ...]:
    """Return thresholds that no other beats (more answers at no more risk), those that accept few first.

    Equal scores are accepted together. Of thresholds that fall between two multiples of 0.001 of risk only the one
    that accepts most is kept: the panel offers no finer risk.

    Args:
        values: scores, shape `(n,)`; higher = more likely hallucinated.
        labels: 1 = hallucinated, 0 = supported, shape `(n,)`.

    Example:
        >>> [(p.threshold, p.n, p.n_wrong) for p in best_thresholds([0.1, 0.2, 0.3, 0.3], [0, 1, 0, 0])]
        [(0.1, 1, 0), (0.3, 4, 1)]
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not len(x):
        return ()
    levels, place = np.unique(x, return_inverse=True)
    accepted = np.cumsum(np.bincount(place, minlength=len(levels)))
    wrong = np.cumsum(np.bincount(place, weights=y, minlength=len(levels)))
    points: list[Accepted] = []
    for i in range(len(levels) - 1, -1, -1):
        point = Accepted(float(levels[i]), int(accepted[i]), int(wrong[i]))
        if not points or _step(point) < _step(points[-1]):
            points.append(point)
    return tuple(reversed(points))


def _step(point: Accepted) -> int:
    """Return the smallest risk on the grid that allows for the threshold."""
    return math.ceil(point.risk * _STEPS - 1e-9)


def rules_of(analysis: Analysis) -> Iterator[ThresholdRule]:
    """Yield every compared detector under every clustering, where the labels are of both kinds."""
    declined = analysis.finding.coverage.declined
    for clustering, scores in analysis.scores.items():
        for detector in analysis.shown:
            if detector not in analysis.estimates[clustering]:
                continue
            data = labelled(scores, detector)
            if data.both_classes:
                counts = len(data.labels) + declined, int(data.labels.sum()), float(data.labels.mean())
                points = best_thresholds(data.values, data.labels)
                yield ThresholdRule(clustering, detector, name_of(detector), *counts, points)


def risk_panel(analysis: Analysis) -> dict[str, Any] | None:
    """Return the panel as the template shows it; None where there is nothing to choose by.

    Returns:
        `risks` and `rows`, the table without script; `rules`, what the script reads, ready for JSON; `rate`, share of
        hallucinated answers of the first rule; `most`, the largest risk of the slider in per cent.
    """
    rules = list(rules_of(analysis))
    if not rules:
        return None
    rates = [rule.rate for rule in rules]
    return {
        "risks": RISKS,
        "rows": [(rule, [rule.at(risk) for risk in RISKS]) for rule in rules],
        "rate": rates[0],
        "start": min(10, max(1, math.floor(50 * rates[0]))),
        "most": max(5, math.ceil(100 * max(rates))),
        "rules": [_rule_for_script(rule) for rule in rules],
    }


def _rule_for_script(rule: ThresholdRule) -> dict[str, Any]:
    # JSON has no infinity, which an impossible answer's score is.
    points = [(p.threshold if math.isfinite(p.threshold) else str(p.threshold), p.n, p.n_wrong) for p in rule.points]
    names = {"clustering": rule.clustering, "detector": rule.detector, "name": rule.name}
    return {**names, "n": rule.n, "wrong": rule.n_wrong, "points": points}
