"""Sets of words, written as running text, and the order of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that are separated by white space.

    Example:
        >>> sorted(word_set("is are was"))
        ['are', 'is', 'was']
    """
    return frozenset(text.split())


def _places(words: Sequence[str]) -> dict[str, int]:
    """Where each word stands that is there once."""
    counts = Counter(words)
    return {word: at for at, word in enumerate(words) if counts[word] == 1}


def turned(question: Sequence[str], clause: Sequence[str], topic: Collection[str]) -> bool:
    """Whether two things that a question names on either side of one of its words have changed sides in a clause.

    Args:
        question: its words in order.
        clause: the same of what says it back.
        topic: the words that name things.

    Example:
        >>> asked = "is the tube above the carina".split()
        >>> turned(asked, "the carina is above the tube".split(), {"tube", "carina"})
        True
    """
    before, after = map(_places, (question, clause))
    both = before.keys() & after.keys()
    things = both & set(topic)
    return any(
        any(before[a] < before[word] and after[a] > after[word] for a in things)
        and any(before[b] > before[word] and after[b] < after[word] for b in things)
        for word in both
    )
