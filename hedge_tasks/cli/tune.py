"""`hedge tune`: the threshold of embedding clustering, and how much tuning on the reported documents overstates."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_scored_run, chosen_run, chosen_scorer, takes_all_filters
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.measures.threshold_report import Tried, TuningReport
    from hedge_tasks.numbers import Table


def add(commands: Parser) -> None:
    parser = command(commands, "tune", run, "choose the embedding threshold of a run, and see what that is worth")
    add_scored_run(parser)
    parser.add_argument("--target", metavar="NAME", help="detector whose AUROC is tuned: se (default), radflag or vase")
    parser.add_argument("--low", type=float, default=0.8, help="smallest threshold (default: 0.8)")
    parser.add_argument("--high", type=float, default=0.99, help="largest threshold (default: 0.99)")
    parser.add_argument("--search", default="plateau", help="plateau (default), optuna (the paper's way) or exact")
    parser.add_argument("--trials", type=int, default=20, help="trials of Optuna (default: 20)")
    parser.add_argument("--folds", type=int, default=5, help="folds of cross-fitting (default: 5)")
    parser.add_argument("--share", type=float, default=0.2, help="share of documents held out by tuned (default: 0.2)")
    parser.add_argument("--seed", type=int, default=0, help="of the splits and of Optuna (default: 0)")
    add_out(parser, "the AUROC at every threshold (CSV)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.thresholds import ThresholdChoice
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.sweep import check_samples
    from hedge_tasks.measures.threshold_report import tuning_report
    from hedge_tasks.runs.scorers import scorers_of

    names = ("target", "low", "high", "search", "trials", "folds", "share", "seed")
    chosen = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    choice = ThresholdChoice(**chosen)
    finished = chosen_run(arguments)
    check_samples(finished.answer_sets)
    if takes_all_filters(arguments, finished):
        # The first of a run's filters is NLI, which has no threshold.
        tunable = (name for name, scorer in scorers_of(finished).items() if scorer.backend.name == "embed")
        arguments.clustering = next(tunable, None)
    scorer = chosen_scorer(arguments, finished)
    report = tuning_report(finished.answer_sets, scorer, choice)
    if arguments.out:
        write_whole(arguments.out, _csv(report))
    facts = {
        "task": finished.task,
        "clustering": scorer.settings(),
        "target": choice.target,
        "best": {"threshold": report.best, "auroc": report.curve.at(report.best)},
        "fixed": {"threshold": choice.fallback, "auroc": report.fixed},
        "ways": {name: _facts(tried) for name, tried in report.tried.items()},
        "fold_spread": report.spread,
        "overstatement": report.overstatement,
        "curve": [list(step) for step in _steps(report)],
    }
    table = _table(report, choice.target, choice.fallback)
    show(arguments, facts, f"{finished.title}; filter {scorer.name}", table)
    return 0


def _facts(tried: Tried) -> dict[str, Any]:
    return {**tried.chosen.settings(), "auroc": tried.estimate}


def _table(report: TuningReport, target: str, fallback: float) -> Table:
    from hedge_tasks.numbers import FOUR_DIGITS, SIGNED_FOUR, Cell, Column, Table, format_value

    rows: list[dict[str, Cell]] = [{"way": "fixed", "threshold": f"{fallback:g}", "auroc": report.fixed}]
    for name, tried in report.tried.items():
        ends = sorted({part.threshold for part in tried.chosen.parts})
        shown = [format_value(end, FOUR_DIGITS) for end in dict.fromkeys((ends[0], ends[-1]))]
        rows.append({"way": name, "threshold": " to ".join(shown), "auroc": tried.estimate})
    columns = [
        Column("way", " "),
        Column("threshold"),
        Column("auroc", "ROC-AUC", format=FOUR_DIGITS),
        Column("stderr", format=FOUR_DIGITS, show="stderr", of="auroc"),
        Column("rarer", "rarer class", show="n_rarer", of="auroc"),
        Column("documents", show="n", of="auroc"),
    ]
    best, at, spread = (FOUR_DIGITS(v) for v in (report.curve.at(report.best), report.best, report.spread))
    reasons = {part.reason for tried in report.tried.values() for part in tried.chosen.parts if part.reason}
    notes = [
        "",
        f"best on all documents: {best} at {at} ({len(report.curve.values)} different partitions)",
        f"spread of the folds' thresholds: {spread}",
        f"the oracle less cross-fitting: {format_value(report.overstatement, SIGNED_FOUR)}",
        *(f"not tuned: {reason}" for reason in sorted(reasons)),
    ]
    return Table(columns, rows, f"AUROC of {target} by the way its threshold is chosen", notes)


def _steps(report: TuningReport) -> list[tuple[float, float, float]]:
    """(above, up to, AUROC) of every step."""
    ends = [float(end) for end in report.curve.thresholds]
    return list(zip([report.curve.low, *ends[:-1]], ends, map(float, report.curve.values), strict=True))


def _csv(report: TuningReport) -> str:
    rows = [f"{start!r},{end!r},{value!r}\n" for start, end, value in _steps(report)]
    return "threshold_above,threshold_up_to,auroc\n" + "".join(rows)
