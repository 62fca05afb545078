"""The one word of the vocabulary that is a colour more often than an object: "orange".

Rules of grammar in place of a tagger, as in `extraction`; `benchmarks/orange.py` measures them.
"""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.suites.vope.vocabulary import word_set

_COLOURS = word_set(
    "white black red blue green yellow brown grey gray purple pink silver gold golden tan beige teal turquoise violet "
    "maroon cream navy crimson"
)

_DETERMINERS = word_set(
    "a an the one another each every this that his her its their my your our some no any single whole half"
)

_SHADES = word_set("dark pale light burnt neon vivid fiery rusty fluorescent faded pastel")
"""Words for shades of the colour; a fruit has none."""

_CLOSING = word_set(
    "is are was were be been being looks turned turns turning glows painted dyed colored coloured color colour hue "
    "tint in of with wearing and or but mostly all very so"
)
"""Words that end the phrase an article opened: in "the cat is orange" nothing belongs to "the"."""

_PARTS = word_set("slice slices piece pieces wedge wedges segment segments half halves peel peels quarter quarters")

_EATEN = word_set("eat eats eating ate peel peels peeling peeled squeeze squeezes squeezing slicing cutting juggling")

_FOOD = word_set(
    "apple apples banana bananas pear pears peach peaches plum plums lemon lemons lime limes grape grapes kiwi kiwis "
    "melon strawberry strawberries pineapple grapefruit fruit mango carrot carrots broccoli sandwich cake bread cheese "
    "egg eggs tomato tomatoes onion onions cookie cookies"
)
"""Neighbours of an orange in a list."""

_FUNCTION_WORDS = word_set(
    "a an the and or but nor so is are was were be been being has have had do does did can could will would may might "
    "must should in on at of to from for with without near by beside behind under over above below between among into "
    "onto off out up down around across through away that which who whose while as then than when where if because not "
    "no just also sits sit lies lie rests lay next"
)

_DOES = word_set("fell falls hung hangs stood stands grew grows rolls sat looks smells tastes smelled tasted seems")
"""Verbs of a fruit; regular forms are known by their ending."""

_JOINTS = ("and", "or", "&", ",")


def is_colour(at: int, tokens: Sequence[str]) -> bool:
    """Whether the token "orange" at a place is the colour.

    Args:
        tokens: words and punctuation marks of the text, lower case.

    Example:
        >>> said = "an orange cat beside an orange , and a sky that turned orange".split()
        >>> [is_colour(i, said) for i, word in enumerate(said) if word == "orange"]
        [True, False, True]
    """
    before, after = tokens[max(0, at - 4) : at][::-1], tokens[at + 1 : at + 5]
    if _joined_to(before, _COLOURS) or _joined_to(after, _COLOURS):
        return True
    if _is_fruit_by_parts(before, after):
        return False
    if _describes(after):
        return True
    return not (_determined(before) or _joined_to(before, _FOOD) or _joined_to(after, _FOOD))


def _joined_to(words: Sequence[str], targets: frozenset[str]) -> bool:
    """Whether a comma, "and" or "or" joins it to one of those words, read away from it, articles left out."""
    if not words or words[0] not in _JOINTS:
        return False
    joined = [word for word in words if word not in _JOINTS and word not in _DETERMINERS]
    return bool(joined) and joined[0] in targets


def _is_fruit_by_parts(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether its parts or eating make it a fruit: "orange slices", "a slice of orange", "eating orange"."""
    part_of_one = len(before) > 1 and before[0] == "of" and before[1] in _PARTS
    return part_of_one or bool(after and after[0] in _PARTS) or bool(before and before[0] in _EATEN)


def _describes(after: Sequence[str]) -> bool:
    """Whether it stands in front of something that it describes: "orange cat", but not "an orange rolled off"."""
    if not after or not after[0].isalpha() or after[0] in _FUNCTION_WORDS:
        return False
    ends = len(after) < 2 or after[1] in _FUNCTION_WORDS or not after[1].isalpha()
    return not (after[0] in _DOES or (ends and after[0].endswith(("ed", "ing"))))


def _determined(before: Sequence[str]) -> bool:
    """Whether an article or its like belongs to it, an adjective between them or not: "an orange", "a ripe orange"."""
    if before and before[0] in _DETERMINERS:
        return True
    between = len(before) > 1 and before[1] in _DETERMINERS and before[0].isalpha()
    return between and before[0] not in _CLOSING and before[0] not in _SHADES
