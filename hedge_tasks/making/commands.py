"""Shared by the commands that make data sets: options, and what is said in the end."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io import options
from hedge_tasks.io.commands import show

if TYPE_CHECKING:
    from hedge_tasks.making.stages import Made, MakingStage, Models

MODEL = "model=NAME,url=..."


def add_models(parser: argparse._ActionsContainer, option: str, text: str) -> None:
    """Add an option that names models, one each time it is given."""
    parser.add_argument(option, action="append", default=[], metavar=MODEL, help=text)


def add_floor(parser: argparse._ActionsContainer, share_of: str = "the set") -> None:
    """Add --floor.

    Args:
        share_of: What the share is of.
    """
    text = f"of {share_of} that solvers without skill may get right; 1 for any (default: halfway from guessing to 1)"
    parser.add_argument("--floor", type=float, metavar="SHARE", help=text)


def add_run(parser: argparse._ActionsContainer, unit: str, *, seed: str, licence: str) -> None:
    """Add the options of every making: of labels, licence, seed, concurrency and dry run.

    Args:
        unit: What is under way at a time, in the singular.
        seed, licence: What they are of.
    """
    text = "labels that people gave on review.html (repeat for several people)"
    parser.add_argument("--labels", action="append", type=Path, default=[], metavar="LABELS", help=text)
    parser.add_argument("--review", type=int, default=100, metavar="N", help="rows that people look at (default: 100)")
    parser.add_argument("--licence", help=licence)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=f"{seed} (default: 0)")
    parser.add_argument("--concurrency", type=int, default=16, metavar="N", help=f"{unit}s under way (default: 16)")
    parser.add_argument("--dry-run", action="store_true", help="say what it will cost, and make nothing")


def check_counts(arguments: argparse.Namespace, *names: str) -> None:
    """Refuse options that are given and are no numbers from 1 on.

    Raises:
        ConfigError: One is none; names it.
    """
    for name in (*names, "concurrency", "review"):
        if (value := getattr(arguments, name)) is not None:
            options.count(f"--{name.replace('_', '-')}", value, at_least=1)


def settings_of(arguments: argparse.Namespace, models: Models, **others: Any) -> dict[str, Any]:
    """Settings that shape a set, for its card: the models by their roles, the seed, and more."""
    named = {role: [dict(model.identity) for model in those] for role, those in models.items()}
    return {**named, "seed": arguments.seed, **others}


def show_cost(
    arguments: argparse.Namespace, stages: Mapping[str, MakingStage], models: Models, rows: Sequence[Any], *more: object
) -> int:
    """Show what a making will cost."""
    from dataclasses import astuple

    from hedge_tasks.making.stages import cost

    characters = sum(len(str(part)) for row in rows for part in astuple(row)) / max(1, len(rows))
    table = cost(stages, models, len(rows), characters)
    show(arguments, {"rows": len(rows), "stages": table}, table, *more)
    return 0


def show_result(
    arguments: argparse.Namespace, result: Made, unit: str, files: Sequence[Path], warnings: Sequence[str] = ()
) -> int:
    """Show how much was accepted and what it cost; the exit code.

    Args:
        unit: What was accepted, in the plural.
        files: Of the set.
    """
    from hedge_tasks.io.commands import PROBLEMS_FOUND
    from hedge_tasks.numbers import Table

    report = result.report()
    line = f"{report['accepted']} of {report['records']} {unit} accepted"
    if result.unfinished:
        line += f"; PARTIAL: {report['unfinished']} are unfinished, run again"
    steps = {**report["steps"], **{f"rejected: {reason}": n for reason, n in report["rejected"].items()}}
    lines = [*(f"Warning: {warning}" for warning in warnings), *(f"Written: {file}" for file in files)]
    costs = [f"asked, {stage}: {counts}" for stage, counts in sorted(result.account.stages.items())]
    table = Table.of(("step", "times"), [[name, str(n)] for name, n in steps.items()])
    facts = {**report, "warnings": list(warnings), "files": [str(file) for file in files]}
    show(arguments, facts, line, table, "\n".join(costs), "\n".join(lines))
    return PROBLEMS_FOUND if result.unfinished else 0
