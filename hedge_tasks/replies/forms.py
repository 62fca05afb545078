"""Answers that are no sentences: boxes of which one is ticked, tables, fields, and a share for each answer.

All of them are read of `plain` text and give nothing where the text is of another form. What a form says of several
answers alike is no answer, and never falls through to the rules of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

FORM_MARKS = "[✓✗|:="
"""One of these is in every form; a text without any of them need not be looked at."""

_TICKED = re.compile(r"[-*\s]*(?:\[\s*[xX]\s*\]|✓)\s*(?P<of>\S[^\n]*?)\s*\Z")
_TICKED_BEHIND = re.compile(r"[-*\s]*(?P<of>\S[^\n]*?)\s*(?:\[\s*[xX]\s*\]|✓)\s*\Z")
_NOT_TICKED = re.compile(r"[-*\s]*(?:(?:\[\s*\]|✗)\s*(?P<of>\S[^\n]*?)|(?P<with>\S[^\n]*?)\s*(?:\[\s*\]|✗))\s*\Z")
_ITEM_MARK = re.compile(r"[(\[]?(?:\d{1,2}|[A-Za-z])[.):\]]\s+")

_SHARE = re.compile(r"\W*(?P<of>[^:=|\n]{1,60}?)\W*\s*(?:[:=|]|->)\s*(?P<number>\d{1,3}(?:\.\d+)?|\.\d+)\s*%?\W*\Z")
_SHARE_IN_BRACKETS = re.compile(
    r"\s*(?P<of>[^(),;\n]{1,60}?)\s*\((?:[a-z]{1,15}\s*[:=]?\s*)?(?P<number>\d{1,3}(?:\.\d+)?|\.\d+)\s*%?\)\s*(?:[,;]|\Z)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?P<key>[A-Za-z_][\w -]{0,30}?)\s*[:=]\s*(?P<value>\S[^\n]{0,80}?)\s*\Z")
_RULE = re.compile(r"[|:\s-]+\Z")

_WHOLE = 0.03
"""By how much shares may miss one, or a hundred."""

Named = Callable[[str], str | None]
"""The answer that a name is the name of, and nothing besides."""


def ticked(text: str, named: Named) -> set[str]:
    """The answers of a list that are ticked, where every line is one of its items and not all of them are.

    Example:
        >>> ticked("[ ] red\\n[x] blue", lambda name: name if name in ("red", "blue") else None)
        {'blue'}
    """
    lines = text.splitlines()
    if len(lines) < 2:
        return set()
    is_ticked: dict[str, bool] = {}
    for line in lines:
        chosen = _TICKED.match(line) or _TICKED_BEHIND.match(line)
        unticked = None if chosen else _NOT_TICKED.match(line)
        name = chosen["of"] if chosen else (unticked["of"] or unticked["with"]) if unticked else line.strip()
        answer = _name_of(name, named)
        if answer is None or answer in is_ticked:
            return set()
        is_ticked[answer] = chosen is not None
    return {answer for answer, chosen in is_ticked.items() if chosen} if len(is_ticked) > 1 else set()


def _name_of(text: str, named: Named) -> str | None:
    answer = named(text)
    mark = None if answer is not None else _ITEM_MARK.match(text)
    return answer if mark is None else named(text[mark.end() :])


def shares(text: str) -> dict[str, float]:
    """The number of each name, where the whole text consists of names and numbers: "Yes: 12%", a table, brackets.

    Example:
        >>> shares("Yes: 12%\\nNo: 88%"), shares("D (0.64), B (0.36)"), shares("There are 2: a dog and a cat")
        ({'Yes': 12.0, 'No': 88.0}, {'D': 0.64, 'B': 0.36}, {})
    """
    rows = table(text)
    if len(rows) == 2 and len(rows[0]) == len(rows[1]) and all(map(_is_number, rows[1])):
        return {name: float(number.rstrip(" %")) for name, number in zip(*rows, strict=True)}
    lines = [row[0] + ": " + row[1] for row in rows if len(row) == 2] if rows else text.splitlines()
    matches = [_SHARE.match(line) for line in lines]
    if len(matches) > 1 and all(matches):
        return _distinct((match["of"], match["number"]) for match in matches if match is not None)
    at, pairs = 0, []
    while (match := _SHARE_IN_BRACKETS.match(text, at)) is not None:
        pairs.append((match["of"], match["number"]))
        at = match.end()
    return _distinct(pairs) if len(pairs) > 1 and at == len(text) else {}


def _distinct(pairs: Iterable[tuple[str, str]]) -> dict[str, float]:
    every = list(pairs)
    numbers = {name: float(number) for name, number in every}
    return numbers if len(numbers) == len(every) else {}


def _is_number(text: str) -> bool:
    return re.fullmatch(r"(?:\d{1,3}(?:\.\d+)?|\.\d+)\s*%?", text) is not None


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
    scale = 100 if whole > 2 else 1
    best = max(totals, key=lambda answer: totals[answer])
    is_share = abs(whole / scale - 1) <= _WHOLE and totals[best] > whole / 2
    return True, best if is_share else None


def table(text: str) -> list[list[str]]:
    """The cells of a Markdown table, its rule left out; nothing where any line is none of its rows."""
    rows = []
    for line in text.splitlines():
        if "|" not in line:
            return []
        if not _RULE.match(line):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows if len(rows) > 1 else []


def fields(text: str) -> dict[str, Any]:
    """Fields of a table of two columns, or of lines of "key: value", as of an object of JSON; nothing of another text.

    Example:
        >>> fields("finding: effusion\\nstatus: present"), fields("| dog | Yes |\\n| cat | ✗ |")
        ({'finding': 'effusion', 'status': 'present'}, {'dog': 'Yes', 'cat': 'no'})
    """
    rows = table(text)
    pairs: list[tuple[str, str]] = [(row[0], row[1]) for row in rows if len(row) == 2]
    if not rows:
        lines = [_FIELD.match(line) for line in text.splitlines()]
        if len(lines) < 2 or not all(lines):
            return {}
        pairs = [(match["key"], match["value"]) for match in lines if match is not None]
    if len(pairs) < max(2, len(rows)) or len({key for key, _ in pairs}) < len(pairs):
        return {}
    return {key: {"✓": "yes", "✗": "no"}.get(value, value) for key, value in pairs}
