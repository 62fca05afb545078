"""`hedge plot`: one figure of a finished run, for a paper (png, svg, pdf) or as numbers (csv)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_detectors, add_scored_run, chosen_detectors, chosen_run, chosen_scorer
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.report.plots import Chart
    from hedge_tasks.runs.run_files import Run

KINDS = {
    "roc": "ROC curves",
    "risk-coverage": "hallucinations among the answers kept",
    "calibration": "hallucinated share by score",
    "distribution": "values of one detector by label",
    "question-types": "ROC-AUC pooled, within question types, and of each",
    "detectors": "ROC-AUC of each detector under each of the run's clusterings",
    "price": "ROC-AUC against the draws that a detector costs",
    "n": "ROC-AUC against the number of answers (HEDGE Figure 2)",
    "draws": "ROC-AUC against the draws that each detector pays for",
    "threshold": "ROC-AUC against the cosine threshold (HEDGE Figure 3)",
    "categories": "the judge's categories",
    "relevance": "relevance of objects that are not in the image (VOPE Figures 7 and 8)",
}


def add(commands: Parser) -> None:
    parser = command(commands, "plot", run, "draw one figure of a run, for a paper or as numbers")
    listing = "; ".join(f"{name}: {text}" for name, text in KINDS.items())
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=listing)
    add_scored_run(parser)
    add_out(parser, "a figure (.png, .svg, .pdf), or its numbers (.csv)", required=True)
    add_detectors(parser, "those of the run that are no simple baselines; for the distribution the first of them")
    parser.add_argument("--width", default="column", help="column (3.4 in, default) or page (7 in)")
    parser.add_argument("--title", action="store_true", help="put the title above the figure")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.report.plots import check_format, draw

    check_format(arguments.out, table=True)
    chosen_detectors(arguments, ())  # a slip of the pen is told before anything is computed
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
    from hedge_tasks.detectors.pipeline import detection_auroc, prices_of
    from hedge_tasks.measures.sweep import check_samples
    from hedge_tasks.report import plots

    if arguments.kind == "categories":
        return plots.categories_chart([(finished.model or finished.task, finished)])
    if arguments.kind == "relevance":
        return plots.relevance_chart(finished)
    if arguments.kind == "detectors":
        return _clusterings_chart(finished, arguments)
    if arguments.kind in ("n", "draws", "threshold"):
        check_samples(finished.answer_sets)
    scorer = chosen_scorer(arguments, finished)
    detectors = _detectors(scorer, arguments)
    if arguments.kind == "threshold":
        return plots.threshold_chart(finished, scorer, detectors)
    if arguments.kind in ("n", "draws"):
        return _sizes_chart(finished, scorer, detectors, by=arguments.kind)
    scores = replace(scorer, detectors=detectors).score(finished.answer_sets)
    if arguments.kind == "price":
        return plots.price_chart(
            [(name, price.mean, detection_auroc(scores, name)) for name, price in prices_of(scores).items()]
        )
    if arguments.kind == "distribution":
        return plots.distribution_chart(scores, detectors[0])
    from hedge_tasks.measures.coverage import Coverage, parts_of

    declined = Coverage.of(parts_of(finished).values()).declined
    charts: dict[str, Callable[..., Chart]] = {
        "roc": plots.roc_chart,
        "risk-coverage": partial(plots.risk_coverage_chart, declined=declined),
        "calibration": plots.calibration_chart,
        "question-types": plots.strata_chart,
    }
    return charts[arguments.kind](scores, detectors)


def _detectors(scorer: Scorer, arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the detectors asked for, else those of the run; for prices its baselines too, which may be better buys."""
    from hedge_tasks.detectors.pipeline import main_detectors

    own = scorer.detectors if arguments.kind == "price" else main_detectors(scorer.detectors)
    return chosen_detectors(arguments, own)


def _clusterings_chart(finished: Run, arguments: argparse.Namespace) -> Chart:
    from hedge_tasks.detectors.pipeline import detection_auroc
    from hedge_tasks.report.plots import detectors_chart
    from hedge_tasks.runs.scorers import scorers_of

    estimates = {}
    for name, scorer in scorers_of(finished).items():
        detectors = _detectors(scorer, arguments)
        scores = replace(scorer, detectors=detectors).score(finished.answer_sets)
        estimates[name] = {detector: detection_auroc(scores, detector) for detector in detectors}
    return detectors_chart(estimates)


def _sizes_chart(finished: Run, scorer: Scorer, detectors: tuple[str, ...], *, by: str) -> Chart:
    from hedge_tasks.measures.sweep import sweep, usual_sizes
    from hedge_tasks.report.plots import sweep_chart

    most = min((len(answer_set.clean) for answer_set in finished.answer_sets), default=0)
    return sweep_chart(list(sweep(finished.answer_sets, scorer, usual_sizes(most), detectors)), by=by)
