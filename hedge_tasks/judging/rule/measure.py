"""Reading how large something is said to be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hedge_tasks.judging.rule.reading import NUMBER, Text
from hedge_tasks.judging.rule.vocabulary import LENGTHS, LESS, MORE, STOP, UNITS

Range = tuple[float, float]

TOLERANCE = 0.1
"""A single number stands for what is within 10 % of it."""


def ranges(text: Text) -> list[tuple[Range, str]]:
    """The sizes that a text states, as (smallest, largest) and a unit ("" for none); lengths are in millimetres.

    Example:
        >>> from hedge_tasks.judging.rule.reading import read_text
        >>> ranges(read_text("between 1 and 2 cm, or >30 mm"))
        [((10.0, 20.0), 'mm'), ((30.0, inf), 'mm')]
    """
    return [size for clause in text.clauses for size in _sizes_in(clause)]


def _sizes_in(clause: tuple[str, ...]) -> Iterator[tuple[Range, str]]:
    at = 0
    while at < len(clause):
        if not NUMBER.fullmatch(clause[at]):
            at += 1
            continue
        start, first = at, float(clause[at])
        second = first
        # '5-10 mm' is two numbers in a row by now; '6.5 x 6.4 cm' are two sizes.
        after = at + 2 if clause[at + 1 : at + 2] in (("to",), ("and",)) else at + 1
        if after < len(clause) and NUMBER.fullmatch(clause[after]) and float(clause[after]) > first:
            second, at = float(clause[after]), after
        at += 1
        unit = next((word for word in clause[at : at + 3] if word in UNITS), "")
        by = LENGTHS.get(unit, 1.0)
        yield (_bounds(clause[max(start - 2, 0) : start], first * by, second * by), "mm" if unit in LENGTHS else unit)


def _bounds(before: tuple[str, ...], first: float, second: float) -> Range:
    if MORE & set(before):
        return (first, math.inf)
    if LESS & set(before):
        return (0.0, second)
    return (first, second) if second > first else (first * (1 - TOLERANCE), first * (1 + TOLERANCE))


def overlap(first: tuple[Range, str], second: tuple[Range, str]) -> bool:
    """Can both be true of one thing? A unit that one of them lacks is taken for the other's."""
    (low, high), unit = first
    (lower, higher), its = second
    return max(low, lower) < min(high, higher) and (unit == its or not unit or not its)


def same_size(first: tuple[Range, str], second: tuple[Range, str]) -> bool:
    """Are two sizes equal: 5 mm and 0.5 cm?"""
    return first[1] == second[1] and all(map(math.isclose, first[0], second[0]))


def single_count(words: Sequence[str]) -> float | None:
    """The reference as a count: one number (or no/none) and nothing else that matters."""
    numbers = {float(word) for word in words if NUMBER.fullmatch(word)}
    if {"no", "none"} & set(words):
        numbers.add(0.0)
    return numbers.pop() if len(numbers) == 1 and not UNITS & set(words) else None


def counted_nouns(question: Text) -> set[str] | None:
    """The content words right after 'how many' / 'number of'; None when the question does not ask for a count."""
    words = question.words
    for position in range(len(words) - 1):
        if (words[position], words[position + 1]) in (("how", "many"), ("number", "of")):
            following = [word for word in words[position + 2 :] if word not in STOP]
            return set(following[:3])
    return None


def stated_counts(answer: Text, nouns: set[str]) -> set[float]:
    near: set[float] = set()
    anywhere: set[float] = set()
    for sentence in answer.sentences[:1]:
        for clause in sentence:
            for position, word in enumerate(clause):
                if word in ("no", "none"):
                    value = 0.0
                elif NUMBER.fullmatch(word):
                    value = float(word)
                else:
                    continue
                anywhere.add(value)
                if nouns & set(clause[position + 1 : position + 4]):
                    near.add(value)
    return near or anywhere
