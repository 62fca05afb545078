"""COCO objects as claims: every object that an answer mentions, supported by the draws that mention its category."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hedge_tasks.claims.decomposition import Passage, Piece, Pieces
from hedge_tasks.claims.entailment import Asked, FloatArray, silent_or_entailed
from hedge_tasks.evaluations.vope.extraction import mentions, tokens
from hedge_tasks.evaluations.vope.vocabulary import coco
from hedge_tasks.replies import spoken_text

_WORD = re.compile(r"\w\w")


class ObjectDecomposition:
    """The first mention of every different object; the claim is its name as the vocabulary has it ("puppy").

    A mention whose words cannot be found in the text as it is written is counted and left out.
    """

    name = "object"

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        return [_objects(passage.text) for passage in passages]

    def settings(self) -> dict[str, Any]:
        return {"decomposition": self.name}


class ObjectEntailment:
    """Entailment is 1 where the draw mentions an object of the claim's category, else 0; no contradiction is known.

    One minus its mean is the RadFlag of `hedge_tasks.evaluations.vope.objects.ObjectRecord`.

    Raises:
        DataError: a claim is no COCO object (choose the unit `object`).
    """

    name = "object"
    contradicts = False
    priced = ""

    def support(self, asked: Sequence[Asked]) -> list[FloatArray]:
        found = []
        for one in asked:
            wanted = [coco().category(claim, "support 'object'") for claim in one.claims]
            said = [{mention.category for mention in mentions(spoken_text(draw))} for draw in one.draws]
            shares = [[float(category in draw) for draw in said] for category in wanted]
            found.append(silent_or_entailed(np.array(shares).reshape(len(wanted), len(said))))
        return found

    def price(self, asked: Sequence[Asked]) -> int:
        return 0

    def check(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {"support": self.name}


def _objects(text: str) -> Pieces:
    found: dict[str, Piece] = {}
    missed: set[str] = set()
    words = list(_places(text))
    for mention in mentions(text):
        if mention.word in found:
            continue
        # A phrase has as many tokens as words; a hyphenated word is one.
        size = 1 if "-" in words[mention.start][0] else mention.word.count(" ") + 1
        places = [place for _, place in words[mention.start : mention.start + size]]
        if None in places or not places:
            missed.add(mention.word)
            continue
        ends = [place for place in places if place is not None]
        found[mention.word] = Piece(mention.word, ends[0][0], ends[-1][1])
    pieces = sorted(found.values(), key=lambda piece: (piece.start, piece.end))
    return Pieces(tuple(pieces), len(missed - found.keys()))


def _places(text: str) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """Every token with its place in the text: the extraction reads it in lower case and without endings."""
    lower, at = text.lower(), 0
    same = len(lower) == len(text)  # of a few letters the lower case is longer
    for token in tokens(text):
        start = lower.find(token, at) if same else -1
        # No word is passed over: "n't" is read as "not", and the next "not" is another one.
        if start < 0 or _WORD.search(lower, at, start):
            yield token, None
            continue
        at = start + len(token)
        yield token, (start, at)
