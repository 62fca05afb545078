"""Clustering by natural language inference (NLI): answers that follow from each other are one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.base import distinct_texts
from hedge_tasks.clustering.linking import (
    ComponentLinker,
    Linker,
    VetoLinker,
    lexical_similarity,
    most_similar_first,
    settle,
)
from hedge_tasks.clustering.model_outputs import RELATIONS, ModelOutputs, PairTable, Source, first_table
from hedge_tasks.clustering.relations import LIKELIEST, RULES, Classifier, Pair, Relation, Rule
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options
from hedge_tasks.llm.loading import check_model_options, custom_name, default_device

if TYPE_CHECKING:
    from hedge_tasks.clustering.nli_source import NliSource

__all__ = ["DEFAULT_MODEL", "DTYPES", "RULES", "Classifier", "NliClustering", "Pair", "Relation", "Rule"]

DEFAULT_MODEL = "microsoft/deberta-v2-xlarge-mnli"
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class NliClustering:
    """Transitive closure of the equivalences that an NLI model finds between pairs of answers.

    With `rule="relaxed"`, that of the reference implementation, two answers are equivalent when neither direction is
    a contradiction and not both are neutral; with `rule="strict"`, that of the HEDGE paper's text (Sec. 3.2 (a)),
    when both directions are entailments. Clusters are the connected components.

    The partition is that of all pairs in both directions, but few of them are classified: each pair of texts once for
    all answer sets, the second direction only if the first leaves the pair open, and no pair that is connected already
    (see `ComponentLinker`). The output for a pair is kept on disk
    (`nli_cache`).

    A chain of equivalences can put answers into one cluster that contradict each other. With `veto=True` it cannot:
    pairs are visited by falling lexical similarity (ties by the texts), and an equivalent pair does not merge the
    clusters it would connect if any answer of the one contradicts any of the other, in either direction
    (`VetoLinker`). This asks every pair inside a cluster in both directions,
    which the components do not need, but no more about two clusters after their first contradiction; on answers of
    several meanings it is the cheaper one.

    Where this differs from the reference: equal answers always share a cluster, whatever the model says of a text and
    itself; so do empty ones, which are never shown to the model; and texts are truncated at the model's own limit
    rather than at 200 characters, so that long answers are not compared by their beginnings only.

    Args:
        model: NLI model with exactly the labels contradiction, neutral and entailment: hub id, local folder or
            `package://some.python.package/sub/folder`.
        rule: `"relaxed"` or `"strict"`.
        veto: Whether a contradiction keeps clusters apart.
        max_characters: The model is shown no more of an answer (with the question, where that is put to it). The
            reference cuts at 200; by default all is shown that the model takes.
        revision: Revision of the model on the hub.
        device: Torch device; by default the GPU if there is one.
        batch_size: Most pairs in a forward pass, by default what the device's memory takes. In float32 it changes no
            result, unless two labels are equally likely to the last digit.
        dtype: Number format of the model: `"float32"`, `"float16"` or `"bfloat16"`. By default float16 on a GPU
            and float32 elsewhere.
        cache: Whether relations are read from and written to the cache on disk.
        classifier: Classifies the pairs in place of `model`; its relations are not cached.
        outputs: Earlier outputs of the model: pairs that are there are not asked. New outputs are added.

    Raises:
        ConfigError: If an option has a value that makes no sense.
    """

    model: str = DEFAULT_MODEL
    rule: str = "relaxed"
    veto: bool = False
    max_characters: int | None = None
    revision: str | None = None
    device: str | None = None
    batch_size: int | None = None
    dtype: str | None = None
    cache: bool = True
    classifier: Classifier | None = field(default=None, repr=False)
    outputs: ModelOutputs | None = field(default=None, repr=False, compare=False)
    name: str = field(default="nli", init=False)

    def __post_init__(self) -> None:
        check_model_options(self.model, 1 if self.batch_size is None else self.batch_size)
        if self.max_characters is not None:
            options.count("max_characters", self.max_characters, at_least=1)
        if self.rule not in RULES:
            raise unknown("NLI clustering rule", self.rule, RULES)
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        options.flag("veto", self.veto)
        options.flag("cache", self.cache)

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see `ClusteringBackend`."""
        # Texts in sorted order: neither ties nor what the model is asked may depend on the order of the answers.
        sets = [answers.sorted() for answers in distinct_texts(answer_sets, questions)]
        linkers = [self._linker(answers.texts) for answers in sets]
        table = None if self.max_characters is not None else first_table(self)
        with self.classifier_in_use() as classify:
            shortened = classify if self.max_characters is None else lambda pairs: classify(self._cut(pairs))
            settle(linkers, shortened, (_relations(table, answers.texts) for answers in sets))
        return [answers.cluster_ids(linker.labels()) for answers, linker in zip(sets, linkers, strict=True)]

    @property
    def knows_probabilities(self) -> bool:
        """Whether there are probabilities: a `classifier` only gives relations."""
        return self.classifier is None

    def probabilities(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        """Probabilities of contradiction, neutral and entailment, shape `(pairs, 3)`; cached like the relations."""
        with self._source() as source:
            return source.probabilities(self._cut(pairs))

    def check(self) -> None:
        """Raise if the model cannot be had or is no NLI model. Reads its configuration, not its weights."""
        if self.classifier is None:
            from hedge_tasks.clustering.nli_model import read_config

            read_config(self.model, self.revision)

    def settings(self) -> dict[str, Any]:
        """Return what decides the clustering."""
        cut = {} if self.max_characters is None else {"max_characters": self.max_characters}
        return {"backend": self.name, **self.model_settings(), "rule": self.rule, "veto": self.veto, **cut}

    def model_settings(self) -> dict[str, Any]:
        """Return what decides the relations."""
        if self.classifier is not None:
            return {"model": custom_name(self.classifier)}
        return {"model": self.model, "revision": self.revision, "dtype": self._dtype()}

    def with_outputs(self, outputs: ModelOutputs) -> NliClustering:
        """See `hedge_tasks.clustering.model_outputs.ReusesOutputs`."""
        return replace(self, outputs=outputs)

    def sources(self) -> Sequence[Source]:
        """See `hedge_tasks.clustering.model_outputs.ReusesOutputs`."""
        return [] if self.classifier else [Source(RELATIONS, self.model, self.revision, self._dtype())]

    @contextmanager
    def classifier_in_use(self) -> Iterator[Classifier]:
        """The classifier: `classifier`, or the model behind its cache."""
        if self.classifier is not None:
            yield self.classifier
            return
        with self._source() as source:
            yield source

    def _cut(self, pairs: Sequence[Pair]) -> list[Pair]:
        return [(a[: self.max_characters], b[: self.max_characters]) for a, b in pairs]

    def _source(self) -> NliSource:
        from hedge_tasks.clustering.nli_source import NliSource

        return NliSource(
            self.model,
            self.revision,
            self.device,
            self._dtype(),
            batch_size=self.batch_size,
            use_disk=self.cache,
            table=first_table(self),
        )

    def _linker(self, texts: Sequence[str]) -> Linker:
        order = most_similar_first(texts, lexical_similarity(texts))
        return (VetoLinker if self.veto else ComponentLinker)(texts, RULES[self.rule], order)

    def _dtype(self) -> str:
        # A run says which it was. Without one the device decides, and to know that takes the import of torch.
        return self.dtype or ("float16" if default_device(self.device).startswith("cuda") else "float32")


def _relations(table: PairTable | None, texts: Sequence[str]) -> dict[Pair, Relation]:
    """The relations of the pairs of some texts that the table knows: the model is not asked for them."""
    if table is None:
        return {}
    values, known = table.matrix(texts)
    rows, columns = known.nonzero()
    relations = map(LIKELIEST.__getitem__, values[rows, columns].argmax(axis=1).tolist())
    return {(texts[i], texts[j]): r for i, j, r in zip(rows.tolist(), columns.tolist(), relations, strict=True)}
