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

# Similarity to a place in the matrix that no text takes. Nothing is ever linked with it.
NO_TEXT = -np.inf


def smallest_linked_cosine(threshold: Threshold) -> Threshold:
    """The smallest computed cosine that counts as at least `threshold`."""
    return threshold - COSINE_TOLERANCE


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """The answers to one question, and at which similarity which of them merge into one cluster.

    The distinct texts are in the order in which Prim's algorithm reaches them, each by the strongest link from any text
    before it. It leaves a cluster only when all of it is reached. So the clusters at a threshold are runs of this
    order, and a new one begins wherever that strongest link is weaker than the threshold. (Gower and Ross 1969: single
    linkage is the maximum spanning tree.)

    Attributes:
        answers: The distinct texts, and where each answer is among them.
        order: Indices of the texts in that order, shape `(u,)`.
        heights: Cosine similarity at which a text merges with those before it, shape `(u - 1,)`, for all but the
            first.
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
        return self.answers.cluster_ids(labels_at(self.order, self.heights, threshold))

    def partitions(self, thresholds: Sequence[float]) -> list[tuple[int, ...]]:
        """Cluster ids at each of many thresholds; a question has few partitions, and each is made once."""
        states = np.searchsorted(np.sort(self.heights), [smallest_linked_cosine(t) for t in thresholds]).tolist()
        threshold_of_state = dict(zip(states, thresholds, strict=True))
        ids = {state: tuple(self.cluster_ids(threshold)) for state, threshold in threshold_of_state.items()}
        return [ids[state] for state in states]


def labels_at(order: IntArray, heights: FloatArray, threshold: float) -> list[int]:
    """Labels of the clusters of the texts (not of the answers) at a threshold; arguments as in `Dendrogram`."""
    labels = np.zeros(len(order), dtype=np.int64)
    labels[order[1:]] = np.cumsum(heights < smallest_linked_cosine(threshold))
    return [int(label) for label in labels]


def merge_orders(similarities: Sequence[FloatArray]) -> list[tuple[IntArray, FloatArray]]:
    """Order and heights of `Dendrogram` for several questions, computed side by side.

    Args:
        similarities: For each question the similarities of its texts, symmetric, shape `(u, u)`, `u >= 1`.

    Returns:
        For each question `(order, heights)`, shapes `(u,)` and `(u - 1,)`.
    """
    sizes = [len(matrix) for matrix in similarities]
    padded = np.full((len(sizes), max(sizes, default=0), max(sizes, default=0)), NO_TEXT)
    for place, matrix in zip(padded, similarities, strict=True):
        place[: len(matrix), : len(matrix)] = matrix
    orders, heights = _prim(padded)
    return [
        (order[:size].copy(), height[: size - 1].copy())
        for order, height, size in zip(orders, heights, sizes, strict=True)
    ]


def _prim(similarities: FloatArray) -> tuple[IntArray, FloatArray]:
    """Prim's algorithm for the maximum spanning tree, one step for all questions at once; shape `(b, u, u)`.

    Places without a text come last: every text is linked more strongly than they are.
    """
    questions, size = similarities.shape[:2]
    question = np.arange(questions)
    order = np.zeros((questions, size), dtype=np.int64)
    heights = np.empty((questions, max(size - 1, 0)))
    reached = np.zeros((questions, size), dtype=bool)
    strongest = np.full((questions, size), NO_TEXT)
    for step in range(1, size):
        last = order[:, step - 1]
        reached[question, last] = True
        np.maximum(strongest, similarities[question, last], out=strongest)
        strongest[reached] = NO_TEXT
        order[:, step] = strongest.argmax(axis=1)
        heights[:, step - 1] = strongest[question, order[:, step]]
    return order, heights
