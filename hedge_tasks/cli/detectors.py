"""`hedge detectors`: which detector tells hallucinations best on a run, and at what price."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import (
    RUN_HELP,
    ClusteringChoice,
    add_budget,
    add_csv,
    add_detectors,
    add_scorer,
    add_task,
    add_trust,
    chosen_detectors,
    chosen_scorer,
    listed,
    show_table,
    with_fitted,
)
from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import Parser, command

if TYPE_CHECKING:
    from hedge_tasks.detectors.probes.base import FittedDetector
    from hedge_tasks.measures.detector_table import DetectorTable, Rank
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run

_SHOWN = 10
"""Rows of the best detectors that are shown without --all."""


def add(commands: Parser) -> None:
    parser = command(commands, "detectors", run, "compare all detectors on the same answers, with their price")
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="*", help=f"{RUN_HELP}; several: mean ranks as well")
    parser.add_argument("--all", action="store_true", help="all rows and columns, not the ten best and the free ones")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--sweep", choices=("n", "draws"), help="ROC-AUC against the number of answers, or their price")
    ways.add_argument("--thresholds", action="store_true", help="ROC-AUC by the way embed's threshold is chosen")
    ways.add_argument("--seeds", action="store_true", help="runs that differ in the seed alone; the draws' share")
    ways.add_argument("--probes", action="store_true", help="detectors fitted on the inside of the model alone")
    ways.add_argument("--needs", action="store_true", help="what each detector costs and needs to be kept; no RUN")
    parser.add_argument(
        "--search", default="plateau", help="of --thresholds: plateau (default) or optuna (the paper's)"
    )
    add_detectors(parser, "all that need nothing of a model which the run does not keep")
    parser.add_argument("--against", metavar="NAME", help="what they are compared with (default: se)")
    add_budget(parser)
    parser.add_argument("--html", type=Path, metavar="PAGE.html", help="write a page, a leaderboard of detectors")
    parser.add_argument(
        "--keep", action="store_true", help="ask models for what further detectors need, and write it into the run"
    )
    add_trust(parser)
    add_task(parser)
    add_scorer(parser)
    add_csv(parser)
    for add_command in evaluation_commands("detectors"):
        add_command(parser)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.run_files import load_runs

    if arguments.needs:
        needs = needs_table()
        show_table(arguments, needs, {"detectors": needs})
        return 0
    if not arguments.runs:
        raise ConfigError("RUN: say which run; --needs alone says what each detector needs")
    runs = [r for path in arguments.runs for r in load_runs(path, arguments.task, trust=arguments.trust_run)]
    if arguments.sweep or arguments.thresholds or arguments.seeds:
        way = _sweep if arguments.sweep else _thresholds if arguments.thresholds else _seeds
        return way(arguments, runs)
    return _compare(arguments, runs)


def _sweep(arguments: argparse.Namespace, runs: Sequence[Run]) -> int:
    from hedge_tasks.detectors.pipeline import main_detectors
    from hedge_tasks.measures.sweep import check_samples, sweep, sweep_draws, sweep_table

    finished = _only(runs)
    check_samples(finished.answer_sets)
    scorer = chosen_scorer(arguments, finished)
    most = min(len(a.clean) + len(a.noisy) * (arguments.sweep == "draws") for a in finished.answer_sets)
    detectors = chosen_detectors(arguments, main_detectors(scorer.detectors))
    points = (sweep_draws if arguments.sweep == "draws" else sweep)(
        finished.answer_sets, scorer, range(1, most + 1), detectors
    )
    table = sweep_table(list(points), arguments.sweep)
    about = {"task": finished.task, "by": arguments.sweep, "clustering": scorer.settings()}
    show_table(arguments, table, {**about, "points": table})
    return 0


def _thresholds(arguments: argparse.Namespace, runs: Sequence[Run]) -> int:
    from hedge_tasks.detectors.thresholds.choice import ThresholdChoice
    from hedge_tasks.measures.sweep import check_samples
    from hedge_tasks.measures.threshold_report import threshold_table
    from hedge_tasks.runs.scorers import scorers_of

    finished = _only(runs)
    check_samples(finished.answer_sets)
    if ClusteringChoice(arguments.clustering).takes_all(
        finished
    ):  # the first of a run's filters is NLI, which has no threshold
        tunable = (name for name, scorer in scorers_of(finished).items() if scorer.backend.name == "embed")
        arguments.clustering = next(tunable, None)
    scorer = chosen_scorer(arguments, finished)
    table = threshold_table(finished.answer_sets, scorer, ThresholdChoice(search=arguments.search))
    show_table(arguments, table, {"task": finished.task, "clustering": scorer.settings(), "ways": table})
    return 0


def _seeds(arguments: argparse.Namespace, runs: Sequence[Run]) -> int:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.measures.seed_spread import by_seed, draws_shares, shares_table, spread_table, spreads

    first, detectors = runs[0], chosen_detectors(arguments, SCORE_NAMES)
    seeds = by_seed(first, runs[1:]) or {0: first}
    scorers = {seed: chosen_scorer(arguments, r).with_detectors(detectors) for seed, r in seeds.items()}
    scores = {seed: {scorers[seed].name: scorers[seed].score(r.answer_sets)} for seed, r in seeds.items()}
    table = spread_table(spreads(scores, detectors), list(seeds), first.title, whose_labels(first, None))
    shares = shares_table(draws_shares(first.answer_sets, next(iter(scorers.values())), detectors))
    show_table(arguments, table, {"task": first.task, "seeds": table, "draws": shares}, shares)
    return 0


def _only(runs: Sequence[Run]) -> Run:
    from hedge_tasks.errors import ConfigError

    if len(runs) != 1:
        raise ConfigError(f"RUN: one run, and there are {len(runs)}; --task says which")
    return runs[0]


def _compare(arguments: argparse.Namespace, runs: Sequence[Run]) -> int:
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.detectors.pipeline import REFERENCE
    from hedge_tasks.detectors.registry import get
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.progress import progress
    from hedge_tasks.measures.detector_table import detector_table, mean_ranks
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.measures.unit_table import kept_numbers
    from hedge_tasks.report.detector_page import build_detector_page
    from hedge_tasks.runs.run_files import file_of, keep_evidence

    options: dict[str, Any] = {"against": get(arguments.against or REFERENCE).name, "budget": arguments.budget}
    if arguments.keep:
        for finished in runs:
            file_of(finished)  # before anything is asked for nothing
    tables = []
    for finished in progress(runs, name="Scoring", unit="run"):
        names, fitted = _chosen(arguments, finished)
        # Whoever names a detector wants it, whatever has to be asked for it, and gets no others.
        named = arguments.detectors is not None
        only: dict[str, Any] = {"only_kept": not named and not arguments.keep, "blind": not named}
        scorer = chosen_scorer(arguments, finished)
        tables.append(detector_table(finished, scorer, names, fitted=fitted, **options, **only))
    ranks = mean_ranks(tables) if len(tables) > 1 else []
    files = [keep_evidence(finished) for finished in runs] if arguments.keep else []
    findings, claims = [headline(finished) for finished in runs], [kept_numbers(finished) for finished in runs]
    if arguments.html:
        page = build_detector_page(tables, ranks, budget=arguments.budget, findings=findings, claims=claims)
        write_whole(arguments.html, page)
        files.append(arguments.html)
    facts: dict[str, Any] = {**options, "runs": [], "ranks": ranks_table(ranks, len(tables)) if ranks else []}
    parts: list[object] = []
    for table, finding, kept in zip(tables, findings, claims, strict=True):
        text, of_claims = claim_block(kept)
        about: dict[str, Any] = {
            "task": table.run.task,
            "model": table.run.model,
            "clustering": table.scorer.settings(),
            "left_out": table.left_out,
        }
        facts["runs"].append({**about, "detectors": table_of(table), **of_claims, **finding.to_dict()})
        parts += ["\n".join([*finding.lines(), *finding.details]), table_of(table, everything=arguments.all), text]
    parts += [facts["ranks"] or "", "\n".join(f"{path}: written" for path in files)]
    show_table(arguments, table_of(tables[0]), facts, *parts, only_parts=True)
    return 0


def _chosen(arguments: argparse.Namespace, run: Run) -> tuple[tuple[str, ...], Sequence[FittedDetector]]:
    """Return detectors for a run, and fitted ones: those that are named, or all that it keeps evidence for."""
    from hedge_tasks.detectors.evidence import INSIDE_ARRAYS
    from hedge_tasks.detectors.pipeline import FREE, REFERENCE
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.runs.kept_inside import bytes_kept

    if arguments.detectors is not None:
        return with_fitted(listed(arguments.detectors))
    kept_arrays = bytes_kept(run).keys()
    if arguments.probes:
        return (REFERENCE, *FREE), [*fitted_detectors().values()]
    met = {need for need, arrays in INSIDE_ARRAYS.items() if kept_arrays >= arrays}
    shown = tuple(name for name in names() if not get(name).experimental or get(name).needs & met)
    return shown, [detector for detector in fitted_detectors().values() if detector.array in kept_arrays]


def needs_table() -> Table:
    """Return a table with the price of every detector, and the way to have a run keep its evidence."""
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.numbers import Cell, Column, Table

    n = 10
    rows: list[dict[str, Cell]] = [
        {"detector": d.name, "draws": d.draws(n, n), "passes": d.passes(n), "labels": "no", "kept": d.kept_by}
        for d in map(get, names())
    ]
    for detector in (*fitted_detectors().values(), *fitted_detectors("claim").values()):
        labels, kept = "yes" if detector.target == "labels" else "no, draws", f"--gen_kwargs inside={detector.part}"
        row: dict[str, Cell] = {"detector": f"{detector.name} (fitted)", "draws": 0, "passes": 1, "labels": labels}
        rows.append({**row, "kept": kept})
    columns = [*map(Column, ("detector", "draws", "passes", "labels")), Column("kept", "a run keeps it with")]
    notes = [
        f"draws: of {n} clean and {n} noisy ones; passes: prompts that the model reads once more",
        "HEDGE_DETECTORS=NAME of an evaluation keeps the parts of inside, too, that a formula needs",
        "nothing in the last column: every run keeps what it needs; detectors of draws need draws, n=0 has none",
    ]
    return Table(columns, rows, "detectors, their price, and what they need", notes)


def table_of(table: DetectorTable, *, everything: bool = True) -> Table:
    """Return the detectors of a run: all of them, or the ten best, those that are free, and the blind baselines."""
    from hedge_tasks.measures.detector_table import numbers_table
    from hedge_tasks.numbers import reason_lines

    rows = [row for i, row in enumerate(table.rows) if everything or i < _SHOWN or not row.draws]
    notes = ["p: of this table, exploratory; the run's family of comparisons stands above"]
    if (hidden := len(table.rows) - len(rows)) or (table.left_out and not everything):
        notes.append(f"--all: {hidden} more rows, their numbers within types, and {len(table.left_out)} left out")
    if everything:
        notes += reason_lines("left out", table.left_out.items())
    title = f"{table.run.title}; filter {table.scorer.name}"
    return numbers_table(rows, against=str(table.against[0]), brief=not everything, title=title, notes=notes)


def ranks_table(ranks: Sequence[Rank], n_runs: int) -> Table:
    from hedge_tasks.numbers import Cell, Column, Format, Number, Table

    title = f"mean rank over {n_runs} runs of the {len(ranks)} detectors that all of them have; 95 % by resampling runs"
    columns = [
        *(Column("detector"), Column("rank", format=Format(digits=2))),
        Column("interval", "95 %", show="interval", of="rank"),
    ]
    rows: list[dict[str, Cell]] = [
        {"detector": rank.detector, "rank": Number(rank.mean, interval=rank.interval, n=n_runs, unit="run")}
        for rank in ranks
    ]
    return Table(columns, rows, title)
