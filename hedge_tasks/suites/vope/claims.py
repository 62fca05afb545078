"""COCO objects as claims: every object that an answer mentions, supported by the draws that mention its category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedge_tasks.claims.decomposition import Passage, Piece, Pieces
from hedge_tasks.claims.entailment import FloatArray, SupportQuery, silent_or_entailed
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.replies import spoken_text
from hedge_tasks.suites.vope.extraction import mentions, places
from hedge_tasks.suites.vope.judge import HALLUCINATED
from hedge_tasks.suites.vope.objects import ObjectRecord
from hedge_tasks.suites.vope.vocabulary import coco


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

    One minus its mean is the RadFlag of `hedge_tasks.suites.vope.objects.ObjectRecord`.

    Raises:
        DataError: a claim is no COCO object (choose the unit `object`).
    """

    name = "object"
    contradicts = False
    priced = ""

    def support(self, asked: Sequence[SupportQuery]) -> list[FloatArray]:
        supports = []
        for query in asked:
            categories = [coco().category(claim, "support 'object'") for claim in query.claims]
            mentioned = [{mention.category for mention in mentions(spoken_text(draw))} for draw in query.draws]
            shares = [[float(category in draw) for draw in mentioned] for category in categories]
            supports.append(silent_or_entailed(np.array(shares).reshape(len(categories), len(mentioned))))
        return supports

    def price(self, asked: Sequence[SupportQuery]) -> int:
        return 0

    def check(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {"support": self.name}


def labelled_objects(answers: AnswerSet, records: Sequence[ObjectRecord]) -> list[LabelledSpan]:
    """Return the objects of a story where they stand in it, each with the label that VOPE's own rows count.

    One whose recheck cannot be read has none. One that cannot be located is left out.
    """
    kinds = {record.word: record.kind for record in records}
    spans = []
    for piece in _objects(spoken_text(answers.baseline.text)).pieces:
        kind = kinds.get(piece.text)
        spans.append(LabelledSpan(piece.start, piece.end, None if kind is None else int(kind in HALLUCINATED)))
    return spans


def _objects(text: str) -> Pieces:
    pieces_by_word: dict[str, Piece] = {}
    missed: set[str] = set()
    all_mentions = mentions(text)
    for mention, place in zip(all_mentions, places(text, all_mentions), strict=True):
        if mention.word in pieces_by_word:
            continue
        if place is None:
            missed.add(mention.word)
        else:
            pieces_by_word[mention.word] = Piece(mention.word, *place)
    pieces = sorted(pieces_by_word.values(), key=lambda piece: (piece.start, piece.end))
    return Pieces(tuple(pieces), len(missed - pieces_by_word.keys()))
