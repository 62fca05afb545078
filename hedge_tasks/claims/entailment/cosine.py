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

    def support(self, asked: Sequence[SupportQuery]) -> list[FloatArray]:
        split = [[_sentences(draw) for draw in one.draws] for one in asked]
        texts = [_distinct(one, sentences) for one, sentences in zip(asked, split, strict=True)]
        matrices = self._embedder.cosines(texts)
        return [
            silent_or_entailed(_best(one, sentences, {text: i for i, text in enumerate(known)}, matrix))
            for one, sentences, known, matrix in zip(asked, split, texts, matrices, strict=True)
        ]

    def price(self, asked: Sequence[SupportQuery]) -> int:
        return len({text for one in asked for text in _distinct(one, [_sentences(draw) for draw in one.draws])})

    def check(self) -> None:
        if (check := getattr(self._embedder, "check", None)) is not None:
            check()

    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = getattr(self._embedder, "settings", dict)()
        return {"support": self.name, **{key: settings[key] for key in ("model", "revision") if key in settings}}


def _sentences(draw: str) -> list[str]:
    return split_sentences(draw) or ([draw] if draw.strip() else [])


def _distinct(asked: SupportQuery, sentences: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys([*asked.claims, *(text for one in sentences for text in one)]))


def _best(
    asked: SupportQuery, sentences: Sequence[Sequence[str]], place: dict[str, int], cosines: FloatArray
) -> FloatArray:
    found = np.zeros((len(asked.claims), len(sentences)))
    rows = [place[claim] for claim in asked.claims]
    for j, texts in enumerate(sentences):
        if texts and rows:
            found[:, j] = cosines[np.ix_(rows, [place[text] for text in texts])].max(axis=1)
    return np.clip(found, 0.0, 1.0)
