"""`hedge detectors`: which detector tells hallucinations best on a run, and at what price."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_detectors, add_scorer, add_task, add_trust, chosen_detectors, chosen_scorer
from hedge_tasks.evaluation import brought_commands
from hedge_tasks.io.commands import Parser, command, number, show, table

if TYPE_CHECKING:
    from hedge_tasks.measures.detector_table import DetectorTable, Rank, Row
    from hedge_tasks.measures.fusion import Fusion
    from hedge_tasks.statistics import Comparison


def add(commands: Parser) -> None:
    parser = command(commands, "detectors", run, "compare all detectors on the same answers, with their price")
    where = "lmms-eval's output folder, a run file, or a JSONL file of answers; several: mean ranks as well"
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="+", help=where)
    add_detectors(parser, "all that need nothing of a model which the run does not keep")
    parser.add_argument("--against", metavar="NAME", help="what they are compared with (default: se)")
    parser.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="most draws a question: each detector gets what it can pay, such as 20 clean for se, 10 + 10 for vase",
    )
    parser.add_argument("--html", type=Path, metavar="PAGE.html", help="write a page, a leaderboard of detectors")
    parser.add_argument("--plot", type=Path, metavar="PRICE.png", help="draw ROC-AUC against draws (or .csv)")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="ask models for what further detectors need, such as NLI probabilities of all pairs of answers, and write "
        "it into the run files, so that the next time nothing is asked",
    )
    parser.add_argument(
        "--fuse",
        action="store_true",
        help="fuse the detectors as well: mean of their ranks, and models, in sample and cross-fitted by image",
    )
    add_trust(parser)
    add_task(parser)
    add_scorer(parser)
    for add_command in brought_commands("detectors"):
        add_command(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.detectors.pipeline import REFERENCE
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.detector_table import detector_table, mean_ranks
    from hedge_tasks.measures.fusion import fuse
    from hedge_tasks.measures.kept_claims import kept_numbers
    from hedge_tasks.plots import check_format, draw, price_chart
    from hedge_tasks.report.detector_page import build_detector_page
    from hedge_tasks.runs.run_files import file_of, keep_evidence, load_runs

    everything = [name for name in names() if not get(name).experimental]
    detectors = chosen_detectors(arguments, everything)
    options: dict[str, Any] = {"against": get(arguments.against or REFERENCE).name, "budget": arguments.budget}
    # Whoever names a detector wants it, whatever has to be asked for it.
    only_kept = arguments.detectors is None and not arguments.keep
    if arguments.plot:
        check_format(arguments.plot, table=True)
    finished = [one for path in arguments.runs for one in load_runs(path, arguments.task, trust=arguments.trust_run)]
    if arguments.keep:
        for one in finished:
            file_of(one)  # before anything is asked for nothing
    if arguments.plot and len(finished) > 1:
        raise ConfigError(f"--plot draws the detectors of one run, and there are {len(finished)}; --html shows all")
    tables = [
        detector_table(one, chosen_scorer(arguments, one), detectors, **options, only_kept=only_kept)
        for one in finished
    ]
    fusions = [fuse(one.scores) if arguments.fuse else None for one in tables]
    ranks = mean_ranks(tables) if len(tables) > 1 else []
    kept = [keep_evidence(one) for one in finished] if arguments.keep else []
    kept_claims = [kept_numbers(one) for one in finished]
    if arguments.html:
        about: dict[str, Any] = {"budget": arguments.budget, "fusions": fusions, "claims": kept_claims}
        write_whole(arguments.html, build_detector_page(tables, ranks, **about))
    if arguments.plot:
        draw(price_chart([(row.detector, row.draws, row.estimate) for row in tables[0].rows]), arguments.plot)
    claims = [claim_block(one) for one in kept_claims]
    facts = {
        **options,
        "runs": [{**_facts(a, b), **more} for a, b, (_, more) in zip(tables, fusions, claims, strict=True)],
        "ranks": [asdict(rank) for rank in ranks],
    }
    texts = [(_text(a, b), text) for a, b, (text, _) in zip(tables, fusions, claims, strict=True)]
    blocks = [text for of_run in texts for text in of_run if text]
    written = [f"{path}: written" for path in (*kept, arguments.html, arguments.plot) if path]
    show(arguments, facts, "\n\n".join([*blocks, *([_ranks(ranks, len(tables))] if len(tables) > 1 else []), *written]))
    return 0


def _facts(found: DetectorTable, fusion: Fusion | None) -> dict[str, Any]:
    rows = [{**asdict(row), "within": _without_strata(row)} for row in found.rows]
    about = {"task": found.run.task, "model": found.run.model, "clustering": found.scorer.settings()}
    fused = {"fusion": asdict(fusion)} if fusion else {}
    return {**about, "detectors": rows, "left_out": dict(found.left_out), "advice": found.advice, **fused}


def _without_strata(row: Row) -> dict[str, Any]:
    return {key: getattr(row.within, key) for key in ("value", "stderr", "interval", "reason")}


def _text(found: DetectorTable, fusion: Fusion | None) -> str:
    compared = [f"- {found.against}", "95 %", "p (Holm)"]
    header = ["detector", "draws", "seconds", "ROC-AUC", "95 %", "within types", *compared]
    rows = [
        [
            row.detector,
            str(row.draws),
            f"{row.seconds:.3f}",
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
    lines += ["seconds: of the evidence (looked up where it was kept) and the score, for all questions"] if rows else []
    lines += [f"left out: {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    lines += [found.advice] if found.advice else []
    return "\n".join([*lines, *(["", _fusion(fusion)] if fusion else [])])


def _fusion(found: Fusion) -> str:
    rows = []
    for way in found.ways:
        in_sample = "" if way.in_sample is None else number(way.in_sample)
        rows.append([way.name, in_sample, number(way.estimate.value), _interval(way.estimate.interval)])
    name, alone = found.best
    rows.append([f"{name} alone, picked by these labels", "", number(alone.value), _interval(alone.interval)])
    title = f"{len(found.detectors)} detectors fused, {found.draws} draws together"
    return "\n".join([title, table(["way", "in sample", "cross-fitted", "95 %"], rows)])


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
