"""The threshold of embedding clustering: scores at every threshold, and the choice of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import ConfigError

if TYPE_CHECKING:
    from hedge_tasks.clustering.dendrogram import Dendrogram
    from hedge_tasks.clustering.embedding import EmbeddingClustering
    from hedge_tasks.detectors.thresholds.choice import Chosen, ThresholdChoice

Gather = Callable[[Sequence[Any]], Sequence[Any]]


def take_choice(backend: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], ThresholdChoice | None]:
    """Separate how the threshold is chosen (`threshold: tuned`, `tuning: {...}`) from the options of a backend.

    Raises:
        ConfigError: the choice is unknown, or this backend has none; names the nearest valid one.
    """
    threshold = options.get("threshold")
    if not isinstance(threshold, str):
        if "tuning" in options:
            raise ConfigError(f"tuning: only beside a threshold that is chosen, got threshold {threshold!r}")
        return dict(options), None
    from hedge_tasks.detectors.thresholds.choice import ThresholdChoice

    choice = ThresholdChoice.from_config(threshold, options.get("tuning"))
    if backend != "embed":
        raise ConfigError(f"clustering {backend!r} needs a number as threshold: only embed chooses one ({threshold})")
    return {key: value for key, value in options.items() if key not in ("threshold", "tuning")}, choice


def cluster_by_choice(
    answer_sets: Sequence[AnswerSet],
    backend: EmbeddingClustering,
    choice: ThresholdChoice,
    *,
    questions: Sequence[str] | None = None,
    alpha: float = 1.0,
    gather: Gather = list,
) -> tuple[list[AnswerSet], Chosen]:
    """Cluster each answer set at the threshold chosen for it.

    Args:
        answer_sets: of this process.
        backend: embeds the answers; its own threshold is not used.
        choice: how the threshold is chosen.
        questions: put in front of the answers, as for `ClusteringBackend.cluster`.
        alpha: weight of the clean-noisy gap in VASE, where that is the target.
        gather: brings the profiles of all processes together, since the choice is made once, on all documents.
    """
    from hedge_tasks.detectors.thresholds.choice import choose, with_errors
    from hedge_tasks.detectors.thresholds.profile import profile_documents

    trees: list[Dendrogram] = backend.dendrograms([a.texts for a in answer_sets], questions)
    profiles = profile_documents(answer_sets, trees, low=choice.low, high=choice.high, alpha=alpha)
    everything = gather(profiles)
    chosen = with_errors(choose(everything, choice), everything, choice)
    clustered = [
        answer_set.with_clusters(tree.cluster_ids(chosen.thresholds[answer_set.id])).with_choice(
            answer_set.id in chosen.held_out, chosen.errors
        )
        for answer_set, tree in zip(answer_sets, trees, strict=True)
    ]
    return clustered, chosen
