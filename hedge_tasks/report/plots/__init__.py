"""Figures of finished runs: what they show (charts), and the one way in which they are drawn.

from hedge_tasks.report.plots import draw, roc_chart

draw(roc_chart(scorer.score(run.answer_sets)), Path("roc.pdf"))
"""

from __future__ import annotations

from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.plots.drawing import draw, svg_of
from hedge_tasks.report.plots.figures import (
    categories_chart,
    detectors_chart,
    relevance_chart,
    risk_coverage_chart,
    roc_chart,
    sweep_chart,
    threshold_chart,
)

__all__ = [
    "Chart",
    "Series",
    "categories_chart",
    "detectors_chart",
    "draw",
    "relevance_chart",
    "risk_coverage_chart",
    "roc_chart",
    "svg_of",
    "sweep_chart",
    "threshold_chart",
]
