"""Options of multiple-choice questions as tables have them, and which of them the answer means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.cells import plain_name
from hedge_tasks.data.option_order import MOST, options_in
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import shown

LISTS = ("options", "choices")
"""Names of columns with all options of a question."""

_LETTER = re.compile(r"\(?(?P<letter>[A-Za-z])(?:[).:]|$)\s*(?P<text>.*)", re.DOTALL)
_SAMPLE = 50


@dataclass(frozen=True)
class OptionColumns:
    """Where the options of a question are, and how the answer names the right one.

    Attributes:
        columns: one with all options, or one an option.
        first: number of the first option where answers are numbers; None where they are letters or texts.
    """

    columns: tuple[str, ...]
    first: int | None = None

    def options_of(self, row: Mapping[str, Any]) -> list[str]:
        """The texts of a row's options.

        Raises:
            DataError: they cannot be told.
        """
        cell = row[self.columns[0]]
        texts = [row[column] for column in self.columns] if len(self.columns) > 1 else cells.as_list(cell) or []
        options = _without_letters([" ".join(cells.text(text).split()) for text in texts if not cells.is_empty(text)])
        if not all(map(cells.is_empty, texts[len(options) :])):
            raise DataError("an option is missing between others")
        if not 2 <= len(options) <= MOST:
            raise DataError(f"{len(options)} options in {shown(cell)}; expected a list of 2 to {MOST}")
        return options

    def with_options(self, question: str, options: Sequence[str]) -> str:
        """The question with its options behind letters.

        Raises:
            DataError: they could not be told apart in it.
        """
        text = "\n".join([question, *map("{}. {}".format, ascii_uppercase, options)])
        if [option.text for option in options_in(text)] != list(options):
            raise DataError("the options cannot be told apart behind the question")
        return text

    def right_letter(self, answer: object, options: Sequence[str]) -> str:
        """The letter of the right option, which the answer names by number, or by letter or text.

        Raises:
            DataError: the answer names none of them, or several.
        """
        answer = answer[0] if isinstance(answer, (list, tuple)) and len(answer) == 1 else answer
        text = " ".join(cells.text(answer).casefold().split())
        if self.first is None:
            lettered = enumerate(zip(ascii_lowercase, map(str.casefold, options), strict=False))
            forms = ((i, o, rf"\(?{letter}(?:[).:]\s*(?:{re.escape(o)})?)?") for i, (letter, o) in lettered)
            places = [i for i, option, form in forms if text == option or re.fullmatch(form, text)]
        else:
            places = [i for i in range(len(options)) if text == str(i + self.first)]
        if len(places) != 1:
            raise DataError(
                f"the answer {shown(answer)} is none, or several, of its {len(options)} options; --options none asks "
                "without them"
            )
        return ascii_uppercase[places[0]]


def find_choices(
    table: StoredTable, chosen: Sequence[str], answer: str | None, first: str | None
) -> OptionColumns | None:
    """Return the option columns of a table: the user's, else those of obvious names; None for free answers.

    Args:
        answer: column.
        first: number of the first option, or "none" for texts, as the user says.

    Raises:
        ConfigError: answers are numbers, and the user has not said from where on they count.
    """
    lists = [column for column in table.columns if plain_name(column) in LISTS]
    letters = tuple(takewhile(table.columns.__contains__, ascii_uppercase))
    columns = tuple(chosen) or tuple(lists[:1]) or (letters if len(letters) > 1 else ())
    if not columns:
        return None
    values = table.filled(answer, _SAMPLE) if answer and first is None else []
    if values and all(not isinstance(value, (list, tuple)) and cells.text(value).isdecimal() for value in values):
        raise ConfigError(
            f"{table.name}: {answer!r} holds numbers ({shown(values[0])}). Do they count the options? Say "
            "--first-option 0 or 1, or --first-option none where they are their texts"
        )
    return OptionColumns(columns, int(first) if first is not None and first.isdecimal() else None)


def _without_letters(options: list[str]) -> list[str]:
    """Options without the letters that each of them has in front (PMC-VQA's "A: purple" in the column Choice A)."""
    matches = [match for text in options if (match := _LETTER.match(text))]
    bare = [match["text"].strip() for match in matches]
    lettered = [match["letter"] for match in matches] == list(ascii_uppercase[: len(options)])
    return bare if lettered and all(bare) else options
