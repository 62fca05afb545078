"""Single linkage: from one pass over the similarities of some answers, their clusters at every threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.base import DistinctTexts

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Threshold = TypeVar("Threshold", float, FloatArray)

# Cosines of float32 embeddings are noise below about 2e-7, and the padding of a batch changes them by as much. The
# tolerance lifts ties out of that noise: at a threshold of 1, "Yes" and "yes" are one cluster under an uncased model,
# every time.
COSINE_TOLERANCE = 1e-6


def smallest_linked_cosine(threshold: Threshold) -> Threshold:
    """The smallest computed cosine that counts as at least `threshold`."""
    return threshold - COSINE_TOLERANCE


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """The answers to one question, and at which similarity which of them merge into one cluster.

    The distinct texts are in an order in which the clusters of single linkage at any threshold are runs: a new one
    begins wherever the height between two neighbours is below the threshold.

    Attributes:
        answers: The distinct texts, and where each answer is among them.
        order: Indices of the texts in that order, shape `(u,)`.
        heights: Cosine similarity at which the runs on both sides of a place in that order merge, shape `(u - 1,)`.
    """

    answers: DistinctTexts
    order: IntArray
    heights: FloatArray

    @property
    def thresholds(self) -> FloatArray:
        """The thresholds at which the partition changes, ascending, distinct: the largest at which a merge happens."""
        heights = np.unique(self.heights)
        thresholds = heights + COSINE_TOLERANCE
        # The sum may be rounded up, where it passes a power of two, to a threshold that the merge no longer reaches.
        too_high = smallest_linked_cosine(thresholds) > heights
        return np.where(too_high, np.nextafter(thresholds, -np.inf), thresholds)

    def cluster_ids(self, threshold: float) -> list[int]:
        """Cluster id of each answer at a threshold: 0, 1, ... in order of first appearance.

        Args:
            threshold: Smallest cosine similarity of linked answers; ties within `COSINE_TOLERANCE` are linked.

        Example:
            >>> answers = DistinctTexts(("yes", "no", "yeah"), (0, 1, 2, 0, None))
            >>> tree = Dendrogram(answers, np.array([0, 2, 1]), np.array([0.9, 0.6]))
            >>> tree.cluster_ids(0.95), tree.cluster_ids(0.8), tree.cluster_ids(0.5)
            ([0, 1, 2, 0, 3], [0, 1, 0, 0, 2], [0, 0, 0, 0, 1])
        """
        labels = np.zeros(len(self.order), dtype=np.int64)
        labels[self.order[1:]] = np.cumsum(self.heights < smallest_linked_cosine(threshold))
        return self.answers.cluster_ids(labels.tolist())

    def partitions(self, thresholds: Sequence[float]) -> list[tuple[int, ...]]:
        """Cluster ids at each of many thresholds; a question has few partitions, and each is made once."""
        states = np.searchsorted(np.sort(self.heights), [smallest_linked_cosine(t) for t in thresholds]).tolist()
        threshold_of_state = dict(zip(states, thresholds, strict=True))
        ids = {state: tuple(self.cluster_ids(threshold)) for state, threshold in threshold_of_state.items()}
        return [ids[state] for state in states]


def merge_order(similarities: FloatArray) -> tuple[IntArray, FloatArray]:
    """Order and heights of `Dendrogram`, from the similarities of the texts: symmetric, shape `(u, u)`."""
    u = len(similarities)
    if u < 2:
        return np.arange(u), np.empty(0)
    from scipy.cluster.hierarchy import linkage  # heavy, and what clusters exactly does without

    runs: dict[int, tuple[list[int], list[float]]] = {i: ([i], []) for i in range(u)}
    for number, (first, second, distance, _) in enumerate(linkage(-similarities[np.triu_indices(u, 1)], "single")):
        (order, heights), (next_order, next_heights) = runs.pop(int(first)), runs.pop(int(second))
        runs[u + number] = order + next_order, [*heights, -distance, *next_heights]
    [(order, heights)] = runs.values()
    return np.array(order), np.array(heights)
