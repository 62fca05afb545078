"""Comparing a short label with an answer: options of the question, alternatives of the reference."""

from __future__ import annotations

from dataclasses import dataclass

from hedge_tasks.adjudication.rule.reading import Text
from hedge_tasks.adjudication.rule.vocabulary import STOP


def offered_options(question: Text) -> list[str]:
    """The two words around 'or', when the question offers a choice."""
    words = [word for word in question.words if word not in ("a", "an", "the", "of", "in", "on", "side")]
    for position, word in enumerate(words[1:-1], start=1):
        if word == "or" and words[position - 1] not in STOP and words[position + 1] not in STOP:
            pair = [words[position - 1], words[position + 1]]
            return pair if pair[0] != pair[1] else []
    return []


def reference_alternatives(reference: Text) -> list[set[str]]:
    """The reference's content words; several sets when it says 'a or b'."""
    groups: list[set[str]] = [set()]
    for word in reference.words:
        if word == "or":
            groups.append(set())
        elif word not in STOP:
            groups[-1].add(word)
    return [group for group in groups if group]


def is_one_of_several(wanted: set[str], words: list[str]) -> bool:
    """Is a wanted word next to an 'or': 'similar to bone or fat'?"""
    around = [words[max(at - 1, 0) : at] + words[at + 1 : at + 3] for at, word in enumerate(words) if word == "or"]
    return any(wanted & set(neighbours) for neighbours in around)


@dataclass(frozen=True)
class LabelCase:
    """An answer to a short-label reference, taken apart once for all label rules."""

    wanted: set[str]
    stated: set[str]
    denied: set[str]
    first: list[str]
    length: int
