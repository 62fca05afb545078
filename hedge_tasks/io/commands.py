"""What the commands share: options that all have, and output."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hedge_tasks.io.outside import clean

# Line ends and tabs stay.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

USAGE_ERROR = 2
"""Exit code of a wrong path or option."""

PROBLEMS_FOUND = 1
"""Exit code of a check that found something."""


def command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    """Add a command whose options include --json and --verbose."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is being done")
    # Suppressed: the main parser has it, too, and its value must not be overwritten.
    parser.add_argument(
        "--traceback", action="store_true", default=argparse.SUPPRESS, help="show where an error came from"
    )
    parser.set_defaults(execute=run)
    return parser


def say(text: str, stream: Any = None) -> None:
    """Print a line: without control characters, which a terminal would obey, and whatever the terminal can show."""
    stream = stream or sys.stdout
    text = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", clean(text))
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        stream.write(text.encode(stream.encoding, "backslashreplace").decode(stream.encoding) + "\n")


def show(arguments: argparse.Namespace, value: Any, text: str) -> None:
    """Print the result: the value as JSON where --json asks for it, else the text."""
    say(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) if arguments.json else text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text: the first is flush left, the others flush right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([cells[0].ljust(widths[0]), *padded]).rstrip()

    return "\n".join(map(line, (header, *rows)))


def number(value: float | None, digits: int = 4) -> str:
    """A number as a cell; N/A where there is none."""
    return "N/A" if value is None else f"{value:.{digits}f}"
