"""Sets of words, written as running text."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that are separated by white space.

    Example:
        >>> sorted(word_set("is are was"))
        ['are', 'is', 'was']
    """
    return frozenset(text.split())
