"""An NLI model with the draw as premise and the claim as hypothesis, or the other way round."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from loguru import logger

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL
from hedge_tasks.claims.entailment import FloatArray, SupportQuery
from hedge_tasks.clustering.base import GivesRelations
from hedge_tasks.clustering.nli_model import Reader
from hedge_tasks.errors import ConfigError, unknown

Counts = Callable[[Sequence[str]], list[int]]
"""Texts -> how many tokens of the model each has, special ones left out."""

PREMISES = ("draw", "claim")
"""Either may be the premise of a pair; the other is its hypothesis."""

_FEWEST_TOKENS = 16
"""Of a window: where a claim leaves less room, its support is not known."""

_WORD = re.compile(r"\S+")
_WORDS_OF_A_LONG_ONE = re.compile(r".{1,16}", re.DOTALL)


class NliEntailment:
    """Probabilities of an NLI model, asked once for each window of a draw.

    A draw that does not fit into the model with the claim is cut into overlapping windows of whole words, each
    beginning in the middle of the one before it: entailment is the largest of all windows, contradiction, too, and
    neutral the smallest. Nothing is cut off in silence: a claim that is itself too long for the model has no support
    (NaN), and a warning counts these. Pairs are cached as those of the clustering `nli` are.

    Args:
        model: NLI model, by default that of the clustering `nli`.
        revision: Of the model on the hub.
        device, dtype, batch_size, cache: As of the clustering.
        window: Most tokens of a window; by default what the model takes beside the claim. Smaller ones find what one
            sentence of a long draw says, at a higher price.
        premise: "draw", or "claim" as in SelfCheckGPT: `claim_luq_contrasted` of sentences is then SelfCheck-NLI.
        classifier: Gives the probabilities in place of `model`.
        reader: Counts tokens in place of the model's tokenizer.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "nli"
    contradicts = True
    priced = "NLI pairs"

    def __init__(
        self,
        model: str | None = None,
        *,
        revision: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int | None = None,
        cache: bool = True,
        window: int | None = None,
        premise: str = PREMISES[0],
        classifier: GivesRelations | None = None,
        reader: Reader | None = None,
    ) -> None:
        from hedge_tasks.clustering import build_backend

        if window is not None and (isinstance(window, bool) or not isinstance(window, int) or window < _FEWEST_TOKENS):
            raise ConfigError(f"window: expected at least {_FEWEST_TOKENS} tokens, got {window!r}")
        if premise not in PREMISES:
            raise unknown("premise", premise, PREMISES)
        choices = {"model": model, "revision": revision, "device": device, "dtype": dtype, "batch_size": batch_size}
        options = {key: value for key, value in choices.items() if value is not None}
        backend = classifier or build_backend("nli", cache=cache, **options)
        assert isinstance(backend, GivesRelations)
        self._nli, self._window, self._given_reader, self._premise = backend, window, reader, premise

    @cached_property
    def _reader(self) -> Reader:
        from hedge_tasks.clustering.nli_model import load_reader

        if self._given_reader is not None:
            return self._given_reader
        return load_reader(getattr(self._nli, "model", ""), getattr(self._nli, "revision", None))

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        pairs_by_query, too_long = self._pairs_by_query(queries)
        if too_long:
            logger.warning("{} claims are longer than the NLI model takes and have no support", too_long)
        needed_pairs = dict.fromkeys(pair for query in pairs_by_query for cell in query.values() for pair in cell or ())
        rows = (
            np.asarray(self._nli.probabilities(list(needed_pairs)), dtype=np.float64)
            if needed_pairs
            else np.empty((0, 3))
        )
        place = {pair: i for i, pair in enumerate(needed_pairs)}
        return [_support(query, cells, rows, place) for query, cells in zip(queries, pairs_by_query, strict=True)]

    def price(self, queries: Sequence[SupportQuery]) -> int:
        pairs_by_query, _ = self._pairs_by_query(queries)
        return len({pair for cells in pairs_by_query for cell in cells.values() for pair in cell or ()})

    def check(self) -> None:
        if (check := getattr(self._nli, "check", None)) is not None:
            check()

    def settings(self) -> dict[str, Any]:
        model: dict[str, Any] = getattr(self._nli, "model_settings", dict)()
        window = {} if self._window is None else {"window": self._window}
        premise = {} if self._premise == PREMISES[0] else {"premise": self._premise}
        return {"support": self.name, **model, **window, **premise}

    def _pairs_by_query(
        self, queries: Sequence[SupportQuery]
    ) -> tuple[list[dict[tuple[int, int], list[tuple[str, str]] | None]], int]:
        """By (claim, draw): the pairs that the model is asked, None where it cannot be; and how many claims are too
        long.
        """
        claims = sorted({claim for query in queries for claim in query.claims})
        tokens = dict(zip(claims, self._reader.count(claims), strict=True))
        cut: dict[tuple[str, int], list[str]] = {}
        too_long = {claim for claim in claims if self._room(tokens[claim]) < _FEWEST_TOKENS}
        whole = sorted({draw for query in queries for draw in query.draws if draw.strip()})
        lengths = dict(zip(whole, self._reader.count(whole), strict=True))

        def windows(draw: str, room: float) -> list[str]:
            if lengths[draw] <= room:
                return [draw]
            # In steps, so that claims of about one length share their windows.
            step = int(room) // 8 * 8
            if (draw, step) not in cut:
                cut[draw, step] = list(_windows(draw, step, self._reader.count))
            return cut[draw, step]

        pairs_by_query = []
        for query in queries:
            cells: dict[tuple[int, int], list[tuple[str, str]] | None] = {}
            for i, claim in enumerate(query.claims):
                room = self._room(tokens[claim])
                for j, draw in enumerate(query.draws):
                    if not draw.strip() or not claim.strip():
                        cells[i, j] = []
                    else:
                        cells[i, j] = None if claim in too_long else self._pairs(claim, windows(draw, room))
            pairs_by_query.append(cells)
        return pairs_by_query, len(too_long)

    def _pairs(self, claim: str, windows: Sequence[str]) -> list[tuple[str, str]]:
        return [(text, claim) if self._premise == PREMISES[0] else (claim, text) for text in windows]

    def _room(self, claim_tokens: int) -> float:
        """Tokens that a draw may have beside a claim."""
        limit = math.inf if self._reader.limit is None else self._reader.limit - self._reader.special - claim_tokens
        return min(limit, math.inf if self._window is None else self._window)


