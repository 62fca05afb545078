"""Shared by the commands: the parser, options that mean the same in all of them, and output."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NoReturn

from hedge_tasks.errors import unknown
from hedge_tasks.io.outside import clean
from hedge_tasks.io.places import Remote, is_url

# Line ends and tabs stay.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

USAGE_ERROR = 2
"""Exit code of a wrong path or option."""

PROBLEMS_FOUND = 1
"""Exit code of a check that found something."""


class _Once(argparse._StoreAction):
    """Stores the value of an option that may be given once."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        options = namespace.__dict__.setdefault("_options", set())
        if option_string and self.dest in options:
            parser.error(f"{option_string} is given twice, and takes one value")
        options.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """A command, or a group of commands. Errors name the nearest command, option or choice.

    Attributes:
        summary: a line about it, for the list that it stands in.
        commands: by name; they may stand beside arguments of this one (`hedge judge train` beside `hedge judge RUN`).
        sections: headings of its list of commands -> their names.
        passes_on: whether words that it does not know are left for another program, under `words`.
    """

    def __init__(self, *args: Any, summary: str = "", **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **options})
        self.register("action", None, _Once)
        self.register("action", "store", _Once)
        self.summary = summary
        self.commands: dict[str, Parser] = {}
        self.sections: dict[str, list[str]] = {}
        self.passes_on = False

    def add_command(self, name: str, text: str) -> Parser:
        """Return a new command of this group.

        Args:
            text: what it does, one line that begins in lower case.
        """
        description = text[0].upper() + text[1:] + "."
        parser = Parser(prog=f"{self.prog} {name}", description=description, summary=text)
        self.commands[name] = parser
        return parser

    @property
    def runs(self) -> bool:
        """Whether it does something itself, and is not only a group."""
        return self.get_default("execute") is not None

    def options(self) -> dict[str, argparse.Action]:
        """The long options by name."""
        return {name: action for action in self._actions for name in action.option_strings if name.startswith("--")}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        if self.runs:
            if words and words[0] in self.commands:
                return self.commands[words[0]].parse_known_args(words[1:], namespace)
            return self._arguments(words, namespace), []
        first = next((i for i, word in enumerate(words) if not word.startswith("-")), len(words))
        namespace = self._arguments(words[:first], namespace)
        if first == len(words):
            self.error(f"a command is missing: {', '.join(self.commands)}")
        if words[first] not in self.commands:
            self.error(str(unknown("command", words[first], self.commands)))
        return self.commands[words[first]].parse_known_args(words[first + 1 :], namespace)

    def _arguments(self, words: Sequence[str], namespace: Any) -> Any:
        """Read the command's own arguments; unknown ones are refused here, where the nearest is known."""
        namespace, unparsed = super().parse_known_args(words, namespace)
        namespace.words = unparsed
        for word in () if self.passes_on else unparsed:
            error = unknown("option", word.partition("=")[0], self.options())
            self.error(str(error) if word.startswith("-") else f"unexpected argument {word!r}")
        for value in vars(namespace).values():
            for path in value if isinstance(value, list | tuple) else [value]:
                if isinstance(path, Path) and is_url(str(path)):
                    url = str(path).replace(":/", "://", 1)
                    self.error(f"{url}: this has to be a folder or a file of this machine, not a URL")
        return namespace

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            kind = action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest).lower()
            self.error(str(unknown(kind, str(value), map(str, action.choices))))

    def format_usage(self) -> str:
        return super().format_usage() if self.runs else f"usage: {self.prog} COMMAND ...\n"

    def format_help(self) -> str:
        text = super().format_help()
        if not self.commands:
            return text
        usage = super().format_usage()
        before, options, after = text.replace(usage, self.format_usage(), 1).partition("\noptions:\n")
        sections = self.sections or {"commands": list(self.commands)}
        listed = "".join(f"\n{title}:\n" + "".join(map(self._line, names)) for title, names in sections.items())
        return f"{before}{listed}{options}{after}"

    def _line(self, name: str) -> str:
        return f"  {name:<13} {self.commands[name].summary}\n"


def command(commands: Parser, name: str, run: Callable[[argparse.Namespace], int], text: str) -> Parser:
    """Add a command whose options include --json and --verbose.

    Args:
        commands: the group that it is one of.
        text: what it does, one line that begins in lower case.
    """
    parser = commands.add_command(name, text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is being done")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser.set_defaults(execute=run)
    return parser


def say(text: str, stream: Any = None) -> None:
    """Print a line: without control characters, which a terminal would obey, and whatever the terminal can show."""
    stream = stream or sys.stdout
    text = _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", clean(text))
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding) + "\n")


def as_json(value: Any) -> Any:
    """Return a value as JSON has it.

    A table is its records, a number its `to_dict`, another data class its fields, a path and an infinite number a text.
    """
    for method in ("to_records", "to_dict"):
        if hasattr(value, method):
            return as_json(getattr(value, method)())
    if is_dataclass(value) and not isinstance(value, type):
        # What is left out of its repr is for computing on, and as long as there are documents.
        names = [field.name for field in fields(value) if field.repr]
        return {name: as_json(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [as_json(item) for item in value]
    return str(value) if isinstance(value, Path | Remote) or (isinstance(value, float) and math.isinf(value)) else value
