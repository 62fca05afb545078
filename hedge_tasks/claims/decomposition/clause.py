"""Clauses: "No effusion, fracture or mass" is three claims.

Rules, not a parser: what they do not know stays one claim, so that nothing is taken apart wrongly in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hedge_tasks.claims.decomposition import Passage, Piece, Pieces
from hedge_tasks.claims.decomposition.sentence import sentences

# None of these begins with white space: of a long run of it every character would be tried as the beginning.
_BREAK = re.compile(r";\s+|,\s+(?=(?:but|while|whereas|although|however)\b)", re.IGNORECASE)

# "There is no evidence of", "The lungs are without": what the items of a denied list have in common.
_DENIAL = re.compile(
    r"(?P<lead>(?:there (?:is|are|was|were) |(?:shows?|demonstrates?|with) )?"
    r"(?:no|without)(?: (?:definite|acute|clear|obvious|significant))?(?: (?:evidence|signs?|findings?) of)?)\s+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?<=\s)(?:is|are|was|were|has been|have been|can be)\s+\w+(?:\s+\w+)?\s*[.!?]*\Z|[.!?]+\Z", re.IGNORECASE
)
_BETWEEN = re.compile(r",\s*(?:and/or|and|or|nor)?\s+|(?<=\s)(?:and/or|or|nor|and)\s+", re.IGNORECASE)
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|shows?|appears?|seen|which|that|but)\b", re.IGNORECASE)

_LONGEST_ITEM = 6
"""Words of a listed finding; what is longer is hardly one."""


class ClauseDecomposition:
    """Sentences, cut at semicolons and before "but", "while" and their like, and denied lists into their items.

    The claim of an item is the denial with that item ("No fracture"), its span the item alone; the first item's span
    begins with the denial.
    """

    name = "clause"

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        return [Pieces(tuple(_clauses(passage.text))) for passage in passages]

    def settings(self) -> dict[str, Any]:
        return {"decomposition": self.name}


def _clauses(text: str) -> Iterator[Piece]:
    for sentence in sentences(text):
        start = sentence.start
        for mark in [*_BREAK.finditer(text, sentence.start, sentence.end), None]:
            end = _trimmed(text, start, mark.start() if mark else sentence.end)
            if end > start:
                yield from _items(text, start, end)
            start = mark.end() if mark else end


def _trimmed(text: str, start: int, end: int) -> int:
    """The end without the white space before it."""
    return start + len(text[start:end].rstrip())


def _items(text: str, start: int, end: int) -> Iterator[Piece]:
    """The items of a denied list, or the clause itself."""
    lead = _DENIAL.match(text, start, end)
    whole = Piece(" ".join(text[start:end].split()), start, end)
    if lead is None:
        yield whole
        return
    tail = _TAIL.search(text, lead.end(), end)
    until = _trimmed(text, lead.end(), tail.start() if tail else end)
    places = list(_split(text, lead.end(), until))
    if len(places) < 2 or not all(_is_item(text[a:b]) for a, b in places):
        yield whole
        return
    behind = " ".join(tail[0].split()) if tail else ""
    behind = f" {behind}" if behind[:1].isalpha() else behind
    for i, (a, b) in enumerate(places):
        claim = f"{' '.join(lead['lead'].split())} {' '.join(text[a:b].split())}{behind}"
        yield Piece(claim, a if i else start, b)


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for joint in [*_BETWEEN.finditer(text, start, end), None]:
        until = _trimmed(text, start, joint.start() if joint else end)
        if until > start:
            yield start, until
        start = joint.end() if joint else end


def _is_item(text: str) -> bool:
    return 0 < len(text.split()) <= _LONGEST_ITEM and not _VERB.search(text)
