"""Hybrid clustering: entailment and similarity in one graph, in which contradictions keep clusters apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering import nli
from hedge_tasks.clustering.base import DistinctTexts, distinct_texts
from hedge_tasks.clustering.embedding import COSINE_TOLERANCE, EmbeddingClustering
from hedge_tasks.clustering.linking import ComponentLinker, Linker, VetoLinker, most_similar_first
from hedge_tasks.clustering.model_outputs import ModelOutputs, Source
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.relations import RULES, Classifier
from hedge_tasks.llm import encoders
from hedge_tasks.llm.encoders import Encoder
from hedge_tasks.llm.loading import check_model_options

# Pairs are visited by falling cosine. What the padding of a batch does to the last digits must not decide which of two
# pairs comes first, so the order is that of cosines on this grid, and then of the texts.
_COSINE_DIGITS = 4


@dataclass(frozen=True)
class HybridClustering:
    """Clusters of a graph with two kinds of edges: NLI finds the answers equivalent, or their embeddings are similar.

    The proposal of the HEDGE paper's Sec. 6.5 ("fuse entailment and embeddings in a single graph"), which leaves open
    how; this is one way. Neither signal is right alone: to an embedding "left lung" and "right lung" are nearly the
    same, and an NLI model finds no entailment between many a pair of paraphrases.

    Pairs of answers are visited by falling cosine (on a grid of 1e-4; ties by the texts). A pair with a cosine of at
    least `threshold`, or that is equivalent under `rule`, merges the clusters that its answers are in, unless (with
    `veto`) any answer of the one cluster contradicts any of the other, in either direction. Without the veto the
    clusters are the connected components of all edges.

    The NLI model is asked only what can matter: with the veto, nothing about two clusters after their first
    contradiction; without it, nothing about answers that the embeddings already connect.

    Args:
        nli_model, rule, nli_revision, dtype, cache, classifier: `model`, `rule`, `revision` and so
            on of `NliClustering`.
        embedding_model, threshold, embedding_revision, encoder: `model`, `threshold`, `revision` and so on of
            `EmbeddingClustering`. Where contradictions keep opposites apart, a lower
            threshold than for embeddings alone may do: it finds more paraphrases.
        veto: Whether a contradiction keeps clusters apart.
        device: Torch device of both models; by default the GPU if there is one.
        batch_size: Most texts, or pairs, in a forward pass.
        outputs: Earlier outputs of the models, which are not asked for again; new ones are added.

    Raises:
        ConfigError: If an option has a value that makes no sense.
    """

    nli_model: str = nli.DEFAULT_MODEL
    embedding_model: str = encoders.DEFAULT_MODEL
    rule: str = "relaxed"
    threshold: float = 0.9
    veto: bool = True
    nli_revision: str | None = None
    embedding_revision: str | None = None
    device: str | None = None
    batch_size: int = 256
    dtype: str | None = None
    cache: bool = True
    classifier: Classifier | None = field(default=None, repr=False)
    encoder: Encoder | None = field(default=None, repr=False)
    outputs: ModelOutputs | None = field(default=None, repr=False, compare=False)
    name: str = field(default="hybrid", init=False)

    def __post_init__(self) -> None:
        check_model_options(self.nli_model, self.batch_size, key="nli_model")
        check_model_options(self.embedding_model, self.batch_size, key="embedding_model")
        self._nli()
        self._embedding()

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see `ClusteringBackend`."""
        sets = [answers.sorted() for answers in distinct_texts(answer_sets, questions)]
        return self._nli().settle(sets, self._linkers(sets))

    def check(self) -> None:
        """Raise if one of the models cannot be had, or the one for NLI is no NLI model."""
        self._nli().check()
        self._embedding().check()

    def settings(self) -> dict[str, Any]:
        """Return what decides the clustering, under the names of the options."""
        entailed = {f"nli_{key}": value for key, value in self._nli().model_settings().items() if key != "dtype"}
        similar = self._embedding().settings()
        return {
            "backend": self.name,
            **entailed,
            "dtype": self._nli().model_settings().get("dtype"),
            **{f"embedding_{key}": value for key, value in similar.items() if key not in ("backend", "threshold")},
            "rule": self.rule,
            "threshold": self.threshold,
            "veto": self.veto,
        }

    def cosines(self, texts: Sequence[Sequence[str]]) -> list[npt.NDArray[np.float64]]:
        """As `EmbeddingClustering.cosines`."""
        return self._embedding().cosines(texts)

    def with_outputs(self, outputs: ModelOutputs) -> HybridClustering:
        """See `hedge_tasks.clustering.model_outputs.ReusesOutputs`."""
        return replace(self, outputs=outputs)

    def sources(self) -> Sequence[Source]:
        """See `hedge_tasks.clustering.model_outputs.ReusesOutputs`."""
        return [*self._nli().sources(), *self._embedding().sources()]

    @property
    def knows_probabilities(self) -> bool:
        """As `NliClustering.knows_probabilities`."""
        return self._nli().knows_probabilities

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """As `NliClustering.probabilities`."""
        return self._nli().probabilities(pairs)

    def _linkers(self, sets: Sequence[DistinctTexts]) -> list[Linker]:
        cosines = self.cosines([answers.texts for answers in sets])
        return [
            self._linker(answers.texts, cosine)
            if len(answers.texts) > 1
            else ComponentLinker(answers.texts, RULES[self.rule], order=())
            for answers, cosine in zip(sets, cosines, strict=True)
        ]

    def _linker(self, texts: Sequence[str], cosine: npt.NDArray[np.float64]) -> Linker:
        rounded = cosine.round(_COSINE_DIGITS)
        order = most_similar_first(texts, lambda i, j: float(rounded[i, j]))
        similar = [(i, j) for i, j in order if cosine[i, j] >= self.threshold - COSINE_TOLERANCE]
        return (VetoLinker if self.veto else ComponentLinker)(texts, RULES[self.rule], order, similar)

    def _nli(self) -> NliClustering:
        return NliClustering(
            model=self.nli_model,
            rule=self.rule,
            veto=self.veto,
            revision=self.nli_revision,
            device=self.device,
            batch_size=self.batch_size,
            dtype=self.dtype,
            cache=self.cache,
            classifier=self.classifier,
            outputs=self.outputs,
        )

    def _embedding(self) -> EmbeddingClustering:
        return EmbeddingClustering(
            model=self.embedding_model,
            threshold=self.threshold,
            revision=self.embedding_revision,
            device=self.device,
            batch_size=self.batch_size,
            encoder=self.encoder,
            outputs=self.outputs,
        )
