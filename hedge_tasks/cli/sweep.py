"""`hedge sweep`: how many answers are enough, from one run."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import (
    add_detectors,
    add_run,
    add_scorer,
    add_task,
    chosen_detectors,
    chosen_run,
    chosen_scorer,
)
from hedge_tasks.io.commands import command, number, show, table

if TYPE_CHECKING:
    from hedge_tasks.runs.sweep import Point


# More than anybody samples; a slip of the finger shall not fill the memory.
_LARGEST = 10_000


def add(commands: Any) -> None:
    parser = command(commands, "sweep", run, "AUROC against the number of answers, from one run")
    add_run(parser)
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
    parser.add_argument("--out", type=Path, metavar="SWEEP.csv", help="write a table with intervals")
    parser.add_argument("--plot", type=Path, metavar="SWEEP.png", help="draw a figure (png, svg or pdf)")
    add_detectors(parser, "those of the run that are no simple baselines")
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from tqdm import tqdm

    from hedge_tasks.detectors.pipeline import main_detectors
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.plots import check_format, plot_sweep
    from hedge_tasks.runs.sweep import as_csv, sweep, sweep_draws

    if arguments.plot:
        check_format(arguments.plot)
    finished = chosen_run(arguments)
    scorer = chosen_scorer(arguments, finished)
    most = min((len(answer_set.clean) for answer_set in finished.answer_sets), default=0)
    if arguments.by == "draws":
        most += min((len(answer_set.noisy) for answer_set in finished.answer_sets), default=0)
    sizes = parse_sizes(arguments.n) if arguments.n else list(range(1, most + 1))
    detectors = chosen_detectors(arguments, main_detectors(scorer.detectors))
    steps = (sweep_draws if arguments.by == "draws" else sweep)(finished.answer_sets, scorer, sizes, detectors)
    points = list(tqdm(steps, total=len(detectors) * len(sizes), desc="Scoring", unit="point", delay=2, leave=False))
    if arguments.out:
        write_whole(arguments.out, as_csv(points))
    if arguments.plot:
        plot_sweep(points, arguments.plot, by=arguments.by)
    about = {"task": finished.task, "by": arguments.by, "clustering": scorer.settings()}
    facts = {**about, "points": [asdict(point) for point in points]}
    show(arguments, facts, f"{finished.title}; filter {scorer.name}\n\n{_table(points, arguments.by)}")
    return 0


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


def _table(points: list[Point], by: str) -> str:
    """A column a detector, before every AUROC what it costs: VASE at n is twice the price of SE at n."""
    names = list(dict.fromkeys(point.score for point in points))
    cells = {(point.n, point.score): [str(point.draws), _cell(point)] for point in points}
    rows = [
        [str(n), *(cell for name in names for cell in cells.get((n, name), ["", ""]))]
        for n in dict.fromkeys(point.n for point in points)
    ]
    header = ["n" if by == "n" else "at most", *(title for name in names for title in ("draws", name))]
    reasons = {point.estimate.reason for point in points if point.estimate.value is None}
    return "\n".join([table(header, rows), *(f"undefined: {reason}" for reason in sorted(map(str, reasons)))])


def _cell(point: Point) -> str:
    estimate = point.estimate
    if estimate.value is None:
        return "undefined"
    bounds = f" [{estimate.interval[0]:.3f}, {estimate.interval[1]:.3f}]" if estimate.interval else ""
    return f"{number(estimate.value)}{bounds}"
