"""Every score of every question at every cosine threshold, from one pass over its dendrogram."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.dendrogram import Dendrogram, smallest_linked_cosine
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.distribution import relative_weights

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Scores that are equal in exact arithmetic differ in the last digits between ways of summing them up; rounding keeps
# ties ties, so that the choice of a threshold does not hang on them.
_DIGITS = 12

_AT_A_TIME = 8


@dataclass(frozen=True, eq=False, slots=True)
class DocumentProfile:
    """The scores of one question as step functions of the threshold. Small, picklable, knows nothing of texts.

    Attributes:
        id, label, group: as in the answer set.
        names: of the scores, in the order se, radflag, vase; one that the answers do not allow is missing.
        steps: Shape `(1 + len(names), k)`: the thresholds and below them the scores.
        heights: Cosines at which the distinct answers merge, within the searched range or not, ascending.
    """

    id: str
    label: int | None
    group: str | None
    names: tuple[str, ...]
    steps: FloatArray
    heights: FloatArray

    @property
    def thresholds(self) -> FloatArray:
        """Ascending, shape `(k,)`. The i-th state holds for thresholds in (`thresholds[i - 1]`,
        `thresholds[i]`]; the last one is the upper end of the searched range."""
        return self.steps[0]

    @property
    def scores(self) -> Mapping[str, FloatArray]:
        """Scores by name, shape `(k,)`."""
        return dict(zip(self.names, self.steps[1:], strict=True))

    def at(self, score: str, threshold: float) -> float:
        """Return the score at a threshold within the searched range."""
        return float(self.scores[score][np.searchsorted(self.thresholds, threshold)])


def profile_documents(
    answer_sets: Sequence[AnswerSet],
    trees: Iterable[Dendrogram],
    *,
    low: float,
    high: float,
    alpha: float = 1.0,
) -> list[DocumentProfile]:
    """Score each question at every threshold in `[low, high]`.

    The scores are those of the detectors for the partition at that threshold, rounded to 12
    digits; weights are uniform where a log-probability is missing.

    Args:
        answer_sets: The questions.
        trees: The dendrogram of each (`EmbeddingClustering.dendrograms`), in their order.
        low, high: Range of thresholds.
        alpha: Weight of the clean-noisy gap in VASE.

    Raises:
        ValueError: A log-probability is no number, or all of a condition's are `-inf`.
    """
    profiles: list[DocumentProfile] = []
    remaining = iter(trees)
    # Side by side, but some at a time: the states of all documents would take most of the memory.
    for start in range(0, len(answer_sets), _AT_A_TIME):
        part = answer_sets[start : start + _AT_A_TIME]
        part_trees = list(itertools.islice(remaining, len(part)))
        states = [_states(tree, low, high) for tree in part_trees]
        profiles += _profiles(part, states, [np.sort(tree.heights) for tree in part_trees], alpha)
    return profiles


def _profiles(
    answer_sets: Sequence[AnswerSet],
    states: Sequence[tuple[FloatArray, IntArray]],
    heights: Sequence[FloatArray],
    alpha: float,
) -> list[DocumentProfile]:
    """Profiles of documents side by side, those with as many answers at once."""
    shapes: dict[tuple[int, int], list[int]] = {}
    for i, answer_set in enumerate(answer_sets):
        shapes.setdefault((len(answer_set.clean), len(answer_set.noisy)), []).append(i)
    profiles: dict[int, DocumentProfile] = {}
    for (n_clean, n_noisy), rows in shapes.items():
        lengths = [len(states[i][0]) for i in rows]
        owners = np.repeat(np.arange(len(rows)), lengths)
        labels = np.concatenate([states[i][1] for i in rows])
        clean = np.array([_weights(answer_sets[i], answer_sets[i].clean) for i in rows])[owners]
        noisy = np.array([_weights(answer_sets[i], answer_sets[i].noisy) for i in rows])[owners] if n_noisy else None
        scores = _scores(labels, clean, noisy, n_clean, alpha)
        names = tuple(scores)
        ends = np.cumsum(lengths)
        for i, start, end in zip(rows, ends - lengths, ends, strict=True):
            a = answer_sets[i]
            steps = np.stack([states[i][0], *(scores[name][start:end] for name in names)])
            profiles[i] = DocumentProfile(a.id, a.label, a.group, names, steps, heights[i])
    return [profiles[i] for i in range(len(answer_sets))]


def _states(tree: Dendrogram, low: float, high: float) -> tuple[FloatArray, IntArray]:
    """The largest threshold of each partition in the range, and the cluster of every answer then, shape `(k, t)`."""
    changes = tree.thresholds
    thresholds = np.append(changes[(changes >= low) & (changes < high)], high)
    labels = np.zeros((len(thresholds), len(tree.order) + 1), dtype=np.int64)
    labels[:, -1] = len(tree.order)  # what the empty answers share
    weaker = tree.heights[None, :] < smallest_linked_cosine(thresholds)[:, None]
    labels[:, tree.order[1:]] = np.cumsum(weaker, axis=1)
    places = [len(tree.order) if position is None else position for position in tree.answers.positions]
    return thresholds, labels[:, places]


def _weights(answer_set: AnswerSet, answers: Sequence[Answer]) -> FloatArray:
    logprobs = [answer.mean_logprob for answer in answers if answer.mean_logprob is not None]
    return relative_weights(logprobs if answer_set.has_logprobs else None, len(answers))


def _scores(
    labels: IntArray, clean: FloatArray, noisy: FloatArray | None, n_clean: int, alpha: float
) -> dict[str, FloatArray]:
    """Scores of every state: labels `(r, 1 + n + m)`, weights `(r, n)` and `(r, m)`."""
    s_clean = _distributions(labels[:, 1 : 1 + n_clean], clean, int(labels.max()) + 1)
    scores = {
        "se": _entropies(s_clean),
        "radflag": (n_clean - (labels[:, 1 : 1 + n_clean] == labels[:, :1]).sum(axis=1)) / n_clean,
    }
    if noisy is not None:
        s_noisy = _distributions(labels[:, 1 + n_clean :], noisy, s_clean.shape[1])
        exists = np.zeros(s_clean.shape, dtype=bool)
        np.put_along_axis(exists, labels, True, axis=1)
        logits = np.where(exists, s_clean + alpha * (s_clean - s_noisy), -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores["vase"] = _entropies(weights / weights.sum(axis=1, keepdims=True))
    return {name: np.round(values, _DIGITS) for name, values in scores.items()}


def _distributions(labels: IntArray, weights: FloatArray, n_clusters: int) -> FloatArray:
    """Semantic distribution of each row (HEDGE Eq. 1), shape `(r, n_clusters)`."""
    rows = len(labels)
    cells = labels + n_clusters * np.arange(rows)[:, None]
    masses = np.bincount(cells.ravel(), weights.ravel(), minlength=rows * n_clusters).reshape(rows, n_clusters)
    distributions: FloatArray = masses / masses.sum(axis=1, keepdims=True)
    return distributions


def _entropies(probabilities: FloatArray) -> FloatArray:
    logs = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    entropies: FloatArray = np.maximum(0.0, -(probabilities * logs).sum(axis=1))
    return entropies
