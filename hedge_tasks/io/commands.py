"""Shared by the commands: the parser, options that mean the same in all of them, and output."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from hedge_tasks.errors import unknown
from hedge_tasks.io.outside import clean
from hedge_tasks.io.places import Remote

# Also those that turn the direction of what follows, or end a line; line ends and tabs stay.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

USAGE_ERROR = 2
"""Exit code of a wrong path or option."""

PROBLEMS_FOUND = 1
"""Exit code of a check that found something."""


class Parser(argparse.ArgumentParser):
    """A command, or a group of commands. Errors name the nearest command, option or choice.

    Attributes:
        commands: by name; they may stand beside arguments of this one (`hedge judge train` beside `hedge judge RUN`).
        sections: headings of its list of commands -> their names.
        passes_on: whether words that it does not know are left for another program, under `words`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.commands: dict[str, Parser] = {}
        self.sections: dict[str, list[str]] = {}
        self.passes_on = False

    def add_command(self, name: str, text: str) -> Parser:
        """Return a new command of this group.

        Args:
            text: what it does, a sentence.
        """
        if not self.runs:
            self.usage = "%(prog)s COMMAND ..."
        self.commands[name] = Parser(prog=f"{self.prog} {name}", description=text)
        return self.commands[name]

    @property
    def runs(self) -> bool:
        """Whether it does something itself, and is not only a group."""
        return self.get_default("execute") is not None

    def options(self) -> dict[str, argparse.Action]:
        """The long options by name."""
        return {name: action for name, action in self._option_string_actions.items() if name.startswith("--")}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        before = [] if self.runs else list(takewhile(lambda word: word.startswith("-"), words))
        name, *others = words[len(before) :] or [""]
        if self.runs and name not in self.commands:
            return self._arguments(words, namespace), []
        if not self.runs:
            namespace = self._arguments(before, namespace)
        if name not in self.commands:
            missing = f"a command is missing: {', '.join(self.commands)}"
            self.error(str(unknown("command", name, self.commands)) if name else missing)
        return self.commands[name].parse_known_args(others, namespace)

    def _arguments(self, words: Sequence[str], namespace: Any) -> Any:
        """Read the command's own arguments; unknown ones are refused here, where the nearest is known."""
        namespace, unparsed = super().parse_known_args(words, namespace)
        namespace.words = unparsed
        for name, action in self.options().items():
            if isinstance(action, argparse._StoreAction) and sum(w.partition("=")[0] == name for w in words) > 1:
                self.error(f"{name} is given twice, and takes one value")
        for word in () if self.passes_on else unparsed:
            error = unknown("option", word.partition("=")[0], self.options())
            self.error(str(error) if word.startswith("-") else f"unexpected argument {word!r}")
        return namespace

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            [*_, kind] = action.option_strings or [action.dest]
            self.error(str(unknown(kind, str(value), map(str, action.choices))))

    def format_help(self) -> str:
        sections = self.sections or {"commands": list(self.commands)} if self.commands else {}
        parts = [super().format_help()]
        for title, names in sections.items():
            lines = (f"  {name:<13} {self.commands[name].description}\n" for name in names)
            parts.append("".join([f"{title}:\n", *lines]))
        return "\n".join(parts)


def command(commands: Parser, name: str, run: Callable[[argparse.Namespace], int], text: str) -> Parser:
    """Add a command whose options include --json and --verbose.

    Args:
        commands: the group that it is one of.
        text: what it does, a sentence.
    """
    parser = commands.add_command(name, text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is being done")
    parser.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser.set_defaults(execute=run)
    return parser


def say(text: str, stream: Any = None) -> None:
    """Print a line, with control characters, which a terminal would obey, as JSON escapes them."""
    stream = stream or sys.stdout
    text = _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", clean(text))
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def as_json(value: Any) -> Any:
    """Return a value as JSON has it.

    A table is its records, a number its `to_dict`, another data class its fields, a path and an infinite number a text.
    """
    for method in ("to_records", "to_dict"):
        if hasattr(value, method):
            return as_json(getattr(value, method)())
    if is_dataclass(value):
        # What is left out of its repr is for computing on, and as long as there are documents.
        names = [field.name for field in fields(value) if field.repr]
        return {name: as_json(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item) for item in value]
    return str(value) if isinstance(value, Path | Remote) or (isinstance(value, float) and math.isinf(value)) else value
