"""Sequences in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in consecutive pieces of `size`; the last one may be shorter.

    Example:
        >>> list(chunks("abcde", 2))
        ['ab', 'cd', 'e']
    """
    return (items[start : start + size] for start in range(0, len(items), size))
