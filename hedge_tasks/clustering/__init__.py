"""Grouping answers by meaning: answers in, cluster ids out.

For one question:

    >>> from hedge_tasks.clustering import cluster_by_exact
    >>> cluster_by_exact(["Yes.", "yes", "No"])
    [0, 0, 1]

For many questions at once (a model then sees each text, or pair of texts, only once):

    >>> from hedge_tasks.clustering import build_backend
    >>> build_backend("exact").cluster([["Yes.", "yes", "No"], ["left", "right"]])
    [[0, 0, 1], [0, 1]]

Importing this package is cheap: a backend is imported when it is chosen, and its model libraries when it needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedge_tasks.clustering.base import ClusteringBackend
from hedge_tasks.registry import Registry

BACKENDS: Registry[ClusteringBackend] = Registry(
    "clustering backend",
    "hedge_tasks.clustering",
    {
        "exact": "hedge_tasks.clustering.exact:ExactClustering",
        "embed": "hedge_tasks.clustering.embedding:EmbeddingClustering",
        "nli": "hedge_tasks.clustering.nli:NliClustering",
    },
)
"""Every clustering backend by name, our own and those of other packages."""


def build_backend(name: str, /, **options: Any) -> ClusteringBackend:
    """A clustering backend by name.

    Args:
        name: `"exact"`, `"embed"`, `"nli"` or one that another package brings.
        **options: Those of `ExactClustering`, `EmbeddingClustering`, `NliClustering` or the other package's class.

    Raises:
        ConfigError: If the name or an option is unknown, or an option has a value that makes no sense.

    Example:
        >>> build_backend("embed", threshold=0.8).settings()["threshold"]
        0.8
    """
    return BACKENDS.build(name, **options)


def cluster_by_exact(answers: Sequence[str]) -> list[int]:
    """Cluster the answers to one question by their normalised texts.

    Args:
        answers: The answers.

    Returns:
        The cluster id of each answer: 0, 1, ... in order of first appearance.

    Example:
        >>> cluster_by_exact(["No effusion.", "no effusion", "", "Pneumonia", " "])
        [0, 0, 1, 2, 1]
    """
    return _cluster_one(build_backend("exact"), answers, None)


def cluster_by_embedding(
    answers: Sequence[str], question: str | None = None, *, threshold: float = 0.9, **options: Any
) -> list[int]:
    """Cluster the answers to one question by the similarity of their sentence embeddings.

    Args:
        answers: The answers.
        question: If given, put in front of each answer for the clustering.
        threshold: Smallest cosine similarity of linked answers, in `[-1, 1]`.
        **options: Further options of `EmbeddingClustering`, e.g. `model` or `encoder`.

    Returns:
        The cluster id of each answer: 0, 1, ... in order of first appearance.

    Example:
        >>> toy = lambda texts: [[len(text), 1.0] for text in texts]
        >>> cluster_by_embedding(["aaaa", "bbbbb", "c"], threshold=0.9, encoder=toy)
        [0, 0, 1]
    """
    return _cluster_one(build_backend("embed", threshold=threshold, **options), answers, question)


def cluster_by_nli(
    answers: Sequence[str], question: str | None = None, *, rule: str = "relaxed", **options: Any
) -> list[int]:
    """Cluster the answers to one question by an NLI model's relation of each pair of them.

    Args:
        answers: The answers.
        question: If given, put in front of each answer for the clustering.
        rule: `"relaxed"` (no contradiction, and not neutral both ways) or `"strict"` (entailment both ways).
        **options: Further options of `NliClustering`, e.g. `model` or `classifier`.

    Returns:
        The cluster id of each answer: 0, 1, ... in order of first appearance.

    Example:
        >>> from hedge_tasks.clustering.relations import Relation
        >>> def same_side(pairs):
        ...     return [Relation.ENTAILMENT if a[0] == b[0] else Relation.CONTRADICTION for a, b in pairs]
        >>> cluster_by_nli(["left lung", "right", "left"], classifier=same_side)
        [0, 1, 0]
    """
    return _cluster_one(build_backend("nli", rule=rule, **options), answers, question)


def _cluster_one(backend: ClusteringBackend, answers: Sequence[str], question: str | None) -> list[int]:
    return backend.cluster([answers], None if question is None else [question])[0]
