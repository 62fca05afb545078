"""Reading how many an answer says there are."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.judging.rule.reading import NUMBER, Text
from hedge_tasks.judging.rule.vocabulary import STOP, UNITS


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
