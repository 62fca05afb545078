"""Options of multiple-choice questions as tables have them, and which one the answer means."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any, Literal

from hedge_tasks.data import cells
from hedge_tasks.data.cells import plain_name
from hedge_tasks.data.option_order import MOST, options_in
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.outside import shown

LISTS = ("options", "option", "choices", "choice", "candidates", "multi_choices", "multiple_choices", "answer_choices")
"""Names of columns with all options of a question."""

_MORE_LISTS = ("选项", "選択肢", "optionen", "opciones", "opzioni", "opcoes", "opções", "选择")
_ONE_EACH = re.compile(r"(?:(?:option|choice|opt|opcion|antwort)_?)?(?P<which>[a-z]|[1-9])")
_LETTER = re.compile(r"\(?(?P<letter>[A-Za-z])(?:[).:]|\s*$)\s*(?P<text>.*)", re.DOTALL)
_AT_FRONT = re.compile(r"\(?([A-Z])[).:]\s+")
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
        elif len(self.columns) == 1:
            options = _parse_options(row[self.columns[0]])
        else:
            texts = _without_letters([_option_text(row[column]) for column in self.columns])
            options = [text for text in texts if text]
            if texts[: len(options)] != options:
                raise DataError("an option is missing between others")
        if not 2 <= len(options) <= MOST:
            raise DataError("no options" if not options else f"{len(options)} options; expected 2 to {MOST}")
        return options

    def with_options(self, question: str, options: Sequence[str]) -> str:
        """The question with its options behind letters.

        Raises:
            DataError: they could not be told apart in it.
        """
        text = question if self.in_text else "\n".join([question, *map("{}. {}".format, _letters(options), options)])
        if [option.text for option in options_in(text)] != list(options):
            raise DataError("the options cannot be told apart behind the question")
        return text

    def right_letter(self, answer: object, options: Sequence[str]) -> str:
        """The letter of the right option.

        Raises:
            DataError: the answer names none of them.
        """
        number = _number_of(answer, options, self)
        if number is None:
            raise DataError(f"the answer {shown(answer)} is none of its {len(options)} options")
        return _letters(options)[number]

    def with_naming(self, table: StoredTable, answer: str, question: str, first: int | None) -> OptionColumns:
        """Return the columns with the way in which a column of answers names the right options.

        Args:
            question: column in which the options may stand.
            first: as the user says; None to find out.

        Raises:
            ConfigError: it can be read in two ways, or in none.
        """
        pairs = []
        for row in table.rows(list(dict.fromkeys([answer, question, *self.columns]))):
            value = row[answer][0] if isinstance(row[answer], list) and len(row[answer]) == 1 else row[answer]
            if value is None or cells.is_missing(value):
                continue
            try:
                pairs.append((value, self.options_of(row, str(row[question]))))
            except DataError:  # said of the row when all rows are looked at
                continue
        if first is not None:
            return replace(self, naming="number", first=first)
        fits = {
            naming: [_number_of(value, options, replace(self, naming=naming)) is not None for value, options in pairs]
            for naming in ("letter", "text")
        }
        whole = [_whole_number(value) for value, _ in pairs]
        if pairs and all(number is not None for number in whole):
            if all(fits["text"]):
                raise ConfigError(
                    f"{table.name}: is {answer!r} the number of the right option, or its text ({shown(pairs[0][0])})? "
                    "Say --first-option 0 or 1 for numbers, or write letters"
                )
            return replace(self, naming="number", first=_first_number(table.name, answer, whole, pairs))
        best = max(("letter", "text"), key=lambda naming: sum(fits[naming]))
        if not pairs or 2 * sum(fits[best]) < len(pairs):
            raise ConfigError(
                f"{table.name}: {answer!r} ({shown(pairs[0][0]) if pairs else 'empty'}) names none of the options by "
                "letter, number or text; --options none asks without them"
            )
        return replace(self, naming="letter" if best == "letter" else "text")

    def fits(self, table: StoredTable, question: str, answer: str) -> bool:
        """Whether options in the questions are named by letter or text in the first answers."""
        answers, questions = table.values(answer, _SAMPLE), table.values(question, _SAMPLE)
        pairs = [(a, [o.text for o in options_in(str(q))]) for a, q in zip(answers, questions, strict=True)]
        ways = (replace(self, naming="letter"), replace(self, naming="text"))
        return any(all(options and _number_of(v, options, way) is not None for v, options in pairs) for way in ways)


def _without_letters(options: list[str]) -> list[str]:
    """Options without the letters that each of them has in front (PMC-VQA's "A: purple" in the column Choice A)."""
    matches = [match for text in options if (match := _LETTER.match(text))]
    bare = [match["text"].strip() for match in matches]
    return bare if all(bare) and [match["letter"] for match in matches] == _letters(options) else options


def find_choices(
    table: StoredTable, columns: Sequence[str], chosen: Sequence[str], question: str | None
) -> OptionColumns | None:
    """Return the option columns of a table: as the user says, else by names and values; None without.

    Args:
        question: column in which they may stand as well; None for none.

    Raises:
        ConfigError: a column has the name of options, and its values cannot be read as such.
    """
    if chosen:
        return OptionColumns(tuple(chosen))
    named = [column for column in columns if plain_name(column) in (*LISTS, *_MORE_LISTS)]
    for column in named:
        values = table.filled(column, _SAMPLE)
        if values:
            try:
                for value in values:
                    _parse_options(value)
            except DataError as error:
                raise ConfigError(
                    f"{table.name}: by its name the column {column!r} holds options, and {error}; a task without them "
                    f"would not show them. Write lists, or leave it out knowingly with --ignore {column}"
                ) from None
            return OptionColumns((column,))
    for which in ("abcdefghijklmnopqrstuvwxyz", "123456789"):
        by_option: dict[str, str] = {}
        for column in columns:
            if (match := _ONE_EACH.fullmatch(plain_name(column))) and match["which"] in which:
                if len(column) == 1 and not column.isupper():
                    continue
                by_option.setdefault(match["which"], column)
        option_columns = [by_option[option] for option in which[: len(by_option)] if option in by_option]
        if len(option_columns) >= 2 and len(option_columns) == len(by_option):
            return OptionColumns(tuple(option_columns))
    if question is not None:
        texts = table.values(question, _SAMPLE)
        if texts and all(isinstance(text, str) and options_in(text) for text in texts):
            return OptionColumns(())
    return None


def _first_number(
    name: str, answer: str, whole: Sequence[int | None], pairs: Sequence[tuple[object, Sequence[str]]]
) -> int:
    """Number of the first option (0 or 1), where the numbers leave no doubt."""
    numbers = [(number, len(options)) for number, (_, options) in zip(whole, pairs, strict=True) if number is not None]
    from_zero = all(0 <= number < n for number, n in numbers)
    from_one = all(1 <= number <= n for number, n in numbers)
    if from_zero and from_one:
        raise ConfigError(
            f"{name}: {answer!r} gives the number of the right option, and its numbers fit counting from 0 and from 1. "
            "Say --first-option 0 or --first-option 1"
        )
    if not from_zero and not from_one:
        raise ConfigError(f"{name}: {answer!r} holds numbers, and some of them are no number of an option")
    return 0 if from_zero else 1


def _number_of(answer: object, options: Sequence[str], choices: OptionColumns) -> int | None:
    """Number of the option that an answer means, from 0."""
    if choices.naming == "number":
        number = _whole_number(answer)
        number = None if number is None else number - choices.first
        return number if number is not None and 0 <= number < len(options) else None
    if not isinstance(answer, (str, int, float)):
        return None
    text = cells.text(answer)
    if choices.naming == "letter":
        match = _LETTER.fullmatch(text)
        number = len(options) if match is None else ord(match["letter"].upper()) - ord("A")
        if match is None or number >= len(options):
            return None
        return number if not match["text"].strip() or _is_option(match["text"], options[number]) else None
    matching = [i for i, option in enumerate(options) if _is_option(text, option)]
    return matching[0] if len(matching) == 1 else None


def _is_option(text: str, option: str) -> bool:
    """Whether a text is that of an option, but for case and white space."""
    return option.casefold() == " ".join(text.casefold().split())


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = cells.text(value)
    return int(text) if re.fullmatch(r"\d{1,3}", text) else None


def _letters(options: Sequence[str]) -> list[str]:
    return list(ascii_uppercase[: len(options)])


def _parse_options(value: object) -> list[str]:
    """The options in a cell: a list, `{"A": ...}`, `{"text": [...]}`, a list written as text, or lettered lines.

    Raises:
        DataError: it is none of these.
    """
    if isinstance(value, str):
        plain = value.strip()
        if plain[:1] in "[{" and plain:
            try:
                return _parse_options(ast.literal_eval(plain))
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                raise DataError(f"its value {shown(value)} is no list") from None
        if options := options_in(value):
            return [option.text for option in options]
        if plain:
            raise DataError(f"its value {shown(value)} is no list")
        return []
    if isinstance(value, Mapping):
        if isinstance(texts := value.get("text"), (list, tuple)):
            return _parse_options(texts)
        keys = [str(key).strip() for key in value if value[key] is not None]
        if keys != _letters(keys):
            raise DataError("its keys are not the letters from A on")
        return [_option_text(item) for item in value.values() if item is not None]
    if isinstance(value, (list, tuple)):
        texts = [_option_text(item) for item in value]
        if len(texts) > 1 and [m[1] if (m := _AT_FRONT.match(t)) else "" for t in texts] == _letters(texts):
            texts = [_AT_FRONT.sub("", text, count=1) for text in texts]
        if not all(texts):
            raise DataError("an option is empty")
        return texts
    if value is None:
        return []
    raise DataError(f"its value {shown(value)} is no list")


def _option_text(value: object) -> str:
    text = " ".join(cells.text(value).split())
    return "" if text.lower() == "nan" else text
