"""Cosine similarity of embeddings: similar is not entailed, so this is a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedge_tasks.claims.entailment import FloatArray, SupportQuery, silent_or_entailed
from hedge_tasks.clustering.base import GivesCosines
from hedge_tasks.data.sentences import split_sentences


class CosineEntailment:
    """Entailment is the largest cosine similarity, at least 0, of the claim and a sentence of the draw.

    Args:
        model: Sentence-transformers model, by default that of the clustering `embed`.
        revision: Of the model on the hub.
        embedder: Gives the cosines in place of `model`.
    """

    name = "cosine"
    contradicts = False
    priced = "texts to embed"

    def __init__(
        self, model: str | None = None, *, revision: str | None = None, embedder: GivesCosines | None = None
    ) -> None:
        from hedge_tasks.clustering import build_backend

        options = {"model": model, "revision": revision}
        backend = embedder or build_backend("embed", **{k: v for k, v in options.items() if v is not None})
        assert isinstance(backend, GivesCosines)
        self._embedder = backend

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        split = [[_sentences(draw) for draw in query.draws] for query in queries]
        texts = [_distinct(query, sentences) for query, sentences in zip(queries, split, strict=True)]
        matrices = self._embedder.cosines(texts)
        return [
            silent_or_entailed(_best(query, sentences, {text: i for i, text in enumerate(distinct)}, matrix))
            for query, sentences, distinct, matrix in zip(queries, split, texts, matrices, strict=True)
        ]

    def price(self, queries: Sequence[SupportQuery]) -> int:
        return len({text for query in queries for text in _distinct(query, [_sentences(draw) for draw in query.draws])})

    def check(self) -> None:
        if (check := getattr(self._embedder, "check", None)) is not None:
            check()

    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = getattr(self._embedder, "settings", dict)()
        return {"support": self.name, **{key: settings[key] for key in ("model", "revision") if key in settings}}


def _sentences(draw: str) -> list[str]:
    return split_sentences(draw) or ([draw] if draw.strip() else [])


def _distinct(query: SupportQuery, sentences: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys([*query.claims, *(text for of_draw in sentences for text in of_draw)]))


def _best(
    query: SupportQuery, sentences: Sequence[Sequence[str]], place: dict[str, int], cosines: FloatArray
) -> FloatArray:
    best = np.zeros((len(query.claims), len(sentences)))
    rows = [place[claim] for claim in query.claims]
    for j, texts in enumerate(sentences):
        if texts and rows:
            best[:, j] = cosines[np.ix_(rows, [place[text] for text in texts])].max(axis=1)
    return np.clip(best, 0.0, 1.0)
