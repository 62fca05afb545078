"""Reading how many there are said to be of something, and how large it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from hedge_tasks.judging.rule.names import Clause
from hedge_tasks.judging.rule.reading import NUMBER, Text
from hedge_tasks.judging.rule.vocabulary import words

TOLERANCE = 0.1
"""A single number stands for what is within 10 % of it."""

LENGTHS: Mapping[str, float] = {"mm": 1.0, "cm": 10.0, "inch": 25.4, "m": 1000.0}
"""Units of length, in millimetres."""


class Size(NamedTuple):
    """A size, and all that it may be: lengths in millimetres, anything else in its unit ("" for none)."""

    low: float
    high: float
    unit: str

    def overlaps(self, other: Size) -> bool:
        """Can both be true of one thing? A unit that one of them lacks is taken for the other's."""
        same_unit = self.unit == other.unit or not self.unit or not other.unit
        return same_unit and max(self.low, other.low) < min(self.high, other.high)

    def equals(self, other: Size) -> bool:
        """Are both the same size: 5 mm and 0.5 cm?"""
        return self.unit == other.unit and math.isclose(self.low, other.low) and math.isclose(self.high, other.high)


def sizes_in(text: Text) -> list[Size]:
    """The sizes that a text states.

    Example:
        >>> from hedge_tasks.judging.rule.reading import read_text
        >>> sizes_in(read_text("between 1 and 2 cm, or >30 mm"))
        [Size(low=10.0, high=20.0, unit='mm'), Size(low=30.0, high=inf, unit='mm')]
    """
    return [size for clause in text.clauses for size in _sizes(clause)]


def _sizes(clause: Clause) -> Iterator[Size]:
    at = 0
    while at < len(clause):
        start, at = at, at + 1
        if not NUMBER.fullmatch(clause[start]):
            continue
        first = second = float(clause[start])
        # '5-10 mm' is two numbers in a row by now; '6.5 x 6.4 cm' are two sizes.
        after = at + 1 if clause[at : at + 1] in (("to",), ("and",)) else at
        if after < len(clause) and NUMBER.fullmatch(clause[after]) and float(clause[after]) > first:
            second, at = float(clause[after]), after + 1
        unit = next((word for word in clause[at : at + 3] if word in words("units")), "")
        factor = LENGTHS.get(unit, 1.0)
        low, high = _bounds(clause[max(start - 2, 0) : start], first * factor, second * factor)
        yield Size(low, high, "mm" if unit in LENGTHS else unit)


def _bounds(before: Clause, first: float, second: float) -> tuple[float, float]:
    if words("more") & set(before):
        return (first, math.inf)
    if words("less") & set(before):
        return (0.0, second)
    return (first, second) if second > first else (first * (1 - TOLERANCE), first * (1 + TOLERANCE))


def single_count(spoken: Sequence[str]) -> float | None:
    """The reference as a count: one number (or no, none) and nothing else that matters."""
    numbers = {float(word) for word in spoken if NUMBER.fullmatch(word)}
    if {"no", "none"} & set(spoken):
        numbers.add(0.0)
    return numbers.pop() if len(numbers) == 1 and not words("units") & set(spoken) else None


def counted_nouns(question: Text) -> set[str] | None:
    """The content words right after 'how many' or 'number of'; None where the question does not ask for a count."""
    spoken = question.words
    at = next((i for i, pair in enumerate(pairwise(spoken)) if pair in (("how", "many"), ("number", "of"))), None)
    return None if at is None else set([word for word in spoken[at + 2 :] if word not in words("stop")][:3])


def stated_counts(answer: Text, nouns: set[str]) -> set[float]:
    """The numbers in front of the nouns in the first sentence; else all numbers in it."""
    counts = [
        (0.0 if word in ("no", "none") else float(word), bool(nouns & set(clause[at + 1 : at + 4])))
        for clause in (answer.sentences[0] if answer.sentences else ())
        for at, word in enumerate(clause)
        if word in ("no", "none") or NUMBER.fullmatch(word)
    ]
    near = {number for number, is_near in counts if is_near}
    return near or {number for number, _ in counts}
