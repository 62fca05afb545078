"""From an answer to its claims: one decomposition a file, chosen by name.

Another package adds its own under the entry-point group `hedge_tasks.decompositions`: a class or function that makes
one from options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.claims.base import Claim
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registry


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to decompose.

    Attributes:
        text: of an answer.
        spans: its labelled parts, of a baseline answer that has them. A decomposition must not look at their labels.
    """

    text: str
    spans: tuple[LabelledSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """One claim of a text: what is claimed, and the characters that claim it."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Pieces:
    """The claims of one text.

    Attributes:
        pieces: in the order of their beginning.
        unlocated: how many more were found whose place in the text is not known, and which are therefore left out.
    """

    pieces: tuple[Piece, ...]
    unlocated: int = 0


class Decomposition:
    """Finds the claims of texts.

    Attributes:
        name: in results.
    """

    name: str

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        """The claims of each text, in order. Spans may touch, overlap and leave gaps; none is empty."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Everything that decides the claims, ready for JSON."""
        return {"decomposition": self.name}


DECOMPOSITIONS: Registry[Decomposition] = Registry(
    "decomposition",
    "hedge_tasks.decompositions",
    {
        "sentence": "hedge_tasks.claims.decomposition.sentence:SentenceDecomposition",
        "atomic": "hedge_tasks.claims.decomposition.atomic:AtomicDecomposition",
        "given": "hedge_tasks.claims.decomposition.given:GivenDecomposition",
    },
    also=from_evaluations("decompositions"),
)
"""Every decomposition, our own and those of evaluations and other packages."""


def build_decomposition(name: str, **options: Any) -> Decomposition:
    """A decomposition by name.

    Raises:
        ConfigError: the name or an option is unknown; names the nearest one.
    """
    return DECOMPOSITIONS.build(name, **options)


@dataclass(frozen=True)
class Decomposed:
    """The claims of one baseline answer.

    Attributes:
        claims: in their order.
        covered: share of the answer's characters, white space aside, that lie in a claim; 1 of an empty answer.
        unlocated: see `Pieces`.
    """

    claims: tuple[Claim, ...]
    covered: float
    unlocated: int = 0


def decompose(answer_sets: Sequence[AnswerSet], decomposition: Decomposition) -> list[Decomposed]:
    """The claims of every baseline answer.

    Raises:
        ValueError: a decomposition gave a claim that is no part of its text: a fault of it.
    """
    found_pieces = decomposition.pieces([Passage(a.baseline.text, a.claims) for a in answer_sets])
    return [_decomposed(a, pieces, decomposition.name) for a, pieces in zip(answer_sets, found_pieces, strict=True)]


def _decomposed(answers: AnswerSet, located: Pieces, kind: str) -> Decomposed:
    text = answers.baseline.text
    for piece in located.pieces:
        if not 0 <= piece.start < piece.end <= len(text) or not piece.text.strip():
            raise ValueError(f"{answers.id}: {kind} gave a claim from {piece.start} to {piece.end} of {len(text)}")
    claims = tuple(
        Claim(f"{answers.id}#{i}", answers.id, piece.text, piece.start, piece.end, kind)
        for i, piece in enumerate(located.pieces)
    )
    return Decomposed(claims, _covered(text, located.pieces), located.unlocated)


def _covered(text: str, pieces: Sequence[Piece]) -> float:
    inside = bytearray(len(text))
    for piece in pieces:
        inside[piece.start : piece.end] = b"\1" * (piece.end - piece.start)
    ink = [within for character, within in zip(text, inside, strict=True) if not character.isspace()]
    return sum(ink) / len(ink) if ink else 1.0
