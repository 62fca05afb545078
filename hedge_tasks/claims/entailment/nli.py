"""An NLI model with the draw as premise and the claim as hypothesis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from loguru import logger

from hedge_tasks.claims.base import NEUTRAL
from hedge_tasks.claims.entailment import FloatArray, SupportQuery, support_of
from hedge_tasks.clustering.base import GivesRelations
from hedge_tasks.clustering.nli_model import Reader
from hedge_tasks.data.sentences import split_sentences

Cells = Mapping[tuple[str, str], list[tuple[str, str]] | None]
"""By claim and draw the pairs that the model is asked; None where it cannot be."""


class NliEntailment:
    """Probabilities of an NLI model, asked once for each draw, or for each sentence of a long one.

    A draw that does not fit into the model with the claim is read sentence by sentence: entailment is the largest of
    all sentences, contradiction, too, and neutral the smallest. Nothing is cut off in silence: a claim that does not
    fit with one of its sentences has no support by the draw (NaN), and a warning counts these. Pairs are cached as
    those of the clustering `nli` are.

    Args:
        classifier: Gives the probabilities in place of the model of the clustering `nli`.
        reader: Counts tokens in place of the model's tokenizer.
        options: Of that clustering, such as `model`.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "nli"
    contradicts = True
    priced = "NLI pairs"

    def __init__(
        self, *, classifier: GivesRelations | None = None, reader: Reader | None = None, **options: Any
    ) -> None:
        from hedge_tasks.clustering import build_backend

        backend = classifier or build_backend("nli", **options)
        assert isinstance(backend, GivesRelations)
        self._nli, self._own_reader = backend, reader
        self._counted: dict[str, int] = {}

    @cached_property
    def _reader(self) -> Reader:
        from hedge_tasks.clustering.nli_model import load_reader

        own = self._own_reader
        return own or load_reader(getattr(self._nli, "model", ""), getattr(self._nli, "revision", None))

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        cells = self._cells(queries)
        if too_long := sum(pairs is None for pairs in cells.values()):
            logger.warning("{} claims by a draw are longer than the NLI model takes and have no support", too_long)
        pairs = _pairs(cells)
        rows = np.asarray(self._nli.probabilities(pairs) if pairs else np.empty((0, 3)), dtype=np.float64)
        by_pair = dict(zip(pairs, rows, strict=True))

        def cell(claim: str, draw: str) -> FloatArray | None:
            if (own := cells[claim, draw]) is None:
                return None
            read = np.array([by_pair[pair] for pair in own])
            joined = read.max(axis=0)
            joined[NEUTRAL] = read[:, NEUTRAL].min()
            return joined

        return [support_of(query, cell) for query in queries]

    def price(self, queries: Sequence[SupportQuery]) -> int:
        return len(_pairs(self._cells(queries)))

    def check(self) -> None:
        if (check := getattr(self._nli, "check", None)) is not None:
            check()

    def settings(self) -> dict[str, Any]:
        model: dict[str, Any] = getattr(self._nli, "model_settings", dict)()
        return {"support": self.name, **model}

    def _cells(self, queries: Sequence[SupportQuery]) -> Cells:
        every = dict.fromkeys((claim, draw) for q in queries for claim in q.claims for draw in q.draws)
        return {(claim, draw): self._cell(claim, draw) for claim, draw in every if claim.strip() and draw.strip()}

    def _cell(self, claim: str, draw: str) -> list[tuple[str, str]] | None:
        limit = math.inf if self._reader.limit is None else self._reader.limit - self._reader.special
        room = limit - self._tokens(claim)
        parts = [draw] if self._tokens(draw) <= room else split_sentences(draw)
        return [(part, claim) for part in parts] if all(self._tokens(part) <= room for part in parts) else None

    def _tokens(self, text: str) -> int:
        if text not in self._counted:
            [self._counted[text]] = self._reader.count([text])
        return self._counted[text]


def _pairs(cells: Cells) -> list[tuple[str, str]]:
    """The different pairs of all cells."""
    return list(dict.fromkeys(pair for pairs in cells.values() for pair in pairs or ()))
