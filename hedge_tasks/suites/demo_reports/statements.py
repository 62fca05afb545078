"""Meanings of the sentences of a report on a drawn scan, and what follows from them.

The scans are simple enough to list everything that can be the case in one: 543 worlds. A sentence means the worlds in
which it is true, a text those in which all its sentences are; what it entails or contradicts is then a matter of sets,
and no judgement of anybody.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType

from hedge_tasks.data.sentences import split_sentences

MODALITIES = ("CT", "MRI", "X-ray")
QUADRANTS = ("upper left", "upper right", "lower left", "lower right")
SHAPES = ("round", "irregular", "ring-shaped")
SIZES = ("small", "large")
TONES = ("bright", "dark")
COUNTS = ("no", "one", "two", "three", "four")

TOPICS = ("modality", "count", "place", "clear", "shape", "size", "tone")
"""Topics of sentences."""


@dataclass(frozen=True)
class World:
    """The truth about a scan.

    Attributes:
        modality: one of `MODALITIES`.
        quadrants: that have a lesion each.
        shape, size, tone: of all lesions; empty where there are none. "bright" is brighter than what is around it.
    """

    modality: str
    quadrants: frozenset[str]
    shape: str = ""
    size: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Statement:
    """The meaning of one sentence, such as `Statement("clear", "upper left")`; see `TOPICS`."""

    topic: str
    value: str


class StatementRelation(Enum):
    """How a text stands to a statement."""

    CONTRADICTION = 0
    NEUTRAL = 1
    ENTAILMENT = 2


def _modality(value: str) -> tuple[str, ...]:
    return (f"This is {'a' if value == 'CT' else 'an'} {value} scan.", f"The scan is {value}.")


def _count(value: str) -> tuple[str, ...]:
    if value == "no":
        return ("There are no lesions.", "No lesion is visible.", "The scan looks normal.")
    verb, noun = ("is", "lesion") if value == "one" else ("are", "lesions")
    return (f"There {verb} {value} {noun}.", f"{value.capitalize()} {noun} {verb} visible.")


def _place(value: str) -> tuple[str, ...]:
    return (f"There is a lesion in the {value} quadrant.", f"A lesion is present in the {value} quadrant.")


def _clear(value: str) -> tuple[str, ...]:
    return (f"The {value} quadrant looks normal.", f"There is no lesion in the {value} quadrant.")


def _look(value: str) -> tuple[str, ...]:
    return (f"The lesion is {value}.", f"The lesions are {value}.")


_WORDINGS: Mapping[str, tuple[tuple[str, ...], Callable[[str], tuple[str, ...]]]] = MappingProxyType(
    {
        "modality": (MODALITIES, _modality),
        "count": (COUNTS, _count),
        "place": (QUADRANTS, _place),
        "clear": (QUADRANTS, _clear),
        "shape": (SHAPES, _look),
        "size": (SIZES, _look),
        "tone": (TONES, _look),
    }
)

SENTENCES: Mapping[Statement, tuple[str, ...]] = MappingProxyType(
    {
        Statement(topic, value): worded(value)
        for topic in TOPICS
        for values, worded in [_WORDINGS[topic]]
        for value in values
    }
)
"""Statement -> its wordings. No wording belongs to two statements. Of the looks of lesions the first wording is for one
lesion, the second for several; which of them is said claims nothing about their number."""

_STATEMENTS = MappingProxyType(
    {sentence.casefold().rstrip("."): statement for statement, wordings in SENTENCES.items() for sentence in wordings}
)


def statement_of(sentence: str) -> Statement | None:
    """Read a sentence; None where it is none of the known ones. Case and the final stop do not matter.

    Example:
        >>> statement_of("there is no lesion in the upper left quadrant.")
        Statement(topic='clear', value='upper left')
    """
    return _STATEMENTS.get(" ".join(sentence.split()).casefold().rstrip("."))


def is_true(statement: Statement, world: World) -> bool:
    """Whether a statement is true in a world. The look of lesions is not true of any where there are none."""
    if statement.topic == "modality":
        return world.modality == statement.value
    if statement.topic == "count":
        return len(world.quadrants) == COUNTS.index(statement.value)
    if statement.topic in ("place", "clear"):
        return (statement.value in world.quadrants) == (statement.topic == "place")
    return bool(getattr(world, statement.topic) == statement.value)


def relation(text: str, statement: Statement) -> StatementRelation:
    """Whether what a text says entails a statement, contradicts it, or leaves it open.

    A text that contradicts itself entails and contradicts everything: there every sentence counts alone, and
    entailment goes first. Sentences that are not understood say nothing.
    """
    worlds = [_worlds(read) for sentence in split_sentences(text) if (read := statement_of(sentence)) is not None]
    true = _worlds(statement)
    together = _all_worlds()
    for possible in worlds:
        together &= possible
    premises = [together] if together else worlds
    if any(not premise & ~true for premise in premises):
        return StatementRelation.ENTAILMENT
    return (
        StatementRelation.CONTRADICTION
        if any(not premise & true for premise in premises)
        else StatementRelation.NEUTRAL
    )


def full_report(world: World) -> str:
    """Return a reference: everything that is the case in a world.

    Example:
        >>> full_report(World("CT", frozenset()))
        'This is a CT scan. There are no lesions.'
    """
    places = [Statement("place", quadrant) for quadrant in QUADRANTS if quadrant in world.quadrants]
    looks = [Statement(topic, getattr(world, topic)) for topic in ("shape", "size", "tone")] if places else []
    counted = Statement("count", COUNTS[len(places)])
    statements = [Statement("modality", world.modality), counted, *places, *looks]
    return " ".join(worded(statement, len(places)) for statement in statements)


def worded(statement: Statement, n_lesions: int, wording: int = 0) -> str:
    """Return a wording of a statement; looks of lesions in singular or plural.

    Args:
        wording: its place in `SENTENCES`, where there is a choice.
    """
    look = statement.topic in ("shape", "size", "tone")
    return SENTENCES[statement][int(n_lesions > 1) if look else wording]


def worlds() -> Iterator[World]:
    """Yield everything that can be the case."""
    for modality in MODALITIES:
        yield World(modality, frozenset())
        for n in range(1, len(QUADRANTS) + 1):
            for chosen in itertools.combinations(QUADRANTS, n):
                for look in itertools.product(SHAPES, SIZES, TONES):
                    yield World(modality, frozenset(chosen), *look)


@cache
def _worlds(statement: Statement) -> int:
    """Return the worlds in which a statement is true, a bit each."""
    return sum(1 << number for number, world in enumerate(worlds()) if is_true(statement, world))


@cache
def _all_worlds() -> int:
    return (1 << sum(1 for _ in worlds())) - 1
