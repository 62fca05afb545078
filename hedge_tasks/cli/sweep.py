"""`hedge sweep`: how many answers are enough, from one run; how strong a perturbation, from several."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
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
from hedge_tasks.cli.question import printable
from hedge_tasks.io.commands import Parser, command, number, show, table

if TYPE_CHECKING:
    from hedge_tasks.measures.sweep import Point
    from hedge_tasks.runs.run_files import Run


# More than anybody samples; a slip of the finger shall not fill the memory.
_MOST_COLUMNS = 5
_LARGEST = 10_000


def add(commands: Parser) -> None:
    parser = command(commands, "sweep", run, "AUROC against the number of answers, or the perturbation's strength")
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
    parser.add_argument("--out", type=Path, metavar="SWEEP.csv", help="write a table with intervals")
    parser.add_argument("--plot", type=Path, metavar="SWEEP.png", help="draw a figure (png, svg or pdf)")
    add_detectors(parser, "those of the run that are no simple baselines")
    add_task(parser)
    add_scorer(parser)


def run(arguments: argparse.Namespace) -> int:
    from tqdm import tqdm

    from hedge_tasks.detectors.pipeline import main_detectors
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.sweep import as_csv, check_samples, sweep, sweep_draws
    from hedge_tasks.plots import check_format, plot_sweep

    if arguments.plot:
        check_format(arguments.plot)
    if arguments.strength is not None:
        return _strengths(arguments)
    finished = chosen_run(arguments)
    check_samples(finished.answer_sets)
    if arguments.cost:
        return _costs(arguments, finished)
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


def _costs(arguments: argparse.Namespace, finished: Run) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.sweep import prices, prices_as_csv
    from hedge_tasks.plots import cost_chart, draw
    from hedge_tasks.scoring.scorers import scorers_of

    if arguments.filter is None and arguments.clustering is None and finished.settings.get("filters"):
        scorers = scorers_of(finished)
    else:
        chosen = chosen_scorer(arguments, finished)
        scorers = {chosen.name: chosen}
    most = min((len(answer_set.clean) for answer_set in finished.answer_sets), default=0)
    sizes = parse_sizes(arguments.n) if arguments.n else list(range(1, most + 1))
    found = list(prices(finished.answer_sets, scorers, sizes))
    if arguments.out:
        write_whole(arguments.out, prices_as_csv(found))
    if arguments.plot:
        points = {name: [(p.n, p.cost.seconds) for p in found if p.clustering == name] for name in scorers}
        draw(cost_chart(points), arguments.plot)
    rows = [
        [
            str(price.n),
            price.clustering,
            *(f"{value:.2f}" for value in (price.cost.seconds, price.cost.cpu_seconds)),
            f"{price.cost.peak_mb:.0f}",
            *("-" if value is None else f"{value:.0f}" for value in (price.cost.gpu_added_mb, price.cost.gpu_peak_mb)),
        ]
        for price in found
    ]
    header = ["n", "clustering", "seconds", "CPU seconds", "process MB", "GPU MB added", "GPU MB peak"]
    recorded = finished.settings.get("cost")
    facts = {
        "task": finished.task,
        "documents": len(finished.answer_sets),
        "prices": [{"n": price.n, "clustering": price.clustering, **price.cost.to_dict()} for price in found],
        "stages": recorded,
    }
    parts = [f"{finished.title}; {len(finished.answer_sets)} questions", table(header, rows), _stages(recorded)]
    show(arguments, facts, "\n\n".join(part for part in parts if part))
    return 0


def _stages(recorded: object) -> str:
    """What the evaluation itself took, as far as the run recorded it."""
    if not isinstance(recorded, dict) or not recorded:
        return ""
    stages = {str(name): stage for name, stage in recorded.items() if isinstance(stage, dict)}
    rows = [
        [printable(name), str(stage.get("seconds", "-")), str(stage.get("peak_mb", "-"))]
        for name, stage in stages.items()
    ]
    return f"stages of the evaluation\n{table(['stage', 'seconds', 'process MB'], rows)}"


def _strengths(arguments: argparse.Namespace) -> int:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES, detection_auroc
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.comparisons import compare_two_runs
    from hedge_tasks.measures.sweep import by_strength, strength_of
    from hedge_tasks.runs.run_files import read_run, run_paths

    if arguments.n or arguments.out or arguments.plot or arguments.cost:
        raise ConfigError("--strength gives a table of its own; leave out --n, --out, --plot and --cost")
    wanted = parse_strengths(arguments.strength)
    finished = chosen_run(arguments)
    every = (replace(read_run(file), trusted=arguments.trust_run) for file in run_paths(arguments.run))
    runs = by_strength(finished, every)
    there = {strength: runs[strength] for strength in wanted if strength in runs}
    detectors = chosen_detectors(arguments, SCORE_NAMES)
    scores = {
        strength: chosen_scorer(arguments, one).with_detectors(detectors).score(one.answer_sets)
        for strength, one in there.items()
    }
    own = strength_of(finished)
    base = 1.0 if 1.0 in scores else own if own in scores else next(iter(scores), None)
    rows = [
        {
            "strength": strength,
            "score": name,
            "auroc": asdict(detection_auroc(found, name)),
            "against": None if strength == base else asdict(compared) if compared else None,
        }
        for strength, found in scores.items()
        for name in detectors
        for compared in [None if base is None or strength == base else compare_two_runs(found, scores[base], name)]
    ]
    missing = [strength for strength in wanted if strength not in there]
    facts = {"task": finished.task, "model": finished.model, "base": base, "rows": rows, "missing": missing}
    plan = [
        "the run's own command with this makes what is missing; clean answers come from its store:",
        *(f"  --gen_kwargs strength={strength:g} --output_path {arguments.run}" for strength in missing),
    ]
    parts = [finished.title, *([_strength_table(rows, base)] if rows else []), *(["\n".join(plan)] if missing else [])]
    show(arguments, facts, "\n\n".join(parts))
    return 0


def _strength_table(rows: list[dict[str, Any]], base: float | None) -> str:
    cells = []
    for row in rows:
        estimate, against = row["auroc"], row["against"] or {}
        bounds = estimate["interval"]
        difference, p = against.get("difference"), against.get("p_value")
        cells.append(
            [
                f"{row['strength']:g}",
                row["score"],
                "undefined" if estimate["value"] is None else number(estimate["value"]),
                f"[{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else "",
                "" if difference is None else f"{difference:+.4f}",
                "" if p is None else f"{p:.4f}",
            ]
        )
    return table(["strength", "score", "AUROC", "95 % interval", f"less that of {base:g}", "p"], cells)


def parse_strengths(text: str) -> list[float]:
    """Read `0,0.5,1,2`.

    Raises:
        ConfigError: a part is no number of at least 0.
    """
    from hedge_tasks.errors import ConfigError

    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1000:
            raise ConfigError(f"--strength: expected numbers such as 0,0.5,1,2, got {part!r}")
        found.append(value)
    return list(dict.fromkeys(found))


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
    """What a line can hold: of a few detectors a column each, of many a row each, without intervals."""
    names = list(dict.fromkeys(point.score for point in points))
    reasons: dict[str, list[str]] = {}
    for point in points:
        if point.estimate.value is None and point.score not in reasons.setdefault(str(point.estimate.reason), []):
            reasons[str(point.estimate.reason)].append(point.score)
    shown = _by_size(points, names, by) if len(names) <= _MOST_COLUMNS else _by_detector(points, names, by)
    return "\n".join([shown, *(f"undefined: {', '.join(of)}: {reason}" for reason, of in reasons.items())])


def _by_size(points: list[Point], names: list[str], by: str) -> str:
    """Before every AUROC what it costs: VASE at n is twice the price of SE at n."""
    cells = {(point.n, point.score): [str(point.draws), _cell(point)] for point in points}
    rows = [
        [str(n), *(cell for name in names for cell in cells.get((n, name), ["", ""]))]
        for n in dict.fromkeys(point.n for point in points)
    ]
    return table(["n" if by == "n" else "at most", *(title for name in names for title in ("draws", name))], rows)


def _by_detector(points: list[Point], names: list[str], by: str) -> str:
    found = {(point.score, point.n): point for point in points if point.estimate.value is not None}
    sizes = list(dict.fromkeys(point.n for point in points))
    rows = [
        [name, *(f"{number(p.estimate.value)} ({p.draws})" if (p := found.get((name, n))) else "" for n in sizes)]
        for name in names
        if any((name, n) in found for n in sizes)
    ]
    title = "ROC-AUC, in brackets the draws a question; the intervals are in --out and --json"
    return "\n".join([title, table(["n" if by == "n" else "at most", *map(str, sizes)], rows)])


def _cell(point: Point) -> str:
    estimate = point.estimate
    if estimate.value is None:
        return "undefined"
    bounds = f" [{estimate.interval[0]:.3f}, {estimate.interval[1]:.3f}]" if estimate.interval else ""
    return f"{number(estimate.value)}{bounds}"
