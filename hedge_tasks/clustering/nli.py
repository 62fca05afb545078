"""Clustering by natural language inference (NLI): answers that follow from each other are one cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hedge_tasks.clustering.base import UnionFind, distinct_texts
from hedge_tasks.clustering.models import check_model_options, custom_name, default_device
from hedge_tasks.errors import ConfigError, unknown

DEFAULT_MODEL = "microsoft/deberta-v2-xlarge-mnli"
DTYPES = ("float32", "float16", "bfloat16")

Pair = tuple[str, str]


class Relation(Enum):
    """What a premise says about a hypothesis."""

    CONTRADICTION = "contradiction"
    NEUTRAL = "neutral"
    ENTAILMENT = "entailment"


# (premise, hypothesis) pairs -> their relations, in the same order.
Classifier = Callable[[Sequence[Pair]], list[Relation]]


@dataclass(frozen=True)
class Rule:
    """When two answers are equivalent, given the relations in both directions. Symmetric in the two.

    Attributes:
        equivalent: The unordered pairs of relations that make two answers equivalent.
    """

    equivalent: frozenset[frozenset[Relation]]

    def holds(self, one: Relation, other: Relation) -> bool:
        """Whether two answers with these relations are equivalent."""
        return frozenset((one, other)) in self.equivalent

    def is_open(self, one: Relation) -> bool:
        """Whether, with one direction known, the other one can still make the answers equivalent."""
        return any(one in pair for pair in self.equivalent)


RULES = {
    # No direction is a contradiction, and not both are neutral: at least one entails.
    "relaxed": Rule(
        frozenset({frozenset({Relation.ENTAILMENT}), frozenset({Relation.ENTAILMENT, Relation.NEUTRAL})}),
    ),
    # Both directions entail.
    "strict": Rule(frozenset({frozenset({Relation.ENTAILMENT})})),
}


@dataclass(frozen=True)
class NliClustering:
    """Transitive closure of the equivalences that an NLI model finds between pairs of answers.

    Every pair of distinct answers is classified in both directions. With ``rule="relaxed"``, that of the reference
    implementation, two answers are equivalent when neither direction is a contradiction and not both are neutral; with
    ``rule="strict"``, that of the HEDGE paper's text (Sec. 3.2 (a)), when both directions are entailments. Clusters are
    the connected components.

    Where this differs from the reference: equal answers always share a cluster, whatever the model says of a text and
    itself; so do empty ones, which are never shown to the model; and texts are truncated at the model's own limit
    rather than at 200 characters, so that long answers are not compared by their beginnings only. A direction that
    cannot change the outcome is not computed.

    Args:
        model: NLI model with exactly the labels contradiction, neutral and entailment: hub id, local folder or
            ``package://some.python.package/sub/folder``.
        rule: ``"relaxed"`` or ``"strict"``.
        revision: Revision of the model on the hub.
        device: Torch device; by default the GPU if there is one.
        batch_size: Pairs per forward pass. Does not change the result, unless two labels are equally likely to the last
            digit.
        dtype: Number format of the model: ``"float32"`` (also if ``None``), ``"float16"`` or ``"bfloat16"``.
        classifier: Classifies the pairs in place of ``model``.

    Raises:
        ConfigError: If an option has a value that makes no sense.
    """

    model: str = DEFAULT_MODEL
    rule: str = "relaxed"
    revision: str | None = None
    device: str | None = None
    batch_size: int = 64
    dtype: str | None = None
    classifier: Classifier | None = field(default=None, repr=False)
    name: str = field(default="nli", init=False)

    def __post_init__(self) -> None:
        check_model_options(self.model, self.batch_size)
        if self.rule not in RULES:
            raise unknown("NLI clustering rule", self.rule, RULES)
        if self.dtype is not None and self.dtype not in DTYPES:
            raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see :class:`~hedge_tasks.clustering.ClusteringBackend`."""
        sets = distinct_texts(answer_sets, questions)
        # Sorted pairs: which direction is asked first must not depend on the order of answers or sets.
        pairs = sorted({pair for answers in sets for pair in _pairs(answers.texts)})
        equivalent = equivalent_pairs(pairs, self._classify, RULES[self.rule])
        return [answers.cluster_ids(_components(answers.texts, equivalent)) for answers in sets]

    def check(self) -> None:
        """Raise if the model cannot be had or is no NLI model. Reads its configuration, not its weights."""
        if self.classifier is None:
            from hedge_tasks.clustering.nli_model import read_config

            read_config(self.model, self.revision)

    def settings(self) -> dict[str, Any]:
        """What decides the clustering."""
        source = (
            {"model": custom_name(self.classifier)}
            if self.classifier
            else {"model": self.model, "revision": self.revision, "dtype": self.dtype or "float32"}
        )
        return {"backend": self.name, **source, "rule": self.rule}

    def _classify(self, pairs: Sequence[Pair]) -> list[Relation]:
        if self.classifier is not None:
            return self.classifier(pairs)
        from hedge_tasks.clustering.nli_model import load_nli_model

        model = load_nli_model(self.model, self.revision, default_device(self.device), self.dtype or "float32")
        return model.classify(pairs, batch_size=self.batch_size)


def equivalent_pairs(pairs: Sequence[Pair], classify: Classifier, rule: Rule) -> set[Pair]:
    """The pairs that are equivalent under the rule.

    The second direction is classified only where the first leaves the outcome open, which spares a model almost half
    the work on answers that contradict each other.

    Args:
        pairs: Distinct pairs of distinct texts.
        classify: The classifier.
        rule: The rule of equivalence.
    """
    forward = _checked(classify, pairs)
    open_pairs = [pair for pair in pairs if rule.is_open(forward[pair])]
    backward = _checked(classify, [(b, a) for a, b in open_pairs])
    return {(a, b) for a, b in open_pairs if rule.holds(forward[a, b], backward[b, a])}


def _checked(classify: Classifier, pairs: Sequence[Pair]) -> dict[Pair, Relation]:
    relations = classify(pairs) if pairs else []
    if len(relations) != len(pairs):
        raise ValueError(f"the classifier returned {len(relations)} relations for {len(pairs)} pairs")
    if wrong := next((r for r in relations if not isinstance(r, Relation)), None):
        raise ValueError(f"the classifier returned {wrong!r}, which is no Relation")
    return dict(zip(pairs, relations, strict=True))


def _pairs(texts: Sequence[str]) -> Iterable[Pair]:
    return itertools.combinations(sorted(texts), 2)


def _components(texts: Sequence[str], equivalent: set[Pair]) -> list[int]:
    index = {text: i for i, text in enumerate(texts)}
    sets = UnionFind(len(texts))
    for a, b in _pairs(texts):
        if (a, b) in equivalent:
            sets.union(index[a], index[b])
    return [sets.find(i) for i in range(len(texts))]
