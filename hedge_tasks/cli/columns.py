"""Options that name the columns of a table of answers, for `hedge import answers`; `hedge score` has the same."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedge_tasks.data.roles import ColumnSettings

_REPEATED = {
    "reply": "the model's replies, the baseline first, again for draws",
    "answer": "right answers, again for more references",
}
_SINGLE = {"question": "the questions", "label": "labels: 1 = hallucinated", "id": "ids"}


def add_columns(parser: argparse.ArgumentParser) -> None:
    for name, what in _REPEATED.items():
        parser.add_argument(f"--{name}", action="append", default=[], metavar="COLUMN", help=f"column with {what}")
    for name, what in _SINGLE.items():
        parser.add_argument(f"--{name}", metavar="COLUMN", help=f"column with {what}")


def chosen_columns(arguments: argparse.Namespace) -> ColumnSettings:
    from hedge_tasks.data.roles import ColumnSettings

    return ColumnSettings(
        question=arguments.question,
        answers=tuple(arguments.answer),
        id=arguments.id,
        label=arguments.label,
        reply=tuple(arguments.reply),
    )
