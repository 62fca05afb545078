"""Answers that are no sentences: boxes of which one is ticked, and a share for each answer.

All of them are read of `plain` text and give nothing where the text is of another form. What a form says of several
answers alike is no answer, and never falls through to the rules of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Named = Callable[[str], str | None]
"""The answer that a name is the name of, and nothing besides."""

_TICK = re.compile(r"\[\s*[xX]\s*\]|\([xX]\)|✓")
_BOX = re.compile(r"\[\s*[xX]?\s*\]|\([xX ]\)|[✓✗]")
_MARK = re.compile(r"\A[-*\s]*(?:[(\[]?(?:\d{1,2}|[A-Za-z])[.):\]]\s+)?")
_SHARE = re.compile(r"\W*(?P<of>[^:=|\n]{1,60}?)\W*\s*(?:[:=|(]|->)\s*(?P<number>\d{1,3}(?:\.\d+)?|\.\d+)\s*%?\W*\Z")

_WHOLE = 0.03
"""By how much shares may miss one, or a hundred."""


def ticked(text: str, named: Named) -> set[str]:
    """The answers of a list that are ticked, where every line is one of its items and not all of them are.

    Example:
        >>> ticked("[ ] red\\n[x] blue", lambda name: name if name in ("red", "blue") else None)
        {'blue'}
    """
    lines = text.splitlines()
    is_ticked: dict[str, bool] = {}
    for line in lines:
        name = _BOX.sub("", line).strip(" -*")
        answer = named(name) or named(_MARK.sub("", name))
        if answer is None or answer in is_ticked:
            return set()
        is_ticked[answer] = _TICK.search(line) is not None
    return {answer for answer, chosen in is_ticked.items() if chosen} if len(is_ticked) > 1 else set()


def shares(text: str) -> dict[str, float]:
    """The number of each name, where every line, or every part between commas, is a name and a number.

    Example:
        >>> shares("Yes: 12%\\nNo: 88%"), shares("D (0.64), B (0.36)"), shares("There are 2: a dog and a cat")
        ({'Yes': 12.0, 'No': 88.0}, {'D': 0.64, 'B': 0.36}, {})
    """
    lines = text.splitlines()
    matches = [_SHARE.match(line) for line in (lines if len(lines) > 1 else re.split(r"[,;]\s+", text))]
    numbers = {match["of"]: float(match["number"]) for match in matches if match is not None}
    return numbers if len(numbers) == len(matches) > 1 else {}


def likeliest(numbers: Mapping[str, float], named: Named) -> tuple[bool, str | None]:
    """Whether numbers are given to two answers or more, and the answer that has more than half of all.

    None where the numbers are no shares of a whole, or no answer has more than half.

    Example:
        >>> likeliest({"yes": 0.08, "no": 0.92}, lambda name: name), likeliest({"a": 3, "b": 5}, lambda name: name)
        ((True, 'no'), (True, None))
    """
    totals: dict[str, float] = {}
    for name, number in numbers.items():
        answer = named(name)
        if answer is None:
            return False, None
        totals[answer] = totals.get(answer, 0.0) + number
    if len(totals) < 2:
        return False, None
    whole = sum(totals.values())
    best = max(totals, key=lambda answer: totals[answer])
    if set(totals.values()) <= {0, 1}:
        return True, None  # "factual: 0, hallucinated: 1" tells what the digits stand for
    is_share = abs(whole / (100 if whole > 2 else 1) - 1) <= _WHOLE and totals[best] > whole / 2
    return True, best if is_share else None
