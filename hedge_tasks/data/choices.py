"""Options of multiple-choice questions as tables have them, and which of them the answer means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from string import ascii_uppercase
from typing import Any, Literal

from hedge_tasks.data import cells
from hedge_tasks.data.cells import plain_name
from hedge_tasks.data.option_order import MOST, options_in
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import shown

LISTS = ("options", "choices")
"""Names of columns with all options of a question."""

_LETTER = re.compile(r"\(?(?P<letter>[A-Za-z])(?:[).:]|\s*$)\s*(?P<text>.*)", re.DOTALL)
_SAMPLE = 50

Naming = Literal["letter", "number", "text"]
"""How the column of answers names the right option."""


@dataclass(frozen=True)
class OptionColumns:
    """Where the options of a question are, and how the answer names the right one.

    Attributes:
        columns: one with all options, or one an option; none where they stand in the question.
        naming: None without answers.
        first: number of the first option, for naming by number.
    """

    columns: tuple[str, ...]
    naming: Naming | None = None
    first: int = 0

    @property
    def in_text(self) -> bool:
        """Whether the options stand in the question already."""
        return not self.columns

    def options_of(self, row: Mapping[str, Any], question: str) -> list[str]:
        """The texts of a row's options.

        Raises:
            DataError: they cannot be told.
        """
        if self.in_text:
            options = [option.text for option in options_in(question)]
        else:
            cell = row[self.columns[0]]
            texts = [row[column] for column in self.columns] if len(self.columns) > 1 else _listed(cell)
            options = _without_letters(
                [" ".join(cells.text(text).split()) for text in texts if not cells.is_empty(text)]
            )
            if not all(map(cells.is_empty, texts[len(options) :])):
                raise DataError("an option is missing between others")
        if not 2 <= len(options) <= MOST:
            raise DataError("no options" if not options else f"{len(options)} options; expected 2 to {MOST}")
        return options

    def with_options(self, question: str, options: Sequence[str]) -> str:
        """The question with its options behind letters.

        Raises:
            DataError: they could not be told apart in it.
        """
        lines = map("{}. {}".format, ascii_uppercase, options)
        text = question if self.in_text else "\n".join([question, *lines])
        if [option.text for option in options_in(text)] != list(options):
            raise DataError("the options cannot be told apart behind the question")
        return text

    def right_letter(self, answer: object, options: Sequence[str]) -> str:
        """The letter of the right option.

        Raises:
            DataError: the answer names none of them.
        """
        places = self._places(answer, options)
        if len(places) != 1:
            raise DataError(f"the answer {shown(answer)} is none, or several, of its {len(options)} options")
        return ascii_uppercase[places[0]]

    def with_naming(self, table: StoredTable, answer: str, question: str, first: str | None) -> OptionColumns | None:
        """Return the columns with the way in which most answers name an option; None where those in questions are not.

        Args:
            first: number of the first option, or "none" for texts, as the user says.

        Raises:
            ConfigError: answers are numbers, and the user has not said from where on they count; or they name nothing.
        """
        if first is not None and first.isdecimal():
            return replace(self, naming="number", first=int(first))
        pairs = []
        for row in table.rows(list(dict.fromkeys([answer, question, *self.columns]))):
            try:
                pairs.append((single(row[answer]), self.options_of(row, str(row[question]))))
            except DataError:  # said of the row when all rows are looked at
                continue
        ways = [replace(self, naming="letter"), replace(self, naming="text")]
        fitting = [sum(len(way._places(value, options)) == 1 for value, options in pairs) for way in ways]
        if pairs and first is None and all(cells.text(value).isdecimal() for value, _ in pairs):
            raise ConfigError(
                f"{table.name}: {answer!r} holds numbers ({shown(pairs[0][0])}). Do they count the options? Say "
                "--first-option 0 or 1, or --first-option none where they are their texts"
            )
        if pairs and 2 * max(fitting) >= len(pairs):
            return ways[fitting.index(max(fitting))]
        if self.in_text:
            return None
        raise ConfigError(
            f"{table.name}: {answer!r} ({shown(pairs[0][0]) if pairs else 'empty'}) names none of the options by "
            "letter, number or text; --options none asks without them"
        )

    def _places(self, answer: object, options: Sequence[str]) -> list[int]:
        """Numbers from 0 of the options that an answer may mean."""
        text = cells.text(answer)
        if self.naming == "number":
            wanted = int(text) - self.first if text.isdecimal() and len(text) < 4 else -1
            return [i for i in range(len(options)) if i == wanted]
        same = [i for i, option in enumerate(options) if _is_same(text, option)]
        match = _LETTER.fullmatch(text)
        if self.naming == "text" or match is None:
            return same if self.naming == "text" else []
        place = ascii_uppercase.index(match["letter"].upper())
        fits = place < len(options) and (not match["text"].strip() or _is_same(match["text"], options[place]))
        return [place] if fits else []


def single(answer: object) -> object:
    """An answer that may stand alone in a list."""
    return answer[0] if isinstance(answer, (list, tuple)) and len(answer) == 1 else answer


def find_choices(table: StoredTable, chosen: Sequence[str], question: str) -> OptionColumns | None:
    """Return the option columns of a table: the user's, else those of obvious names, else in all questions; or None.

    Args:
        question: column in which they may stand as well.
    """
    lists = [column for column in table.columns if plain_name(column) in LISTS]
    letters = tuple(takewhile(table.columns.__contains__, ascii_uppercase))
    if chosen or lists or len(letters) > 1:
        return OptionColumns(tuple(chosen) or tuple(lists[:1]) or letters)
    texts = table.values(question, _SAMPLE)
    in_text = all(isinstance(text, str) and options_in(text) for text in texts)
    return OptionColumns(()) if in_text else None


def _listed(cell: object) -> list[Any]:
    """The options in a cell: a list, also one written as text, `{"A": ...}`, or lettered lines."""
    if isinstance(cell, Mapping):
        return list(cell.values())
    items = cells.as_list(cell)
    return [option.text for option in options_in(str(cell))] if items is None else items


def _without_letters(options: list[str]) -> list[str]:
    """Options without the letters that each of them has in front (PMC-VQA's "A: purple" in the column Choice A)."""
    matches = [match for text in options if (match := _LETTER.match(text))]
    bare = [match["text"].strip() for match in matches]
    lettered = [match["letter"] for match in matches] == list(ascii_uppercase[: len(options)])
    return bare if lettered and all(bare) else options


def _is_same(text: str, option: str) -> bool:
    """Whether a text is that of an option, but for case and white space."""
    return option.casefold() == " ".join(text.casefold().split())
