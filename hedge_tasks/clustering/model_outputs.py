"""Outputs of models for pairs of texts: found again instead of asked again.

A run keeps them (`hedge_tasks.runs.evidence`), so that a finished run is clustered and scored without a model: backends
look here first (`ReusesOutputs`), and add what they had to ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from loguru import logger

from hedge_tasks.clustering.relations import Pair

Values = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]

COSINES, RELATIONS = "cosines", "relations"

WIDTHS = {COSINES: 1, RELATIONS: 3}
"""Numbers a pair: its cosine; the probabilities of contradiction, neutral and entailment."""

_IDS = 32
_UNKNOWN = np.uint64((1 << 64) - 1)


class Source(NamedTuple):
    """The model that an output comes from.

    Attributes:
        kind: `COSINES` or `RELATIONS`.
        model, revision: of the model, as settings have them.
        dtype: number format of an NLI model.
    """

    kind: str
    model: str
    revision: str | None = None
    dtype: str | None = None


class PairTable:
    """Numbers of ordered pairs of texts, in 8 bytes a pair besides the numbers; exact, for texts are never hashed.

    Args:
        width: numbers a pair.
        symmetric: whether (a, b) is the same as (b, a).
        from_run: whether the numbers were kept with a run, so that a pair that is not there is worth a warning.

    Example:
        >>> table = PairTable(1, symmetric=True)
        >>> table.add([("yes", "yeah")], np.array([[0.75]], dtype=np.float32))
        >>> values, known = table.read([("yeah", "yes"), ("yes", "no")])
        >>> values[known].tolist(), known.tolist()
        ([[0.75]], [True, False])
    """

    def __init__(self, width: int, *, symmetric: bool, from_run: bool = False) -> None:
        self.width, self.symmetric, self.from_run = width, symmetric, from_run
        self._ids: dict[str, int] = {}
        self._keys = np.empty(0, dtype=np.uint64)
        self._values = np.empty((0, width), dtype=np.float32)
        self._new: list[tuple[npt.NDArray[np.uint64], Values]] = []

    def __len__(self) -> int:
        """Number of pairs."""
        self._settle()
        return len(self._keys)

    def read(self, pairs: Sequence[Pair]) -> tuple[Values, BoolArray]:
        """Numbers of the pairs, shape `(p, width)`, NaN where they are not known; and which are, shape `(p,)`."""
        ids = np.array([[self._ids.get(text, -1) for text in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2)
        return self._find(ids[:, 0], ids[:, 1])

    def matrix(self, texts: Sequence[str]) -> tuple[Values, BoolArray]:
        """As `read`, for all pairs of some texts: shapes `(u, u, width)` and `(u, u)`; of a text and itself nothing."""
        u = len(texts)
        ids = np.array([self._ids.get(text, -1) for text in texts], dtype=np.int64)
        values, known = self._find(np.repeat(ids, u), np.tile(ids, u))
        return values.reshape(u, u, self.width), known.reshape(u, u)

    def add(self, pairs: Sequence[Pair], values: npt.ArrayLike) -> None:
        """Add numbers of pairs, shape `(p, width)`; those that are known already stay."""
        ids = np.array([[self._number(text) for text in pair] for pair in pairs], dtype=np.int64).reshape(-1, 2)
        self._add(ids[:, 0], ids[:, 1], np.asarray(values, dtype=np.float32).reshape(len(pairs), self.width))

    def add_matrix(self, texts: Sequence[str], values: npt.ArrayLike, known: BoolArray | None = None) -> None:
        """Add numbers of all pairs of some distinct texts, shape `(u, u)` or `(u, u, width)`.

        Args:
            known: mask of the pairs to add, shape `(u, u)`; by default all.
        """
        u = len(texts)
        to_add = ~np.eye(u, dtype=np.bool_) if known is None else known & ~np.eye(u, dtype=np.bool_)
        if self.symmetric:
            to_add = np.triu(to_add | to_add.T)
        first, second = to_add.nonzero()
        if len(first):
            ids = np.array([self._number(text) for text in texts], dtype=np.int64)
            rows = np.asarray(values, dtype=np.float32).reshape(u, u, self.width)
            self._add(ids[first], ids[second], rows[first, second])

    def warn_missing(self, what: str) -> None:
        """Warn, once, that a model is asked although outputs were kept with the run."""
        if self.from_run:
            self.from_run = False
            logger.warning("The run does not keep all that is needed: {}", what)

    def _number(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids))

    def _key(self, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        if self.symmetric:
            first, second = np.minimum(first, second), np.maximum(first, second)
        keys = (first.astype(np.uint64) << np.uint64(_IDS)) | second.astype(np.uint64)
        return np.where((first < 0) | (second < 0) | (first == second), _UNKNOWN, keys)

    def _add(self, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], values: Values) -> None:
        keys = self._key(first, second)
        is_pair = keys != _UNKNOWN
        if is_pair.any():
            self._new.append((keys[is_pair], values[is_pair]))

    def _find(self, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> tuple[Values, BoolArray]:
        self._settle()
        keys = self._key(first, second)
        places = np.searchsorted(self._keys, keys)
        inside = places < len(self._keys)
        known = np.zeros(len(keys), dtype=np.bool_)
        known[inside] = self._keys[places[inside]] == keys[inside]
        values = np.full((len(keys), self.width), np.nan, dtype=np.float32)
        values[known] = self._values[places[known]]
        return values, known

    def _settle(self) -> None:
        """Put additions into their places: once before the next look, for many additions."""
        if not self._new:
            return
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._new)])
        values = np.concatenate([self._values, *(values for _, values in self._new)])
        self._new = []
        # The first of equal keys is the one that was here first.
        self._keys, first = np.unique(keys, return_index=True)
        self._values = values[first]


class ModelOutputs:
    """Outputs of several models, a table for each.

    Args:
        from_run: whether they were kept with a run.
    """

    def __init__(self, *, from_run: bool = False) -> None:
        self._from_run = from_run
        self._tables: dict[Source, PairTable] = {}

    def __iter__(self) -> Iterator[Source]:
        return iter(self._tables)

    def table(self, source: Source) -> PairTable:
        """The table of a model, an empty one where there is none."""
        if source not in self._tables:
            self._tables[source] = PairTable(
                WIDTHS[source.kind], symmetric=source.kind == COSINES, from_run=self._from_run
            )
        return self._tables[source]


Backend = TypeVar("Backend", bound="ReusesOutputs")


@runtime_checkable
class ReusesOutputs(Protocol):
    """A clustering backend that looks up earlier outputs of its models instead of asking again."""

    @property
    def outputs(self) -> ModelOutputs | None:
        """The earlier outputs; None where there are none to look up."""

    def with_outputs(self: Backend, outputs: ModelOutputs) -> Backend:
        """Return the same backend that looks up these outputs first, and adds to them what it had to ask."""

    def sources(self) -> Sequence[Source]:
        """Return the models whose outputs it looks up; none where functions replace them."""


def first_table(backend: ReusesOutputs) -> PairTable | None:
    """Return the earlier outputs of a backend's first model; None where it looks up none."""
    if backend.outputs is None:
        return None  # what the sources are may take the import of torch
    sources = backend.sources()
    return backend.outputs.table(sources[0]) if sources else None
