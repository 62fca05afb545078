"""Shared words: the baseline that every entailment has to beat."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.claims.entailment import Entailment, FloatArray, SupportQuery, silent_or_entailed, support_of
from hedge_tasks.data.words import words


class WordsEntailment(Entailment):
    """Entailment is the share of the claim's different words that stand in the draw; no contradiction is known."""

    name = "words"

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        lists = {text: frozenset(words(text)) for query in queries for text in (*query.claims, *query.draws)}

        def cell(claim: str, draw: str) -> FloatArray:
            own = lists[claim]
            return silent_or_entailed(len(own & lists[draw]) / len(own) if own else 0.0)

        return [support_of(query, cell) for query in queries]
