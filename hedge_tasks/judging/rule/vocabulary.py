"""The words that the rules know, after casefolding and plural -> singular: `words.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _vocabulary() -> Mapping[str, Any]:
    fields: Mapping[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
    return fields


@cache
def words(*roles: str) -> frozenset[str]:
    """The words of one or several roles.

    Example:
        >>> sorted(words("less"))
        ['below', 'fewer', 'less', 'most', 'smaller', 'under', 'up']
    """
    return frozenset(word for role in roles for word in str(_vocabulary()[role]).split())


@cache
def families() -> tuple[frozenset[str], ...]:
    """Words of which at most one is true of one thing."""
    return tuple(frozenset(line.split()) for line in _vocabulary()["families"])


@cache
def named() -> frozenset[str]:
    """Words that have a rule of their own: they are never cut, and never stand for something else."""
    return frozenset().union(*families()) | words("colors", "qualifiers", "stop")


def mapping(role: str) -> Mapping[str, str]:
    """The meaning of each word or phrase of a role."""
    table: Mapping[str, str] = _vocabulary()[role]
    return table
