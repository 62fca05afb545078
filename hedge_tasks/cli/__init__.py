"""The `hedge` command. Whatever goes wrong gives one clear line and exit code 2; `--traceback` shows where."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.cli import (
    ask,
    audit,
    calibrate,
    claims,
    compare,
    completion,
    data,
    detectors,
    doctor,
    health,
    import_,
    init,
    judge,
    leaderboard,
    make,
    paper,
    plot,
    question,
    report,
    rescore,
    score,
    serve,
    store,
    tasks,
    view,
)
from hedge_tasks.errors import HedgeError
from hedge_tasks.io.commands import USAGE_ERROR, Parser, say
from hedge_tasks.io.progress import show_progress
from hedge_tasks.llm.secrets import Redactor

COMMANDS = {
    "start here (tasks, data and answers of your own)": (init, tasks, score, doctor, completion),
    "look (what finished runs say)": (health, rescore, question, claims, plot, report, view),
    "compare (detectors, runs, settings)": (detectors, compare),
    "decide (label answers, and say which are safe to use)": (judge, audit, calibrate, ask, serve),
    "publish (a leaderboard)": (leaderboard,),
    "data (data sets, answers and runs from elsewhere)": (data, make, store, import_),
    "papers (their tables beside your runs)": (paper,),
}
"""Sections of `hedge --help` -> modules with a function `add(commands)`, in their order."""

TRACEBACK = "HEDGE_TRACEBACK"
"""Environment variable that has every error show its traceback."""


_LONGEST_LINE = 2000


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `hedge`. Returns the exit code."""
    arguments = whole_parser().parse_args(argv)
    if arguments.verbose:
        show_progress()
    logger.remove()
    level = "INFO" if arguments.verbose else "WARNING"
    logger.add(lambda message: _complain(str(message).rstrip("\n")), level=level, format="{level}: {message}")
    try:
        code: int = arguments.execute(arguments)
        return code
    except (HedgeError, ValueError, OSError) as error:
        _show_traceback(arguments)
        _complain(f"hedge: {_line(error)}")
    except Exception as error:  # a fault of ours, or of a library: still one line, and a way to see more
        if not _show_traceback(arguments):
            how = f"(--traceback or {TRACEBACK}=1 shows where)"
            _complain(f"hedge: unexpected {type(error).__name__}: {_line(error)} {how}")
    return USAGE_ERROR


def _show_traceback(arguments: argparse.Namespace) -> bool:
    """Print where the error came from, if that is asked for; return whether it is."""
    is_wanted = arguments.traceback or os.environ.get(TRACEBACK, "") not in ("", "0")
    if is_wanted:
        _complain(traceback.format_exc().rstrip())
    return is_wanted


def _complain(text: str) -> None:
    """Print on the standard error, without the secrets of the environment, which a library's error may quote."""
    say(Redactor()(text), sys.stderr)


def _line(error: Exception) -> str:
    # Redacted before it is cut: half a key is a secret, too.
    text = Redactor()(" ".join(str(error).split()))
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."


def whole_parser() -> Parser:
    """Return the command line with all commands, also those that evaluations bring."""
    parser = Parser(prog="hedge", description="Hallucination detection from a model's own answers.")
    parser.add_argument("--version", action="version", version=f"hedge-tasks {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    for title, modules in COMMANDS.items():
        before = set(parser.commands)
        for module in modules:
            module.add(parser)
        parser.sections[title] = [name for name in parser.commands if name not in before]
    return parser
