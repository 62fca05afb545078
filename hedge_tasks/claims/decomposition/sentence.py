"""Every sentence is a claim."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.claims.decomposition import Decomposition, Passage, Piece, Pieces
from hedge_tasks.data.sentences import sentence_spans


class SentenceDecomposition(Decomposition):
    """The sentences of `hedge_tasks.data.sentences`: headings and list markers are no part of a claim."""

    name = "sentence"

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        return [Pieces(tuple(sentences(passage.text))) for passage in passages]


def sentences(text: str) -> list[Piece]:
    """The sentences of a text, each in one line."""
    return [Piece(" ".join(text[start:end].split()), start, end) for start, end in sentence_spans(text)]
