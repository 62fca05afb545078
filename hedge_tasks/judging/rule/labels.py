"""Comparing a short label with an answer: options of the question, alternatives of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedge_tasks.judging.rule.measure import Range
from hedge_tasks.judging.rule.reading import Clause, Text, stem
from hedge_tasks.judging.rule.vocabulary import (
    FRAME,
    KINDS,
    NAMING,
    NEGATIONS,
    ORGANS,
    PICTURED,
    POSITIONS,
    QUALIFIERS,
    STOP,
)


def offered_options(question: Text) -> list[str]:
    """The words around 'or' and those listed before it, when the question offers a choice of two or more."""
    clauses = [[word for word in clause if word not in _BETWEEN] for clause in question.clauses]
    for number, clause in enumerate(clauses):
        for at, word in enumerate(clause[:-1]):
            if word != "or" or clause[at + 1] in STOP:
                continue
            listed = [clause[at + 1]]
            before = clause[:at]
            earlier = clauses[:number][::-1]
            if before:
                listed.append(before[-1])
            # 'axial, coronal, or sagittal': short clauses are members of the list, and the one before them ends in one.
            if len(before) <= 1:
                for previous in earlier:
                    if previous:
                        listed.append(previous[-1])
                    if len(previous) > 1:
                        break
            options = list(dict.fromkeys(listed[::-1]))
            return options if len(options) > 1 and not STOP & set(options) else []
    return []


_BETWEEN = ("a", "an", "the", "of", "in", "on", "side")


def reference_alternatives(reference: Text) -> list[set[str]]:
    """The reference's content words; several sets when it says 'a or b'."""
    groups: list[set[str]] = [set()]
    for word in reference.words:
        if word == "or":
            groups.append(set())
        elif word not in STOP:
            groups[-1].add(word)
    # Words around the thing are left out where there is a thing.
    return [group - FRAME or group for group in groups if group]


def asks_for_one_of_many(question: Text) -> bool:
    """Does the question ask to name something of a kind that a picture shows many of, and single none of them out?

    To 'name one organ in the image' a reference is an example and not the only right answer.
    """
    words = set(question.words)
    return bool(KINDS & words and PICTURED & words) and set(question.content) <= KINDS | NAMING


def is_one_of_several(reference: set[str], words: list[str]) -> bool:
    """Is a wanted word next to an 'or': 'similar to bone or fat'?"""
    around = [words[max(at - 1, 0) : at] + words[at + 1 : at + 3] for at, word in enumerate(words) if word == "or"]
    return any(reference & set(neighbours) for neighbours in around)


def is_list(reference: Text) -> bool:
    """Does the reference name several things: 'basal ganglia, cerebellum and cortex'?"""
    several = [clause for clause in reference.clauses if set(clause) - STOP]
    return len(several) > 1 or "and" in reference.words[1:-1]


def items(text: Text) -> set[str]:
    """The topic of a sentence: content words, a place such as 'upper-left' as one of them."""
    topic: set[str] = set()
    rows, columns = POSITIONS
    for clause in text.clauses:
        words = [word for word in clause if word not in STOP and word not in FRAME and word not in NEGATIONS]
        skip = False
        for word, following in zip(words, [*words[1:], ""][: len(words)], strict=True):
            if skip:
                skip = False
                continue
            ends, goes_on = word in rows | columns, following in rows | columns and following != word
            pair = ends and goes_on and bool({word, following} & rows) and bool({word, following} & columns)
            topic.add("-".join(sorted((word, following))) if pair else word)
            skip = pair
    return topic


def listed_organs(first: Sequence[Clause]) -> set[str]:
    """Organs that a sentence lists beside others: 'the liver, the spleen and the pancreas'."""
    parts: list[set[str]] = []
    for clause in first:
        part: set[str] = set()
        for word in clause:
            if word == "and":
                parts.append(part)
                part = set()
            elif word not in STOP and word not in QUALIFIERS:
                part.add(word)
        parts.append(part)
    alone = [part for part in parts if part and part <= _ORGANS]
    return set().union(*alone) if len(alone) > 1 else set()


_ORGANS = frozenset(map(stem, ORGANS))

Size = tuple[Range, str]
Sizes = tuple[Sequence[Size], Sequence[Size]]
"""Of the reference and of the answer."""


@dataclass(frozen=True)
class LabelCase:
    """An answer to a short-label reference, taken apart once for all label rules.

    Attributes:
        known: whether the head words of both are known to the table of synonyms.
        implied: what the things in the first sentence are kinds of ('glioblastoma' is a 'brain tumor').
        extra: organs that the first sentence lists beside those of the reference.
    """

    wanted: set[str]
    stated: set[str]
    denied: set[str]
    first: list[str]
    length: int
    sizes: Sizes
    one_of_many: bool
    asked: set[str]
    listed: bool
    says_yes_or_no: bool
    known: bool
    implied: set[str]
    extra: set[str]
