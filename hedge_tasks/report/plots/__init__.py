"""Figures of finished runs: what they show (charts) and how they are drawn for papers.

from hedge_tasks.report.plots import draw, roc_chart

draw(roc_chart(scorer.score(run.answer_sets)), Path("roc.pdf"))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.plots.drawing import check_format, draw, svg_of
from hedge_tasks.report.plots.figures import (
    calibration_chart,
    categories_chart,
    detectors_chart,
    distribution_chart,
    price_chart,
    rates_chart,
    relevance_chart,
    risk_coverage_chart,
    roc_chart,
    strata_chart,
    sweep_chart,
    threshold_chart,
)

if TYPE_CHECKING:
    from hedge_tasks.measures.sweep import Point

__all__ = [
    "Chart",
    "Series",
    "calibration_chart",
    "categories_chart",
    "check_format",
    "distribution_chart",
    "draw",
    "detectors_chart",
    "plot_sweep",
    "price_chart",
    "rates_chart",
    "relevance_chart",
    "risk_coverage_chart",
    "roc_chart",
    "strata_chart",
    "svg_of",
    "sweep_chart",
    "threshold_chart",
]


def plot_sweep(points: Sequence[Point], path: Path, *, by: str = "n") -> None:
    """ROC-AUC against the number of answers or of draws, a line a score, with its 95 % interval as a band."""
    draw(sweep_chart(points, by=by), path)
