"""The labelled spans that came with the answers are the claims."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.claims.decomposition import Decomposition, Passage, Piece, Pieces
from hedge_tasks.claims.decomposition.sentence import sentences


class GivenDecomposition(Decomposition):
    """The field `claims` of the answers: the units that people labelled. A text without any is cut into sentences."""

    name = "given"

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        return [Pieces(tuple(_labelled_pieces(passage) or sentences(passage.text))) for passage in passages]


def _labelled_pieces(passage: Passage) -> list[Piece]:
    places = sorted({(span.start, span.end) for span in passage.spans})
    texts = [(" ".join(passage.text[start:end].split()), start, end) for start, end in places]
    return [Piece(*piece) for piece in texts if piece[0]]
