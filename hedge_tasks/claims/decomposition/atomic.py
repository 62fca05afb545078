"""Atomic claims by a model on a server; each quotes the words of the text that claim it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from hedge_tasks.claims.asking import ClaimAsker
from hedge_tasks.claims.decomposition import Passage, Piece, Pieces
from hedge_tasks.llm.asker import Query
from hedge_tasks.llm.reading import by_schema, read_object

LONGEST = 20_000
"""Characters of a text that a model is shown; a longer one has no claims."""

MOST = 200
"""Claims of one text; a model that runs on for ever is no reason to fail."""


class AtomicDecomposition(ClaimAsker):
    """Every single statement of a text, in a sentence that can be understood alone, with the words it stands for.

    A claim whose quotation does not stand in the text is counted and left out. A text whose reply cannot be read twice
    has no claims, and a warning counts these.

    Args:
        model, url, ...: see `hedge_tasks.claims.asking.ClaimAsker`.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "atomic"
    prompt_name = "atomic"

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        texts = list(dict.fromkeys(p.text for p in passages if p.text.strip() and len(p.text) <= LONGEST))
        answered = self._answers([self._question(text) for text in texts]) if texts else []
        claims_of = {
            text: result.value for text, result in zip(texts, answered, strict=True) if result.value is not None
        }
        pieces_of = {text: located(text, claims_of.get(text) or []) for text in texts}
        if missing := sum(bool(p.text.strip()) and p.text not in claims_of for p in passages):
            logger.warning("{} texts could not be taken apart by {}: they have no claims", missing, self.model.name)
        return [pieces_of.get(passage.text, Pieces(())) for passage in passages]

    def settings(self) -> dict[str, Any]:
        asking = {f"decomposition_{key}": value for key, value in super().settings().items()}
        return {"decomposition": self.name, **asking}

    def _question(self, text: str) -> Query[list[Mapping[str, str]]]:
        accept = by_schema(self.prompt.reply_schema)
        tokens = self._tokens(128 + len(text))
        return Query(self.prompt, {"text": text}, lambda r: read_object(r.text, accept)["claims"], max_tokens=tokens)


def located(text: str, claims: Sequence[Mapping[str, str]]) -> Pieces:
    """The claims whose quotation (`quote`) stands in the text, in its order.

    White space and case need not be the same. A quotation that stands there several times is taken for the first place
    that no earlier claim with the same quotation has, else for the last.
    """
    pieces: list[Piece] = []
    ends: dict[str, int] = {}
    for claim in claims[:MOST]:
        quoted, spoken = claim["quote"].split(), " ".join(claim["claim"].split())
        key = " ".join(quoted).casefold()
        pattern = re.compile(r"\s+".join(map(re.escape, quoted)), re.IGNORECASE)
        match = pattern.search(text, ends.get(key, 0)) or pattern.search(text)
        if match and quoted and spoken:
            ends[key] = match.end()
            pieces.append(Piece(spoken, *match.span()))
    located_in_order = sorted(pieces, key=lambda piece: (piece.start, piece.end))
    return Pieces(tuple(located_in_order), len(claims[:MOST]) - len(pieces))
