"""Options of multiple-choice questions as tables have them, and which of them the answer means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.option_order import MOST, options_in
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown

_LETTER = re.compile(r"\(?(?P<letter>[A-Za-z])(?:[).:]|$)\s*(?P<text>.*)", re.DOTALL)


def options_of(row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The texts of a row's options.

    Args:
        columns: one with all options, or one an option.

    Raises:
        DataError: they cannot be told.
    """
    cell = row[columns[0]]
    texts = [row[column] for column in columns] if len(columns) > 1 else cells.as_list(cell) or []
    options = _without_letters([" ".join(cells.text(text).split()) for text in texts if not cells.is_empty(text)])
    if not all(map(cells.is_empty, texts[len(options) :])):
        raise DataError("an option is missing between others")
    if not 2 <= len(options) <= MOST:
        raise DataError(f"{len(options)} options in {shown(cell)}; expected a list of 2 to {MOST}")
    return options


def with_options(question: str, options: Sequence[str]) -> str:
    """The question with its options behind letters.

    Raises:
        DataError: they could not be told apart in it.
    """
    text = "\n".join([question, *map("{}. {}".format, ascii_uppercase, options)])
    if [option.text for option in options_in(text)] != list(options):
        raise DataError("the options cannot be told apart behind the question")
    return text


def right_letter(answer: object, options: Sequence[str]) -> str:
    """The letter of the right option, which the answer names by letter or text.

    Raises:
        DataError: the answer names none of them or several, or a number, which may be the place of one.
    """
    answer = answer[0] if isinstance(answer, (list, tuple)) and len(answer) == 1 else answer
    text = " ".join(cells.text(answer).casefold().split())
    if text.isdecimal() and len(text) < 3 and int(text) <= len(options):
        raise DataError(
            f"the answer {shown(answer)} may count the options or be the text of one; write letters, as "
            "frame['answer'].map(lambda i: chr(65 + int(i))) does where 0 is the first"
        )
    lettered = zip(ascii_lowercase, map(str.casefold, options), strict=False)
    forms = ((o, rf"\(?{letter}(?:[).:]\s*(?:{re.escape(o)})?)?") for letter, o in lettered)
    places = [i for i, (option, form) in enumerate(forms) if text == option or re.fullmatch(form, text)]
    if len(places) != 1:
        raise DataError(
            f"the answer {shown(answer)} is none, or several, of its {len(options)} options; --options none asks "
            "without them"
        )
    return ascii_uppercase[places[0]]


def _without_letters(options: list[str]) -> list[str]:
    """Options without the letters that each of them has in front (PMC-VQA's "A: purple" in the column Choice A)."""
    matches = [match for text in options if (match := _LETTER.match(text))]
    bare = [match["text"].strip() for match in matches]
    lettered = [match["letter"] for match in matches] == list(ascii_uppercase[: len(options)])
    return bare if lettered and all(bare) else options
