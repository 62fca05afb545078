"""Shared words: the baseline that every entailment has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedge_tasks.claims.entailment import FloatArray, SupportQuery, silent_or_entailed
from hedge_tasks.data.words import words


class WordsEntailment:
    """Entailment is the share of the claim's different words that stand in the draw; no contradiction is known."""

    name = "words"
    contradicts = False
    priced = ""

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        return [silent_or_entailed(self._shares(query)) for query in queries]

    def price(self, queries: Sequence[SupportQuery]) -> int:
        return 0

    def check(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {"support": self.name}

    def _shares(self, query: SupportQuery) -> FloatArray:
        draws = [frozenset(words(draw)) for draw in query.draws]
        shares = np.zeros((len(query.claims), len(draws)))
        for row, claim in zip(shares, map(frozenset, map(words, query.claims)), strict=True):
            if claim:
                row[:] = [len(claim & draw) / len(claim) for draw in draws]
        return shares
