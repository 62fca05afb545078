"""`hedge detectors`: which detector tells hallucinations best on a run, and at what price."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import add_detectors, add_scorer, add_task, add_trust, chosen_detectors, chosen_scorer
from hedge_tasks.evaluation import brought_commands
from hedge_tasks.io.commands import Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.measures.detector_table import DetectorTable, Rank
    from hedge_tasks.measures.fusion import Fusion
    from hedge_tasks.numbers import Table
    from hedge_tasks.probes.base import FittedDetector
    from hedge_tasks.runs.run_files import Run


def add(commands: Parser) -> None:
    parser = command(commands, "detectors", run, "compare all detectors on the same answers, with their price")
    where = "lmms-eval's output folder, a run file, or a JSONL file of answers; several: mean ranks as well"
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="*", help=where)
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
    parser.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="most samples per question: each detector gets what it can pay, such as 20 clean for se, 10 + 10 for vase",
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
    from hedge_tasks.io.progress import progress
    from hedge_tasks.measures.detector_table import detector_table, mean_ranks
    from hedge_tasks.measures.fusion import fuse
    from hedge_tasks.measures.kept_claims import kept_numbers
    from hedge_tasks.measures.run_finding import finding_of
    from hedge_tasks.plots import check_format, draw, price_chart
    from hedge_tasks.report.detector_page import build_detector_page
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
    finished = [
        each_run for path in arguments.runs for each_run in load_runs(path, arguments.task, trust=arguments.trust_run)
    ]
    if arguments.arena:  # of all its sets, whatever the task of the run is
        finished += load_runs(arguments.arena, None, trust=False)
    if arguments.keep:
        for each_run in finished:
            file_of(each_run)  # before anything is asked for nothing
    if arguments.plot and len(finished) > 1:
        raise ConfigError(f"--plot draws the detectors of one run, and there are {len(finished)}; --html shows all")
    asked = [_asked(arguments, each_run, everything) for each_run in finished]
    tables = [
        detector_table(
            each_run,
            chosen_scorer(arguments, each_run),
            detectors,
            fitted=fitted,
            **options,
            only_kept=only_kept,
            # Nobody who asks for less is told more.
            blind=arguments.detectors is None,
        )
        for each_run, (detectors, fitted) in progress(
            zip(finished, asked, strict=True), total=len(finished), name="Scoring", unit="run"
        )
    ]
    fusions = [fuse(each_run.scores) if arguments.fuse else None for each_run in tables]
    ranks = mean_ranks(tables) if len(tables) > 1 else []
    kept = [keep_evidence(each_run) for each_run in finished] if arguments.keep else []
    kept_claims = [kept_numbers(each_run) for each_run in finished]
    findings = [finding_of(each_run) for each_run in finished]
    if arguments.html:
        about: dict[str, Any] = {"budget": arguments.budget, "findings": findings}
        about |= {"fusions": fusions, "claims": kept_claims}
        write_whole(arguments.html, build_detector_page(tables, ranks, **about))
    if arguments.plot:
        draw(price_chart([(row.detector, row.draws, row.estimate) for row in tables[0].rows]), arguments.plot)
    claims = [claim_block(each_run) for each_run in kept_claims]
    rank_table = _ranks(ranks, len(tables)) if len(tables) > 1 else None
    facts = {
        **options,
        "runs": [
            {**_facts(a, b), **more, **finding.to_dict()}
            for a, b, (_, more), finding in zip(tables, fusions, claims, findings, strict=True)
        ],
        "ranks": rank_table or [],
    }
    parts: list[object] = []
    for table, fusion, (claim_text, _), finding in zip(tables, fusions, claims, findings, strict=True):
        parts += ["\n".join(finding.lines()), _table(table), _fusion(fusion) if fusion else "", claim_text]
    written = [f"{path}: written" for path in (*kept, arguments.html, arguments.plot) if path]
    show(arguments, facts, *parts, rank_table or "", "\n".join(written))
    return 0


def _asked(
    arguments: argparse.Namespace, run: Run, everything: Sequence[str]
) -> tuple[tuple[str, ...], tuple[FittedDetector, ...]]:
    """The detectors for a run, and those that are fitted: those that are named, or all that it keeps evidence for."""
    from hedge_tasks.detectors.evidence import OF_INSIDE
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.probes.registry import fitted_detectors
    from hedge_tasks.runs.kept_inside import bytes_kept

    known = fitted_detectors()
    if arguments.detectors is not None:
        listed = [name.strip() for name in arguments.detectors.split(",")]
        others = argparse.Namespace(detectors=",".join(name for name in listed if name not in known))
        fitted = tuple(known[name] for name in listed if name in known)
        return chosen_detectors(others, ()) if others.detectors else (), fitted
    kept = bytes_kept(run).keys()
    met = {need for need, arrays in OF_INSIDE.items() if kept >= arrays}
    inside = [name for name in names() if name not in everything and get(name).needs & met]
    return (*everything, *inside), tuple(one for one in known.values() if one.array in kept)


def _needs() -> Table:
    """The price of every detector, and the way to have a run keep its evidence."""
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.numbers import Cell, Column, Table
    from hedge_tasks.probes.registry import fitted_detectors

    n = 10
    rows: list[dict[str, Cell]] = [
        {"detector": name, "draws": one.draws(n, n), "passes": one.passes(n), "labels": "no", "kept": one.kept_by}
        for name in names()
        for one in [get(name)]
    ]
    rows += [
        {
            "detector": f"{one.name} (fitted)",
            "draws": 0,
            "passes": 1,
            "labels": "yes" if one.target == "labels" else "no, draws",
            "kept": f"--gen_kwargs inside={one.part}",
        }
        for one in (*fitted_detectors().values(), *fitted_detectors("claim").values())
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
    about = {"task": table.run.task, "model": table.run.model, "clustering": table.scorer.settings()}
    facts = {**about, "detectors": _table(table), "left_out": table.left_out, "advice": table.advice}
    facts |= {"labels": table.labels, "blind": table.blind.sentence if table.blind else ""}
    return facts | ({"fusion": fusion} if fusion else {})


def _table(table: DetectorTable) -> Table:
    from hedge_tasks.measures.detector_columns import numbers_table
    from hedge_tasks.numbers import Cell, reason_lines
    from hedge_tasks.runs.kept_inside import bytes_kept

    blind = table.blind
    baselines: list[dict[str, Cell]] = [
        {
            "detector": f"{one.name}{'*' if one.reversed else ''} (blind)",
            "title": one.title,
            "draws": 0,
            "estimate": one.estimate,
        }
        for one in (blind.rows if blind else ())
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
        notes += ["* turned round"] if any(one.reversed for one in blind.rows) else []
        notes += reason_lines("left out", blind.left_out.items())
    if table.independent:
        notes.append(
            "if independent: without the judge's errors, as `hedge judge --check` found them, if they have nothing to "
            "do with the score; in brackets bounds"
        )
    notes += [line for line in (blind.sentence if blind else "", table.advice, table.labels) if line]
    about: dict[str, Any] = {"title": f"{table.run.title}; filter {table.scorer.name}", "notes": notes}
    about |= {"experts": table.experts, "independent": table.independent, "baselines": baselines}
    return numbers_table(table.rows, against=table.against, within="within types", **about)


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
