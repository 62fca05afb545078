"""The `hedge` command. A wrong path or option gives one clear line and exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.cli import (
    compare,
    data,
    health,
    judge,
    leaderboard,
    paper,
    plot,
    question,
    report,
    rescore,
    score,
    store,
    sweep,
    tasks,
    tune,
)
from hedge_tasks.errors import HedgeError
from hedge_tasks.evaluation import brought_commands
from hedge_tasks.io.commands import USAGE_ERROR, say

COMMANDS = (
    score,
    rescore,
    judge,
    question,
    sweep,
    tune,
    compare,
    health,
    plot,
    report,
    leaderboard,
    paper,
    store,
    data,
    tasks,
)
"""Modules with a function `add(commands)`, in the order of `hedge --help`; those of evaluations come after them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `hedge`. Returns the exit code."""
    arguments = _parser().parse_args(argv)
    logger.remove()
    logger.add(sys.stderr, level="INFO" if arguments.verbose else "WARNING", format="{level}: {message}")
    try:
        code: int = arguments.execute(arguments)
        return code
    except (HedgeError, ValueError, OSError) as error:
        say(f"hedge: {' '.join(str(error).split())}", sys.stderr)
        return USAGE_ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hedge", description="Hallucination detection from a model's own answers.")
    parser.add_argument("--version", action="version", version=f"hedge-tasks {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    for add_command in brought_commands("commands"):
        add_command(commands)
    return parser