def _windows(text: str, room: int, count: Counts) -> Iterator[str]:
    """Overlapping windows of whole words with at most so many tokens each, that hold every word."""
    places = list(_words(text, room, count))
    lengths = count([text[start:end] for start, end in places])
    first = 0
    while True:
        last, n_tokens = first, 0
        while last < len(places) and (n_tokens + lengths[last] <= room or last == first):
            n_tokens += lengths[last]
            last += 1
        # Words may have more tokens together than alone.
        while last > first + 1 and count([text[places[first][0] : places[last - 1][1]]])[0] > room:
            last -= 1
            n_tokens -= lengths[last]
        yield text[places[first][0] : places[last - 1][1]]
        if last == len(places):
            return
        # From the word in the middle of this window on, in tokens; at least one word further.
        middle, passed = first, 0
        while passed + lengths[middle] <= n_tokens // 2:
            passed += lengths[middle]
            middle += 1
        first = max(middle, first + 1)


def _words(text: str, room: int, count: Counts) -> Iterator[tuple[int, int]]:
    """Where the words stand; one that alone fills a window, as of a script without spaces, in parts."""
    places = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    lengths = count([text[start:end] for start, end in places])
    for (start, end), length in zip(places, lengths, strict=True):
        if length <= room // 4:
            yield start, end
        else:
            yield from (match.span() for match in _WORDS_OF_A_LONG_ONE.finditer(text, start, end))


def _support(
    query: SupportQuery,
    cells: dict[tuple[int, int], list[tuple[str, str]] | None],
    rows: FloatArray,
    place: dict[tuple[str, str], int],
) -> FloatArray:
    support = np.zeros((len(query.claims), len(query.draws), 3))
    support[..., NEUTRAL] = 1.0
    for (i, j), pairs in cells.items():
        if pairs is None:
            support[i, j] = np.nan
        elif pairs:
            probabilities = rows[[place[pair] for pair in pairs]]
            for column in (CONTRADICTION, ENTAILMENT):
                support[i, j, column] = probabilities[:, column].max()
            support[i, j, NEUTRAL] = probabilities[:, NEUTRAL].min()
    return support
