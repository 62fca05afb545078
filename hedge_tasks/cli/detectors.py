"""`hedge detectors`: which detector tells hallucinations best on a run, and at what price."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_detectors, add_scorer, add_task, add_trust, chosen_detectors, chosen_scorer
from hedge_tasks.cli.summary import undefined
from hedge_tasks.io.commands import command, number, show, table

if TYPE_CHECKING:
    from hedge_tasks.runs.detector_table import DetectorTable, Rank, Row
    from hedge_tasks.statistics import Comparison


def add(commands: Any) -> None:
    parser = command(commands, "detectors", run, "compare all detectors on the same answers, with their price")
    where = "lmms-eval's output folder, a run file, or a JSONL file of answers; several: mean ranks as well"
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="+", help=where)
    add_detectors(parser, "all")
    parser.add_argument("--against", default="se", metavar="NAME", help="what they are compared with (default: se)")
    parser.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="most draws a question: each detector gets what it can pay, such as 20 clean for se, 10 + 10 for vase",
    )
    add_trust(parser)
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.runs.detector_table import detector_table, mean_ranks
    from hedge_tasks.runs.run_files import load_runs

    everything = [name for name in names() if not get(name).experimental]
    detectors = chosen_detectors(arguments, everything)
    get(arguments.against)
    finished = [one for path in arguments.runs for one in load_runs(path, arguments.task, trust=arguments.trust_run)]
    options: dict[str, Any] = {"against": arguments.against, "budget": arguments.budget}
    tables = [detector_table(one, chosen_scorer(arguments, one), detectors, **options) for one in finished]
    ranks = mean_ranks(tables) if len(tables) > 1 else []
    facts = {
        "against": arguments.against,
        "budget": arguments.budget,
        "runs": [_facts(one) for one in tables],
        "ranks": [asdict(rank) for rank in ranks],
    }
    blocks = [*map(_text, tables), *([_ranks(ranks, len(tables))] if len(tables) > 1 else [])]
    show(arguments, facts, "\n\n".join(blocks))
    return 0


def _facts(found: DetectorTable) -> dict[str, Any]:
    rows = [{**asdict(row), "within": _without_strata(row)} for row in found.rows]
    about = {"task": found.run.task, "model": found.run.model, "clustering": found.scorer.settings()}
    return {**about, "detectors": rows, "left_out": dict(found.left_out), "advice": found.advice}


def _without_strata(row: Row) -> dict[str, Any]:
    return {key: getattr(row.within, key) for key in ("value", "stderr", "interval", "reason")}


def _text(found: DetectorTable) -> str:
    header = ["detector", "draws", "ROC-AUC", "95 %", "within types", f"- {found.against}", "95 %", "p (Holm)"]
    rows = [
        [
            row.detector,
            str(row.draws),
            number(row.estimate.value),
            _interval(row.estimate.interval),
            number(row.within.value),
            *_difference(row.difference, row.p_holm),
        ]
        for row in found.rows
    ]
    reasons: dict[str, list[str]] = {}
    for name, reason in found.left_out.items():
        reasons.setdefault(reason, []).append(name)
    lines = [f"{found.run.title}; filter {found.scorer.name}", *([table(header, rows)] if rows else [])]
    return "\n".join([*lines, *undefined(reasons), *([found.advice] if found.advice else [])])


def _difference(found: Comparison | None, p: float | None) -> list[str]:
    if found is None or found.difference is None:
        return ["", "", ""]
    return [f"{found.difference:+.4f}", _interval(found.interval, "+"), "N/A" if p is None else f"{p:.4f}"]


def _interval(bounds: tuple[float, float] | None, sign: str = "") -> str:
    return f"[{bounds[0]:{sign}.3f}, {bounds[1]:{sign}.3f}]" if bounds else "N/A"


def _ranks(ranks: Sequence[Rank], n_runs: int) -> str:
    rows = [[rank.detector, f"{rank.mean:.2f}", _interval(rank.interval)] for rank in ranks]
    title = f"mean rank over {n_runs} runs of the {len(ranks)} detectors that all of them have; 95 % by resampling runs"
    return "\n".join([title, table(["detector", "rank", "95 %"], rows)])
