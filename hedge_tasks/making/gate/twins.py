"""Minimal pairs: a text that is right in other words, and one that is wrong by one word (`words.json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from hedge_tasks.making.digests import choose

_WORDS: Mapping[str, Any] = json.loads((resources.files(__package__) / "words.json").read_text("utf-8"))
_OPPOSITE = {word: pair[1 - side] for pair in _WORDS["opposites"] for side, word in reversed([*enumerate(pair)])}
_SAME = dict(_WORDS["same"])
_WORD = re.compile(r"\d+(?:\.\d+)?|[A-Za-z]+")
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_VERB = re.compile(r"\b(is|are|was|were|has|have|can|could|does|do|did|will|would|should)( not)?\b", re.IGNORECASE)
_ANSWER = re.compile(r"\A\s*(yes|no)\b", re.IGNORECASE)


def _turned(text: str, words: Mapping[str, str], most: int) -> str:
    """A text with at most so many of its words turned into those they stand beside, capitals as they were."""

    def word(match: re.Match[str]) -> str:
        nonlocal most
        new = words.get(match[0].casefold()) if most else None
        if new is None:
            return match[0]
        most -= 1
        return new.capitalize() if match[0][0].isupper() else new

    return _WORD.sub(word, text)


def wrong_twin(text: str) -> str | None:
    """A text with one word or number turned into another that excludes it; None where it has no such word.

    An answer by yes or no is turned as a whole: "Yes, it is there" into "No, it is not there".

    Example:
        >>> wrong_twin("A mass in the left lung, 12 mm"), wrong_twin("No, it is not seen."), wrong_twin("a dog")
        ('A mass in the right lung, 12 mm', 'Yes, it is seen.', None)
    """
    turned = _turned(text, _OPPOSITE, 1)
    if turned != text:
        return turned
    if answer := _ANSWER.match(text):
        word = "No" if answer[1].casefold() == "yes" else "Yes"
        return (word if answer[1][0].isupper() else word.lower()) + _negated(text[answer.end() :])
    number = _NUMBER.search(text)
    if number is not None:
        return f"{text[: number.start()]}{float(number[0]) * 2 + 1:g}{text[number.end() :]}"
    negated = _negated(text)
    return None if negated == text else negated


def _negated(text: str) -> str:
    return _VERB.sub(lambda match: match[1] if match[2] else f"{match[1]} not", text, count=1)


def reworded(text: str) -> str:
    """A text that says the same in other words: words of the same meaning, half of the time in a frame; always in one
    where it has no word to replace.

    Example:
        >>> reworded("The drug lowers the pressure.") != "The drug lowers the pressure."
        True
    """
    turned, frames = _turned(text.strip(), _SAME, len(text)), list(_WORDS["frames"])
    plain = [] if turned == text.strip() else ["{0}"] * len(frames)
    return choose([*frames, *plain], text).format(turned)


def edited(text: str) -> str:
    """A text that is wrong by as little as possible: `wrong_twin`, or else its denial."""
    return wrong_twin(text) or f"It is not true that this is so: {text}"
