"""The readers' vocabulary, `words.json`: by role and language, words and phrases with a comma between them."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources

_NOT_SPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
"""Scripts that put no space between words."""


@cache
def _vocabulary() -> dict[str, dict[str, str]]:
    text = resources.files("hedge_tasks.replies").joinpath("words.json").read_text("utf-8")
    return dict(json.loads(text))


@cache
def phrases(*roles: str, language: str | None = None) -> frozenset[str]:
    """Every phrase of the roles, in one language or in all.

    Example:
        >>> "without a doubt" in phrases("neutral")
        True
    """
    tables = [_vocabulary()[role] for role in roles]
    every = [text for table in tables for name, text in table.items() if language in (None, name)]
    return frozenset(phrase.strip() for text in every for phrase in text.split(","))


@cache
def words(role: str, language: str | None = None) -> frozenset[str]:
    """The single words of a role that is a list of words, of one language or of all.

    Example:
        >>> "kein" in words("grammar", "de"), "kein" in words("grammar", "en")
        (True, False)
    """
    by_language = _vocabulary()[role]
    return frozenset(" ".join(by_language.values() if language is None else [by_language[language]]).split())


@cache
def languages() -> tuple[str, ...]:
    """Languages of which there are words of grammar."""
    return tuple(_vocabulary()["grammar"])


@cache
def cues(*roles: str, language: str | None = None) -> re.Pattern[str]:
    """The pattern that finds the phrases of the roles, the longest first, as whole words whatever their case.

    Example:
        >>> cues("deny").search("It is no longer seen")[0]
        'no longer'
    """
    return pattern_of(phrases(*roles, language=language))


def pattern_of(some: frozenset[str]) -> re.Pattern[str]:
    """The pattern that finds any of some phrases; a script without spaces has no ends of words."""
    spaced = frozenset(phrase for phrase in some if not _NOT_SPACED.search(phrase))
    parts = [rf"(?<!\w)(?:{_either(spaced)})(?!\w)"] if spaced else []
    parts += [_either(some - spaced)] if some - spaced else []
    return re.compile("|".join(parts), re.IGNORECASE)


def _either(some: frozenset[str]) -> str:
    """Phrases by their first character, so that few are tried at a place; the longest first."""
    by_first: dict[str, list[str]] = {}
    for phrase in sorted(some, key=lambda phrase: (-len(phrase), phrase)):
        by_first.setdefault(phrase[0], []).append(r"\s+".join(map(re.escape, phrase[1:].split(" "))))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in by_first.items())


@cache
def opposites() -> dict[str, frozenset[str]]:
    """By word those that are not true of a thing where it is."""
    table: dict[str, set[str]] = {}
    for pair in phrases("opposite"):
        first, second = pair.split()
        table.setdefault(first, set()).add(second)
        table.setdefault(second, set()).add(first)
    return {word: frozenset(others) for word, others in table.items()}
