"""Atomic claims by a model on a server; each quotes the words of the text that claim it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from hedge_tasks.claims.asking import Asker, json_object
from hedge_tasks.claims.decomposition import Passage, Piece, Pieces
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import parse_json

LONGEST = 20_000
"""Characters of a text that a model is shown; a longer one has no claims."""

MOST = 200
"""Claims of one text; a model that runs on for ever is no reason to fail."""

_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "claims": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"claim": {"type": "string"}, "quote": {"type": "string"}},
                "required": ["claim", "quote"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["claims"],
    "additionalProperties": False,
}


class AtomicDecomposition(Asker):
    """Every single statement of a text, in a sentence that can be understood alone, with the words it stands for.

    A claim whose quotation does not stand in the text is counted and left out. A text whose reply cannot be read twice
    has no claims, and a warning counts these.

    Args:
        model, url, ...: see `hedge_tasks.claims.asking.Asker`.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "atomic"
    prompt_name = "atomic"

    def pieces(self, passages: Sequence[Passage]) -> list[Pieces]:
        texts = list(dict.fromkeys(p.text for p in passages if p.text.strip() and len(p.text) <= LONGEST))
        said = self._read_all(
            texts,
            shown=lambda text: {"text": text},
            schema=lambda text: _SCHEMA,
            tokens=lambda text: 128 + len(text),
            read=lambda text, reply: read_claims(reply),
        )
        found = {text: located(text, said.get(text) or []) for text in texts}
        if missing := sum(bool(p.text.strip()) and p.text not in said for p in passages):
            logger.warning("{} texts could not be taken apart by {}: they have no claims", missing, self.model)
        return [found.get(passage.text, Pieces(())) for passage in passages]

    def settings(self) -> dict[str, Any]:
        asking = {f"decomposition_{key}": value for key, value in super().settings().items()}
        return {"decomposition": self.name, **asking}


def read_claims(reply: str) -> list[list[str]] | None:
    """(claim, quotation) of a reply; None where it is no such list.

    Example:
        >>> read_claims('{"claims": [{"claim": "No mass.", "quote": "no mass"}]}')
        [['No mass.', 'no mass']]
    """
    try:
        said = parse_json(json_object(reply), "reply")
    except DataError:
        return None
    listed = said.get("claims") if isinstance(said, Mapping) else None
    if not isinstance(listed, list):
        return None
    pairs = [(one.get("claim"), one.get("quote")) for one in listed[:MOST] if isinstance(one, Mapping)]
    found = [[claim, quote] for claim, quote in pairs if isinstance(claim, str) and isinstance(quote, str)]
    return found if len(found) == len(listed[:MOST]) else None


def located(text: str, claims: object) -> Pieces:
    """The claims whose quotation stands in the text, in its order.

    White space and case need not be the same. A quotation that stands there several times is taken for the first place
    that no earlier claim with the same quotation has, else for the last.
    """
    found: list[Piece] = []
    unlocated = 0
    taken: dict[str, int] = {}
    for pair in claims if isinstance(claims, list) else []:
        claim, quote = (pair[0], pair[1]) if isinstance(pair, (list, tuple)) and len(pair) == 2 else ("", "")
        words = quote.split() if isinstance(quote, str) else []
        if not words or not isinstance(claim, str) or not claim.strip():
            unlocated += 1
            continue
        key = " ".join(words).casefold()
        pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        match = pattern.search(text, taken.get(key, 0)) or pattern.search(text)
        if match is None:
            unlocated += 1
            continue
        taken[key] = match.end()
        found.append(Piece(" ".join(claim.split()), *match.span()))
    return Pieces(tuple(sorted(found, key=lambda piece: (piece.start, piece.end))), unlocated)
