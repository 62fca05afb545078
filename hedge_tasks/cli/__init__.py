"""The `hedge` command. Whatever goes wrong gives one clear line and exit code 2; `--traceback` shows where."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from hedge_tasks import __version__
from hedge_tasks.io.commands import USAGE_ERROR, Parser, say

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "start here (tasks, data and answers of your own)": {
        "run": ("run:run", "run lmms-eval: checked before, with the price, the finding, and a true exit code"),
        "init": ("init:init", "make a task of your own data, check it, and say how to run it"),
        "list": ("tasks:list_", "list the tasks: size, modality, licence, and what each needs"),
        "score": ("score:score", "score sampled answers from a file, without lmms-eval or a model"),
        "doctor": ("doctor:doctor", "look at versions, GPU, models and data, and check that the package works"),
    },
    "look (what finished runs say)": {
        "report": ("report:report", "write one self-contained HTML page about finished runs, or serve a folder's"),
        "health": ("health:health", "check runs for technical problems: greedy servers, cut answers, missing labels"),
        "show": ("show:show", "show the clusters of one question"),
        "rescore": ("rescore:rescore", "compute a run's numbers again, from its file or its store, without the model"),
        "claims": ("claims:claims", "find the hallucinated sentences of long answers"),
    },
    "compare (detectors, runs, settings)": {
        "detectors": ("detectors:detectors", "compare all detectors on the same answers, with their price"),
        "compare": ("compare:compare", "compare two runs on the same questions, or the detectors of one run"),
    },
    "decide (label answers, and say which are safe to use)": {
        "judge": ("judge:COMMANDS", "label a finished run anew, or check a judge against human labels"),
        "audit": ("audit:COMMANDS", "have experts label a sample, and tell every number against them"),
        "calibrate": ("calibrate:calibrate", "find a threshold that bounds the hallucinated share, or check one"),
        "ask": ("ask:ask", "ask a model one question, and say whether its answer is safe to use"),
        "serve": ("serve:serve", "serve a model with OpenAI's API, each answer with its verdict under a policy"),
    },
    "publish (a leaderboard)": {
        "leaderboard": ("leaderboard:COMMANDS", "make, check, replay and show leaderboard entries"),
    },
    "data (data sets, answers and runs from elsewhere)": {
        "data": ("data:COMMANDS", "build and check local data sets, from what you have downloaded"),
        "make": ("data:MAKING", "make a data set by a paper's construction"),
        "store": ("store:COMMANDS", "look into an answer store and check it, export, import"),
        "import": ("import_:COMMANDS", "make runs of what other harnesses have written"),
    },
    "papers (their tables beside your runs)": {
        "paper": ("paper:paper", "lay finished runs out as a paper's tables, beside its own values"),
    },
}
"""Sections of `hedge --help` -> command -> where it is, a function or a mapping of such, and its line there."""

_OPEN = ("data", "make", "paper")
"""Groups that evaluations bring commands for."""

_LONGEST_LINE = 2000
_WRITTEN = ("out", "html")
"""Options that name a file to write."""
_RUN = b'{"hedge_run"'
"""The first bytes of the file of a run."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `hedge`. Returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    named = next((word for word in words if not word.startswith("-")), "")
    arguments = whole_parser(named).parse_args(words)
    from loguru import logger

    from hedge_tasks.errors import HedgeError

    logger.remove()
    level = "INFO" if arguments.verbose else "WARNING"
    logger.add(lambda message: _complain(str(message).rstrip("\n")), level=level, format="{level}: {message}")
    try:
        _check_not_written_over(vars(arguments))
        return int(arguments.execute(arguments))
    except Exception as error:  # also a fault of ours, or of a library: still one line, and a way to see more
        if arguments.traceback:
            _complain(traceback.format_exc().rstrip())
        of_ours = isinstance(error, HedgeError | ValueError | OSError)
        # Redacted before it is cut: half a key is a secret, too.
        text = _redacted(" ".join(str(error).split()))
        text = text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}..."
        kind = "" if of_ours else f"unexpected {type(error).__name__} (--traceback shows where): "
        _complain(f"hedge: {kind}{text}")
    return USAGE_ERROR


def _check_not_written_over(arguments: Mapping[str, object]) -> None:
    """Raise ConfigError where a command would write its result over a file that it reads, or over any run."""
    from hedge_tasks.errors import ConfigError

    values = [value for name, value in arguments.items() if name not in _WRITTEN]
    paths = [path for value in values for path in (value if isinstance(value, list | tuple) else [value])]
    resolved = {path.resolve() for path in paths if isinstance(path, Path)}
    for name in _WRITTEN:
        file = arguments.get(name)
        if isinstance(file, Path) and file.is_file() and file.resolve() in resolved:
            raise ConfigError(f"--{name}: {file} is read as well; write to another file")
        if isinstance(file, Path) and file.is_file() and file.open("rb").read(len(_RUN)) == _RUN:
            raise ConfigError(f"--{name}: {file} is the file of a run; write to another file")


def _complain(text: str) -> None:
    """Print on the standard error, without the secrets of the environment, which a library's error may quote."""
    say(_redacted(text), sys.stderr)


def _redacted(text: str) -> str:
    from hedge_tasks.llm.secrets import Redactor

    return Redactor()(text)


def whole_parser(named: str | None = None) -> Parser:
    """Return the command line with all commands, also those that evaluations bring.

    Args:
        named: Command that alone is read, with its options; of the others there are names and lines.
    """
    parser = Parser(prog="hedge", description="Hallucination detection from a model's own answers.")
    parser.add_argument("--version", action="version", version=f"hedge-tasks {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    for title, commands in COMMANDS.items():
        parser.sections[title] = list(commands)
        for name, (target, line) in commands.items():
            parser.add_command(name, line)
            if named in (None, name):
                _add(parser, name, target)
    return parser


def _add(parser: Parser, name: str, target: str) -> None:
    from hedge_tasks.cli.signatures import add

    module, _, attribute = target.partition(":")
    add(parser, name, getattr(import_module(f"hedge_tasks.cli.{module}"), attribute))
    if name in _OPEN:
        from hedge_tasks.evaluation import evaluation_commands

        for function in evaluation_commands(name):
            add(parser.commands[name], getattr(function, "__name__", ""), function)
