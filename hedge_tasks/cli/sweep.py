"""`hedge sweep`: how many answers are enough, from one run; how strong a perturbation, from several."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import (
    add_detectors,
    add_scored_run,
    chosen_detectors,
    chosen_run,
    chosen_scorer,
    chosen_scorers,
    printable,
)
from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.numbers import count_of

if TYPE_CHECKING:
    from hedge_tasks.measures.sweep import Point
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run


# More than anybody samples; a slip of the finger shall not fill the memory.
_MOST_COLUMNS = 5
_LARGEST = 10_000


def add(commands: Parser) -> None:
    parser = command(
        commands, "sweep", run, "show the AUROC against the number of answers, or against the perturbation's strength"
    )
    add_scored_run(parser)
    parser.add_argument(
        "--n",
        metavar="1,2,...,30",
        help="numbers of clean and noisy answers, or of draws (default: all)",
    )
    parser.add_argument(
        "--by",
        choices=("n", "draws"),
        default="n",
        help="n clean and n noisy answers for everybody (default), or what each detector can pay of so many draws",
    )
    parser.add_argument(
        "--strength",
        metavar="0,0.5,1,2",
        help="instead: compare the folder's runs with these strengths of the perturbation, and say how to make those "
        "that are missing",
    )
    parser.add_argument(
        "--cost",
        action="store_true",
        help="instead: seconds and memory of each of the run's clusterings against the number of answers, from nothing "
        "(HEDGE Appendix B)",
    )
    add_out(parser, "a table with intervals (CSV)")
    parser.add_argument("--plot", type=Path, metavar="SWEEP.png", help="draw a figure (png, svg or pdf)")
    add_detectors(parser, "those of the run that are no simple baselines")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.pipeline import main_detectors
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.progress import progress
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.measures.seed_spread import draws_shares, shares_table
    from hedge_tasks.measures.sweep import as_csv, check_samples, sweep, sweep_draws
    from hedge_tasks.report.plots import check_format, plot_sweep

    if arguments.plot:
        check_format(arguments.plot)
    if arguments.strength is not None:
        return _strengths(arguments)
    finished = chosen_run(arguments)
    check_samples(finished.answer_sets)
    if arguments.cost:
        return _costs(arguments, finished)
    scorer = chosen_scorer(arguments, finished)
    sizes = _sizes(arguments, finished)
    detectors = chosen_detectors(arguments, main_detectors(scorer.detectors))
    steps = (sweep_draws if arguments.by == "draws" else sweep)(finished.answer_sets, scorer, sizes, detectors)
    points = list(progress(steps, total=len(detectors) * len(sizes), name="Scoring", unit="point"))
    if arguments.out:
        write_whole(arguments.out, as_csv(points))
    if arguments.plot:
        plot_sweep(points, arguments.plot, by=arguments.by)
    shares = draws_shares(finished.answer_sets, scorer, detectors)
    facts = {"task": finished.task, "by": arguments.by, "clustering": scorer.settings(), "points": points}
    show(
        arguments,
        {**facts, "draws": [asdict(share) for share in shares]},
        f"{finished.title}; filter {scorer.name}\n{whose_labels(finished, None)}",
        _table(points, arguments.by),
        shares_table(shares),
    )
    return 0


def _sizes(arguments: argparse.Namespace, finished: Run) -> list[int]:
    """Return the numbers of answers, or draws, that are asked for; by default all that every question has."""
    if arguments.n:
        return parse_sizes(arguments.n)
    most = min((len(answers.clean) for answers in finished.answer_sets), default=0)
    if arguments.by == "draws" and not arguments.cost:
        most += min((len(answers.noisy) for answers in finished.answer_sets), default=0)
    return list(range(1, most + 1))


def _costs(arguments: argparse.Namespace, finished: Run) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.progress import progress
    from hedge_tasks.measures.sweep import prices, prices_as_csv
    from hedge_tasks.numbers import Column, Format, Table
    from hedge_tasks.report.plots import cost_chart, draw

    scorers, sizes = chosen_scorers(arguments, finished), _sizes(arguments, finished)
    steps = prices(finished.answer_sets, scorers, sizes)
    measured = list(progress(steps, total=len(scorers) * len(sizes), name="Measuring"))
    if arguments.out:
        write_whole(arguments.out, prices_as_csv(measured))
    if arguments.plot:
        points = {name: [(p.n, p.cost.seconds) for p in measured if p.clustering == name] for name in scorers}
        draw(cost_chart(points), arguments.plot)
    table = Table(
        [
            Column("n"),
            Column("clustering"),
            Column("seconds", format=Format(digits=2)),
            Column("cpu_seconds", "CPU seconds", format=Format(digits=2)),
            Column("peak_mb", "process MB", format=Format(digits=0)),
            Column("gpu_added_mb", "GPU MB added", format=Format(digits=0)),
            Column("gpu_peak_mb", "GPU MB peak", format=Format(digits=0)),
        ],
        [{"n": price.n, "clustering": price.clustering, **price.cost.to_dict()} for price in measured],
    )
    recorded = finished.settings.get("cost")
    facts = {
        "task": finished.task,
        "documents": len(finished.answer_sets),
        "prices": table,
        "stages": recorded,
    }
    n = count_of(len(finished.answer_sets), "question")
    show(arguments, facts, f"{finished.title}; {n}", table, *_stages(recorded))
    return 0


def _stages(recorded: object) -> list[Table]:
    """Seconds and memory of the evaluation itself, as far as the run recorded them."""
    from hedge_tasks.numbers import Column, Table

    if not isinstance(recorded, dict) or not recorded:
        return []
    rows = [
        {"stage": printable(str(name)), "seconds": str(stage.get("seconds", "-")), "mb": str(stage.get("peak_mb", "-"))}
        for name, stage in recorded.items()
        if isinstance(stage, dict)
    ]
    columns = [Column("stage"), Column("seconds"), Column("mb", "process MB")]
    return [Table(columns, rows, "stages of the evaluation")]


def _strengths(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES, detection_auroc
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.comparisons import compare_two_runs
    from hedge_tasks.measures.run_variants import by_strength, strength_of
    from hedge_tasks.numbers import FOUR_DIGITS, SIGNED_FOUR, Cell, Column, Format, Table
    from hedge_tasks.runs.run_files import read_run, run_paths

    if arguments.n or arguments.out or arguments.plot or arguments.cost:
        raise ConfigError("--strength gives a table of its own; leave out --n, --out, --plot and --cost")
    strengths = parse_strengths(arguments.strength)
    finished = chosen_run(arguments)
    every = (replace(read_run(file), trusted=arguments.trust_run) for file in run_paths(arguments.run))
    runs = by_strength(finished, every)
    detectors = chosen_detectors(arguments, SCORE_NAMES)
    scores = {
        strength: chosen_scorer(arguments, run).with_detectors(detectors).score(run.answer_sets)
        for strength in strengths
        if (run := runs.get(strength)) is not None
    }
    own = strength_of(finished)
    base = 1.0 if 1.0 in scores else own if own in scores else next(iter(scores), None)
    rows: list[dict[str, Cell]] = []
    for strength, scored in scores.items():
        for name in detectors:
            row: dict[str, Cell] = {"strength": strength, "score": name, "auroc": detection_auroc(scored, name)}
            if base is not None and strength != base and (compared := compare_two_runs(scored, scores[base], name)):
                row |= {"difference": compared.number, "p_value": compared.p_value}
            rows.append(row)
    missing = [strength for strength in strengths if strength not in runs]
    facts = {"task": finished.task, "model": finished.model, "base": base, "rows": rows, "missing": missing}
    plan = [
        "the run's own command with this makes what is missing; clean answers come from its store:",
        *(f"  --gen_kwargs strength={strength:g} --output_path {arguments.run}" for strength in missing),
    ]
    columns = [
        Column("strength", format=Format(digits=None)),
        Column("score"),
        Column("auroc", "ROC-AUC", format=FOUR_DIGITS),
        Column("interval", "95 % interval", show="interval", of="auroc"),
        Column("rarer", "rarer class", show="n_rarer", of="auroc"),
        Column("difference", f"less that of {base:g}" if base is not None else "", format=SIGNED_FOUR),
        Column("p_value", "p", show="p"),
        Column("rarer_of_both", "rarer class", show="n_rarer", of="difference"),
    ]
    show(arguments, facts, finished.title, Table(columns, rows), "\n".join(plan) if missing else "")
    return 0


def parse_strengths(text: str) -> list[float]:
    """Read `0,0.5,1,2`.

    Raises:
        ConfigError: a part is no number of at least 0.
    """
    from hedge_tasks.errors import ConfigError

    values = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1000:
            raise ConfigError(f"--strength: expected numbers such as 0,0.5,1,2, got {part!r}")
        values.append(value)
    return list(dict.fromkeys(values))


def parse_sizes(text: str) -> list[int]:
    """Read `1,2,5-10,...,30`: numbers, ranges, and `...` that continues to the next number one by one.

    Raises:
        ConfigError: names the part that is no number.
    """
    from hedge_tasks.errors import ConfigError

    sizes: list[int] = []
    through = False
    for part in map(str.strip, text.replace("…", "...").split(",")):
        if part == "..." and sizes and not through:
            through = True
            continue
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ConfigError(f"--n: expected numbers such as 1,2,5-10 or 1,2,...,30, got {part!r}")
        start, end = sizes[-1] + 1 if through else int(first), int(last or first)
        if not 1 <= start <= end <= _LARGEST:
            raise ConfigError(f"--n: {part!r} is no size from 1 to {_LARGEST}, or not after the one before it")
        sizes += range(start, end + 1)
        through = False
    if through:
        raise ConfigError("--n: nothing comes after the dots")
    return list(dict.fromkeys(sizes))


def _table(points: list[Point], by: str) -> Table:
    """The points, as a line can hold them: of a few detectors a column each, of many a row each, without intervals."""
    names = list(dict.fromkeys(point.score for point in points))
    return _by_size(points, names, by) if len(names) <= _MOST_COLUMNS else _by_detector(points, names, by)


def _by_size(points: list[Point], names: list[str], by: str) -> Table:
    """Return a row for each size; before every AUROC its price, since VASE at n costs twice as much as SE at n."""
    from hedge_tasks.numbers import FOUR_DIGITS, Cell, Column, Table

    rows: dict[int, dict[str, Cell]] = {}
    for point in points:
        row = rows.setdefault(point.n, {"n": point.n})
        row |= {f"{point.score}_draws": point.draws, point.score: point.estimate}
    columns = [Column("n", "n" if by == "n" else "at most")]
    for name in names:
        columns += [
            Column(f"{name}_draws", "draws"),
            Column(name, name, format=FOUR_DIGITS, interval=True),
            Column(f"{name}_rarer", "rarer class", show="n_rarer", of=name),
        ]
    return Table(columns, list(rows.values()))


def _by_detector(points: list[Point], names: list[str], by: str) -> Table:
    from hedge_tasks.numbers import FOUR_DIGITS, Column, Table, format_number

    rows: dict[str, dict[str, str]] = {}
    for point in points:
        if point.estimate.defined:
            cell = f"{format_number(point.estimate, FOUR_DIGITS)} ({point.draws}; {point.estimate.n_rarer})"
            rows.setdefault(point.score, {"detector": point.score})[str(point.n)] = cell
    columns = [Column("detector", "n" if by == "n" else "at most")]
    columns += [Column(str(n)) for n in dict.fromkeys(point.n for point in points)]
    title = "ROC-AUC (samples per question; documents of the rarer class); intervals: --out and --json"
    return Table(columns, [rows[name] for name in names if name in rows], title, _undefined(points))


def _undefined(points: list[Point]) -> list[str]:
    from hedge_tasks.numbers import reason_lines

    reasons = ((point.score, str(point.estimate.reason)) for point in points if not point.estimate.defined)
    return reason_lines("undefined", reasons)
