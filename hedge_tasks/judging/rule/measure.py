"""Reading the numbers that a text states, each as a whole: with its unit, its range and what it is compared with."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Set
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from hedge_tasks.judging.rule.names import Clause
from hedge_tasks.judging.rule.reading import Text
from hedge_tasks.judging.rule.vocabulary import words
from hedge_tasks.replies.clauses import AFFIRMED, polarity

TOLERANCE = 0.1
"""A single number with a unit stands for what is within 10 % of it; one without for what is rounded to it."""

LENGTHS: Mapping[str, float] = {"mm": 1.0, "cm": 10.0, "inch": 25.4, "m": 1000.0}
"""Units of length, in millimetres."""


class Size(NamedTuple):
    """A number, and all that it may be: lengths in millimetres, anything else in its unit ("" for none)."""

    low: float
    high: float
    unit: str

    def overlaps(self, other: Size) -> bool:
        """Can both be true of one thing?"""
        return self.unit == other.unit and max(self.low, other.low) < min(self.high, other.high)

    def equals(self, other: Size) -> bool:
        """Are both the same size: 5 mm and 0.5 cm?"""
        return self.unit == other.unit and math.isclose(self.low, other.low) and math.isclose(self.high, other.high)


@cache
def _number() -> re.Pattern[str]:
    """A number with what is one with it, in a clause; the unit of "3 x 4 cm" is that of both."""
    more, less, units = ("|".join(sorted(words(role))) for role in ("more", "less", "units"))
    one = r"(?<![\w.-])\d+(?:\.\d+)?(?![\w.])"
    front = rf"(?:\b(?:(?:(?P<more>{more})|(?P<less>{less})) (?:[a-z]+ ){{0,2}}|(?P<before>[^\W\d]+) ))?"
    unit = rf"(?: (?:x|and|to|-|{one})){{0,4}}(?: (?P<unit>{units})\b)?"
    return re.compile(rf"{front}(?P<low>{one})(?: (?:to|-) (?P<high>{one}))?(?={unit})(?=(?P<behind>(?: \S+){{0,3}}))")


def sizes_in(text: Text, unit: str = "", nouns: Set[str] | None = None) -> set[Size] | None:
    """The numbers that a text states; None where a clause does not affirm its number, or offers several.

    Where things are counted, neither is the name of one ("polyp 3") or a part of them ("one of these") a count; and
    "no" and "none" are 0, where they are said of these things and of nothing else.

    Args:
        unit: of numbers without one.
        nouns: for what is counted; None where nothing is.

    Example:
        >>> from hedge_tasks.judging.rule.reading import read_text
        >>> sizes_in(read_text(">30 mm")), sizes_in(read_text("not 30 mm"))
        ({Size(low=30.0, high=inf, unit='mm')}, None)
    """
    every = set[Size]()
    for clause in text.clauses:
        spoken = " ".join(clause) if nouns is None else _with_zero(clause, nouns)
        matches = list(_number().finditer(spoken))
        denies = bool((words("negations") - {"0"} | {"or"}) & set(spoken.split())) or polarity(spoken) != AFFIRMED
        sizes = {_size(match, unit) for match in matches}
        denies |= len(sizes) < len(matches)  # "1 + 1"
        if matches and (denies or any(nouns is not None and _is_name(match, nouns) for match in matches)):
            return None
        every |= sizes
    return every


def _with_zero(clause: Clause, nouns: Set[str]) -> str:
    content, spoken = set(clause) - words("stop", "frame"), " ".join(clause)
    is_zero = content <= nouns and (content or len(clause) == 1 or "none" in clause)
    return re.sub(r"\bno(?:ne)?\b", "0", spoken) if is_zero else spoken


def _is_name(match: re.Match[str], nouns: Set[str]) -> bool:
    """Does a number stand behind a name and not in front of what is counted, or in front of "of"?"""
    before, behind = match["before"] or "the", match["behind"].split()
    is_named = before not in words("stop", "frame") and not before.endswith("ly")
    return behind[:1] == ["of"] or (is_named and (nouns | words("units")).isdisjoint(behind))


def _size(match: re.Match[str], unit: str) -> Size:
    unit = match["unit"] or unit
    factor = LENGTHS.get(unit, 1.0)
    low, high = sorted(factor * float(number) for number in (match["low"], match["high"] or match["low"]))
    within = 0.0 if high > low else low * TOLERANCE if unit else 0.5
    low, high = (low, math.inf) if match["more"] else (0.0, high) if match["less"] else (low - within, high + within)
    return Size(low, high, "mm" if unit in LENGTHS else unit)


def counted_nouns(question: Text) -> set[str] | None:
    """The content words right after 'how many' or 'number of'; None where the question does not ask for a count."""
    spoken = question.words
    at = next((i for i, pair in enumerate(pairwise(spoken)) if pair in (("how", "many"), ("number", "of"))), None)
    return None if at is None else set([word for word in spoken[at + 2 :] if word not in words("stop")][:3])
