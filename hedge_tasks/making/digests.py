"""Choices by digests: the same on any machine, and whatever else is made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def text_digest(*parts: object) -> str:
    """SHA-256 of some values as texts, with NUL between, in hexadecimal digits."""
    return hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def digest_number(*parts: object) -> int:
    """Return a number from 0 to 2^32 - 1 out of the digest of some values."""
    return int(text_digest(*parts)[:8], 16)


def choose(choices: Sequence[T], *parts: object) -> T:
    """Return one of some choices, by the digest of some values."""
    return choices[digest_number(*parts) % len(choices)]
