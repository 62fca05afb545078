"""`hedge detectors`: which detector tells hallucinations best on a run, and at what price."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import (
    RUN_HELP,
    add_budget,
    add_detectors,
    add_scorer,
    add_task,
    add_trust,
    chosen_scorer,
    listed,
    with_fitted,
)
from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.probes.base import FittedDetector
    from hedge_tasks.measures.detector_table import DetectorTable, Rank
    from hedge_tasks.measures.fusion import Fusion
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run


def add(commands: Parser) -> None:
    parser = command(commands, "detectors", run, "compare all detectors on the same answers, with their price")
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="*", help=f"{RUN_HELP}; several: mean ranks as well")
    parser.add_argument(
        "--needs", action="store_true", help="say what each detector costs and what a run has to keep for it; no RUN"
    )
    parser.add_argument(
        "--arena",
        type=Path,
        metavar="FOLDER",
        help="rank on the runs of this folder as well, as benchmarks/arena makes them",
    )
    add_detectors(parser, "all that need nothing of a model which the run does not keep")
    parser.add_argument("--against", metavar="NAME", help="what they are compared with (default: se)")
    add_budget(parser)
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
    for add_command in evaluation_commands("detectors"):
        add_command(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.detectors.pipeline import REFERENCE
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.progress import progress
    from hedge_tasks.measures.detector_table import detector_table, mean_ranks
    from hedge_tasks.measures.fusion import fuse
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.measures.kept_claims import kept_numbers
    from hedge_tasks.report.detector_page import build_detector_page
    from hedge_tasks.report.plots import check_format, draw, price_chart
    from hedge_tasks.runs.run_files import file_of, keep_evidence, load_runs

    if arguments.needs:
        needs = _needs()
        show(arguments, {"detectors": needs}, needs)
        return 0
    if not (arguments.runs or arguments.arena):
        raise ConfigError("RUN: say which run; --needs alone says what each detector needs")
    everything = [name for name in names() if not get(name).experimental]
    options: dict[str, Any] = {"against": get(arguments.against or REFERENCE).name, "budget": arguments.budget}
    # Whoever names a detector wants it, whatever has to be asked for it.
    only_kept = arguments.detectors is None and not arguments.keep
    if arguments.plot:
        check_format(arguments.plot, table=True)
    finished = [run for path in arguments.runs for run in load_runs(path, arguments.task, trust=arguments.trust_run)]
    if arguments.arena:  # of all its sets, whatever the task of the run is
        finished += load_runs(arguments.arena, None, trust=False)
    if arguments.keep:
        for run in finished:
            file_of(run)  # before anything is asked for nothing
    if arguments.plot and len(finished) > 1:
        raise ConfigError(f"--plot draws the detectors of one run, and there are {len(finished)}; --html shows all")
    chosen = [_chosen(arguments, run, everything) for run in finished]
    tables = [
        detector_table(
            run,
            chosen_scorer(arguments, run),
            detectors,
            fitted=fitted,
            **options,
            only_kept=only_kept,
            # Who names detectors gets no others.
            blind=arguments.detectors is None,
        )
        for run, (detectors, fitted) in progress(
            zip(finished, chosen, strict=True), total=len(finished), name="Scoring", unit="run"
        )
    ]
    fusions = [fuse(table.scores) if arguments.fuse else None for table in tables]
    ranks = mean_ranks(tables) if len(tables) > 1 else []
    files = [keep_evidence(run) for run in finished] if arguments.keep else []
    claim_numbers = [kept_numbers(run) for run in finished]
    findings = [headline(run) for run in finished]
    if arguments.html:
        sections: dict[str, Any] = {"findings": findings, "fusions": fusions, "claims": claim_numbers}
        write_whole(arguments.html, build_detector_page(tables, ranks, budget=arguments.budget, **sections))
    if arguments.plot:
        draw(price_chart([(row.detector, row.draws, row.estimate) for row in tables[0].rows]), arguments.plot)
    claims = [claim_block(numbers) for numbers in claim_numbers]
    rank_table = _ranks(ranks, len(tables)) if len(tables) > 1 else None
    facts = {
        **options,
        "runs": [
            {**_facts(table, fusion), **claim_facts, **finding.to_dict()}
            for table, fusion, (_, claim_facts), finding in zip(tables, fusions, claims, findings, strict=True)
        ],
        "ranks": rank_table or [],
    }
    parts: list[object] = []
    for table, fusion, (claim_text, _), finding in zip(tables, fusions, claims, findings, strict=True):
        parts += [
            "\n".join([*finding.lines(), *finding.details]),
            _table(table),
            _fusion(fusion) if fusion else "",
            claim_text,
        ]
    lines = [f"{path}: written" for path in (*files, arguments.html, arguments.plot) if path]
    show(arguments, facts, *parts, rank_table or "", "\n".join(lines))
    return 0


def _chosen(
    arguments: argparse.Namespace, run: Run, everything: Sequence[str]
) -> tuple[tuple[str, ...], Sequence[FittedDetector]]:
    """Return detectors for a run, and fitted ones: those that are named, or all that it keeps evidence for."""
    from hedge_tasks.detectors.evidence import INSIDE_ARRAYS
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.runs.kept_inside import bytes_kept

    if arguments.detectors is not None:
        return with_fitted(listed(arguments.detectors))
    arrays_kept = bytes_kept(run).keys()
    met = {need for need, arrays in INSIDE_ARRAYS.items() if arrays_kept >= arrays}
    inside = [name for name in names() if name not in everything and get(name).needs & met]
    fitted = [detector for detector in fitted_detectors().values() if detector.array in arrays_kept]
    return (*everything, *inside), fitted


def _needs() -> Table:
    """Return a table with the price of every detector, and the way to have a run keep its evidence."""
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.numbers import Cell, Column, Table

    n = 10
    rows: list[dict[str, Cell]] = [
        {"detector": d.name, "draws": d.draws(n, n), "passes": d.passes(n), "labels": "no", "kept": d.kept_by}
        for d in map(get, names())
    ]
    rows += [
        {
            "detector": f"{detector.name} (fitted)",
            "draws": 0,
            "passes": 1,
            "labels": "yes" if detector.target == "labels" else "no, draws",
            "kept": f"--gen_kwargs inside={detector.part}",
        }
        for detector in (*fitted_detectors().values(), *fitted_detectors("claim").values())
    ]
    columns = [
        Column("detector"),
        Column("draws"),
        Column("passes"),
        Column("labels"),
        Column("kept", "a run keeps it with"),
    ]
    notes = [
        f"draws: of {n} clean and {n} noisy ones; passes: prompts that the model reads once more",
        "HEDGE_DETECTORS=NAME of an evaluation keeps the parts of inside, too, that a formula needs",
        "nothing in the last column: every run keeps what it needs; detectors of draws need draws, n=0 has none",
    ]
    return Table(columns, rows, "detectors, their price, and what they need", notes)


def _facts(table: DetectorTable, fusion: Fusion | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"task": table.run.task, "model": table.run.model, "clustering": table.scorer.settings()}
    facts |= {"detectors": _table(table), "left_out": table.left_out}
    return facts | ({"fusion": fusion} if fusion else {})


def _table(table: DetectorTable) -> Table:
    from hedge_tasks.measures.detector_columns import numbers_table
    from hedge_tasks.numbers import Cell, reason_lines
    from hedge_tasks.runs.kept_inside import bytes_kept

    blind = table.blind
    baselines: list[dict[str, Cell]] = [
        {
            "detector": f"{row.name}{'*' if row.reversed else ''} (blind)",
            "title": row.title,
            "draws": 0,
            "estimate": row.estimate,
        }
        for row in (blind.rows if blind else ())
    ]
    seconds = "seconds: of the evidence (looked up where it was kept) and the score, for all questions"
    notes = [*([seconds] if table.rows or baselines else []), *reason_lines("left out", table.left_out.items())]
    if any(row.passes or row.fitted for row in table.rows):
        notes.append("passes: prompts that the model read once more; labels: documents a fitted detector learnt from")
    if sizes := bytes_kept(table.run):
        notes.append(
            f"bytes a document, kept from inside the model: {', '.join(f'{k} {round(v):,}' for k, v in sizes.items())}"
        )
    if any(row.fitted for row in table.rows):
        notes.append(
            "fitted: on other images than it scores; the fitting is in intervals and p; controls: `hedge probes`"
        )
    if blind:
        notes += ["* turned round"] if any(row.reversed for row in blind.rows) else []
        notes += reason_lines("left out", blind.left_out.items())
    if table.independent:
        notes.append(
            "if independent: without the judge's errors, as `hedge judge --check` found them, if they have nothing to "
            "do with the score; in brackets bounds"
        )
    notes.append("p: of this table, exploratory; the run's family of comparisons stands above")
    parts: dict[str, Any] = {"experts": table.experts, "independent": table.independent, "baselines": baselines}
    parts |= {"title": f"{table.run.title}; filter {table.scorer.name}", "notes": notes, "within": "within types"}
    return numbers_table(table.rows, against=table.against, **parts)


def _fusion(fusion: Fusion) -> Table:
    from hedge_tasks.numbers import FOUR_DIGITS, Cell, Column, Table

    name, alone = fusion.best
    rows: list[dict[str, Cell]] = [
        {"way": way.name, "in_sample": way.in_sample, "estimate": way.estimate} for way in fusion.ways
    ]
    rows.append({"way": f"{name} alone, picked by these labels", "estimate": alone})
    columns = [
        Column("way"),
        Column("in_sample", format=FOUR_DIGITS),
        Column("estimate", "cross-fitted", format=FOUR_DIGITS),
        Column("interval", "95 %", show="interval", of="estimate"),
    ]
    return Table(columns, rows, f"{len(fusion.detectors)} detectors fused, {fusion.draws} draws together")


def _ranks(ranks: Sequence[Rank], n_runs: int) -> Table:
    from hedge_tasks.numbers import Cell, Column, Format, Number, Table

    title = f"mean rank over {n_runs} runs of the {len(ranks)} detectors that all of them have; 95 % by resampling runs"
    columns = [
        Column("detector"),
        Column("rank", format=Format(digits=2)),
        Column("interval", "95 %", show="interval", of="rank"),
    ]
    rows: list[dict[str, Cell]] = [
        {"detector": rank.detector, "rank": Number(rank.mean, interval=rank.interval, n=n_runs, unit="run")}
        for rank in ranks
    ]
    return Table(columns, rows, title)
