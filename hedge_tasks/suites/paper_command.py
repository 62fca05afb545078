"""Shared by the commands `hedge paper ...`: their arguments, and the finished runs that they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import Parser

if TYPE_CHECKING:
    from hedge_tasks.runs.run_files import Run


def add_runs(parser: Parser) -> None:
    """Add the finished runs that a command reads."""
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folders of lmms-eval, or run files")


def add_names(parser: Parser, example: str) -> None:
    """Add --name, which says which of the paper's models a user's runs are of.

    Args:
        example: one of the paper's models.
    """
    text = f"the runs with TEXT in their model's name are the paper's MODEL, such as {example}"
    parser.add_argument("--name", action="append", default=[], metavar="MODEL=TEXT", help=text)


def load_runs_of(paths: Sequence[Path], title: str, belongs: Callable[[Run], bool]) -> list[Run]:
    """Return the runs of an evaluation among those in some folders and files.

    Args:
        title: of the evaluation, for the error.
        belongs: whether a run is of it.

    Raises:
        DataError: there is none.
    """
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.run_files import load_runs

    runs = [run for path in paths for run in load_runs(path) if belongs(run)]
    if not runs:
        raise DataError(f"no run of {title} in {', '.join(map(str, paths))}")
    return runs
