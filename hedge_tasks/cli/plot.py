"""`hedge plot`: one figure of a finished run, for a paper (png, svg, pdf) or as numbers (csv)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_run, add_scorer, add_task, chosen_run, chosen_scorer
from hedge_tasks.io.commands import command, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.plots import Chart
    from hedge_tasks.runs.run_files import Run

KINDS = {
    "roc": "ROC curves",
    "risk-coverage": "hallucinations among the answers kept",
    "calibration": "hallucinated share by score",
    "distribution": "values of a score by label (--score)",
    "question-types": "ROC-AUC pooled, within question types, and of each",
    "detectors": "ROC-AUC of se, radflag and vase under each of the run's clusterings",
    "n": "ROC-AUC against the number of answers (HEDGE Figure 2)",
    "threshold": "ROC-AUC against the cosine threshold (HEDGE Figure 3)",
    "categories": "the judge's categories",
}


def add(commands: Any) -> None:
    parser = command(commands, "plot", run, "draw one figure of a run, for a paper or as numbers")
    listing = "; ".join(f"{name}: {text}" for name, text in KINDS.items())
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=listing)
    add_run(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FIGURE.pdf", help="png, svg, pdf, or csv (numbers)")
    parser.add_argument("--score", default="se", help="detector of the distribution (default: se)")
    parser.add_argument("--width", default="column", help="column (3.4 in, default) or page (7 in)")
    parser.add_argument("--title", action="store_true", help="put the title above the figure")
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.plots import check_format, draw

    check_format(arguments.out, table=True)
    get(arguments.score)  # a slip of the pen is told before anything is computed
    finished = chosen_run(arguments)
    chart = _chart(arguments, finished)
    if chart.empty:
        raise ConfigError(f"{finished.title}: nothing to draw: {chart.note}")
    draw(chart, arguments.out, width=arguments.width, title=arguments.title)
    facts = {"figure": str(arguments.out), "kind": arguments.kind, "run": finished.title, "note": chart.note}
    show(
        arguments,
        facts,
        f"{arguments.out}: {chart.title}, {finished.title}" + (f"\n{chart.note}" if chart.note else ""),
    )
    return 0


def _chart(arguments: argparse.Namespace, finished: Run) -> Chart:
    from hedge_tasks import plots

    if arguments.kind == "categories":
        return plots.categories_chart([(finished.model or finished.task, finished)])
    if arguments.kind == "detectors":
        return _of_all_detectors(finished)
    scorer = chosen_scorer(arguments, finished)
    if arguments.kind == "threshold":
        return plots.threshold_chart(finished, scorer)
    if arguments.kind == "n":
        return _of_sizes(finished, scorer)
    scores = scorer.with_detectors([arguments.score]).score(finished.answer_sets)
    if arguments.kind == "distribution":
        return plots.distribution_chart(scores, arguments.score)
    charts = {
        "roc": plots.roc_chart,
        "risk-coverage": plots.risk_coverage_chart,
        "calibration": plots.calibration_chart,
        "question-types": plots.strata_chart,
    }
    return charts[arguments.kind](scores)


def _of_all_detectors(finished: Run) -> Chart:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.plots import detectors_chart
    from hedge_tasks.runs.measures import auroc_estimate
    from hedge_tasks.runs.scorers import scorers_of

    estimates = {}
    for name, scorer in scorers_of(finished).items():
        scores = scorer.score(finished.answer_sets)
        estimates[name] = {score: auroc_estimate(scores, score) for score in SCORE_NAMES}
    return detectors_chart(estimates)


def _of_sizes(finished: Run, scorer: Scorer) -> Chart:
    from hedge_tasks.plots import sweep_chart
    from hedge_tasks.runs.sweep import sweep

    most = min((len(answer_set.clean) for answer_set in finished.answer_sets), default=0)
    return sweep_chart(list(sweep(finished.answer_sets, scorer, range(1, most + 1))))
