"""The `hedge` command. Whatever goes wrong gives one clear line and exit code 2; `--traceback` shows where."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.io.commands import USAGE_ERROR, Parser, say

COMMANDS = {
    "start here (tasks, data and answers of your own)": "run init list score doctor",
    "look (what finished runs say)": "report health show rescore claims",
    "compare (detectors, runs, settings)": "detectors compare",
    "decide (label answers, and say which are safe to use)": "judge audit calibrate ask serve",
    "publish (a leaderboard)": "leaderboard",
    "data (data sets, answers and runs from elsewhere)": "data make store import",
    "papers (their tables beside your runs)": "paper",
}
"""Sections of `hedge --help` -> their commands.

Each is a module of this package, with an underscore behind a word of Python: its function of that name, or its mapping
`COMMANDS` of such. A group's line is that of the module.
"""

_OPEN = ("data", "make", "paper")
"""Groups that evaluations bring commands for."""

_LONGEST_LINE = 2000
_WRITTEN = ("out", "html")
"""Options that name a file to write."""
PATIENCE_S = 4.0
"""A command that takes longer says what it is doing: the last of the log's traces."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `hedge`. Returns the exit code."""
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt as stop:  # a command may say what is kept, and how to go on
        _complain("; ".join(["hedge: interrupted", *map(str, stop.args)]))
    return 130  # as shells have it


def _run(words: list[str]) -> int:
    named = next((word for word in words if not word.startswith("-") or word in ("-h", "--help")), "")
    arguments = whole_parser(named).parse_args(words)
    from loguru import logger

    from hedge_tasks.errors import HedgeError

    logger.remove()
    logger.enable("hedge_tasks")  # a command before it may have silenced modules
    level = "INFO" if arguments.verbose else "WARNING"
    logger.add(lambda message: _complain(str(message).rstrip("\n")), level=level, format="{level}: {message}")
    doing, ended = deque(["loading libraries, reading files"], maxlen=1), threading.Event()
    logger.add(partial(_keep, doing), level="TRACE", format="{message}")
    threading.Thread(target=_tell, args=(doing, ended), daemon=True).start()
    try:
        _check_not_written_over(vars(arguments))
        return int(arguments.execute(arguments))
    except Exception as error:  # also a fault of ours, or of a library: still one line, and a way to see more
        if arguments.traceback:
            _complain(traceback.format_exc().rstrip())
        of_ours = isinstance(error, HedgeError | ValueError | OSError)
        kind = "" if of_ours else f"unexpected {type(error).__name__} (--traceback shows where): "
        _complain(f"hedge: {kind}{' '.join(str(error).split())}")
    finally:
        ended.set()
    return USAGE_ERROR


def _keep(doing: deque[str], message: Any) -> None:
    if message.record["level"].name == "TRACE":
        doing.append(str(message))


def _tell(doing: deque[str], ended: threading.Event) -> None:
    """Say what is being done, once, where it takes seconds."""
    shown = {"\n"}  # of servers, which wait for others
    while not ended.wait(PATIENCE_S):
        if doing[-1] not in shown:
            _complain(f"hedge: {doing[-1].strip()} ...")
            shown.add(doing[-1])


def _check_not_written_over(arguments: Mapping[str, object]) -> None:
    """Raise ConfigError where a command would write its result over a file that it reads, or over any run."""
    from hedge_tasks.errors import ConfigError

    values = [value for name, value in arguments.items() if name not in _WRITTEN]
    paths = [path for value in values for path in (value if isinstance(value, list) else [value])]
    read = {os.path.realpath(path) for path in paths if isinstance(path, Path)}
    for name in _WRITTEN:
        file = arguments.get(name)
        if isinstance(file, Path) and file.is_file():
            from hedge_tasks.runs.run_files import is_run_file

            if (is_run := is_run_file(file)) or os.path.realpath(file) in read:
                why = "is the file of a run" if is_run else "is read as well"
                raise ConfigError(f"--{name}: {file} {why}; write to another file")


def _complain(text: str) -> None:
    """Print on the standard error, without the secrets of the environment, which a library's error may quote."""
    from hedge_tasks.llm.secrets import Redactor

    # Redacted before it is cut: half a key is a secret, too.
    say("\n".join(line[:_LONGEST_LINE] for line in Redactor()(text).splitlines()), sys.stderr)


def whole_parser(named: str | None = None) -> Parser:
    """Return the command line with all commands, also those that evaluations bring.

    Args:
        named: Command that alone is read; of the others there are names. Where there is no such command, all are read
            that do not come from evaluations.
    """
    parser = Parser(prog="hedge", description="Hallucination detection from a model's own answers.")
    parser.add_argument("--version", action="version", version=f"hedge-tasks {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser.sections = {title: names.split() for title, names in COMMANDS.items()}
    every = [name for names in parser.sections.values() for name in names]
    for name in every:
        parser.add_command(name, name)
        if named not in every or named == name:
            _read(parser, name, with_evaluations=named in (None, name))
    return parser


def _read(parser: Parser, name: str, *, with_evaluations: bool) -> None:
    from hedge_tasks.cli.signatures import add

    attribute = f"{name}_" if name in ("import", "list") else name
    module = import_module(f"hedge_tasks.cli.{attribute}")
    summary = (module.__doc__ or "").partition(": ")[2].partition("\n")[0]
    parser.add_command(name, summary[:1].upper() + summary[1:])
    add(parser, name, getattr(module, "COMMANDS" if hasattr(module, "COMMANDS") else attribute))
    if with_evaluations and name in _OPEN:
        from hedge_tasks.evaluation import evaluation_commands

        for function in evaluation_commands(name):
            add(parser.commands[name], getattr(function, "__name__", ""), function)
