"""The common part of clustering backends: the interface, and the way from answers to distinct texts and back to ids."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from hedge_tasks.io.progress import progress

Item = TypeVar("Item")
Result = TypeVar("Result")


class ClusteringBackend(Protocol):
    """Groups the answers to a question by meaning. Knows nothing of metrics.

    Cluster ids number the clusters of one answer set 0, 1, ... in order of first appearance. All empty answers of a set
    share one cluster of their own: an empty answer says nothing, so it neither agrees with nor contradicts any other,
    and it is never shown to a model.
    """

    @property
    def name(self) -> str:
        """Short name of the backend, as used in results."""

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself.

        Args:
            answer_sets: The answers to each question, usually baseline, clean and noisy ones together.
            questions: If given, the question of each set is put in front of its answers for the clustering, or behind
                them where it is a `Behind`.

        Returns:
            For each set the cluster id of each answer, in the order of the answers.
        """

    def check(self) -> None:
        """Raise if the backend's model cannot be had, without loading gigabytes of weights.

        Raises:
            ModelUnavailableError: If it can be loaded from none of the places it might be in.
            ConfigError: If it is not a model that the backend can use.
        """

    def settings(self) -> dict[str, Any]:
        """Everything that decides the clustering (model, revision, threshold, rule, ...), fit for JSON."""


@runtime_checkable
class GivesCosines(Protocol):
    """A backend whose model also serves detectors that need cosine similarities."""

    def cosines(self, texts: Sequence[Sequence[str]]) -> list[npt.NDArray[np.float64]]:
        """Cosine similarities of the distinct non-empty texts of each question, shape `(u, u)` each."""


@runtime_checkable
class GivesRelations(Protocol):
    """A backend whose model also serves detectors that need the NLI probabilities of all pairs of answers."""

    @property
    def knows_probabilities(self) -> bool:
        """Whether its model gives probabilities and not only the likeliest relation."""

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Probabilities of contradiction, neutral and entailment for each (premise, hypothesis), shape `(pairs, 3)`."""


class Behind(str):
    """A question that is put behind each answer instead of in front of it."""

    __slots__ = ()


_EMPTY = object()
"""Label of the cluster of the empty answers: none that a backend may use."""


@dataclass(frozen=True)
class DistinctTexts:
    """The distinct non-empty texts of one answer set, so that equal answers cost nothing and can never be separated.

    Attributes:
        texts: The distinct texts to be clustered, in order of first appearance.
        positions: For each answer its index in `texts`; `None` for an empty answer.
    """

    texts: tuple[str, ...]
    positions: tuple[int | None, ...]

    def sorted(self) -> DistinctTexts:
        """Return the same with the texts in sorted order, so that nothing depends on the order of the answers."""
        order = sorted(range(len(self.texts)), key=self.texts.__getitem__)
        new_position = {old: new for new, old in enumerate(order)}
        return DistinctTexts(
            tuple(self.texts[old] for old in order),
            tuple(None if position is None else new_position[position] for position in self.positions),
        )

    def cluster_ids(self, labels: Sequence[Hashable]) -> list[int]:
        """Ids of all answers, given any labels of the clusters of `texts`."""
        return number_by_first_appearance(
            [_EMPTY if position is None else labels[position] for position in self.positions]
        )


def distinct_texts(answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[DistinctTexts]:
    """The texts that a backend has to look at, one entry for each answer set.

    Raises:
        ValueError: If there is not one question for each set, or a set is not a sequence of strings.
    """
    if isinstance(answer_sets, str):
        raise ValueError("answer_sets must be a sequence of answer sets, got one string")
    if isinstance(questions, str):
        raise ValueError("questions must be a sequence of questions, got one string")
    if questions is not None and len(questions) != len(answer_sets):
        raise ValueError(f"there are {len(questions)} questions for {len(answer_sets)} answer sets")
    return [
        _distinct_texts(answer_sets[number], None if questions is None else questions[number], number)
        for number in range(len(answer_sets))
    ]


def _distinct_texts(answers: Sequence[str], question: str | None, number: int) -> DistinctTexts:
    if isinstance(answers, str):
        raise ValueError(f"answer_sets[{number}] must be a sequence of answers, got one string: {answers!r}")
    index: dict[str, int] = {}
    positions: list[int | None] = []
    for answer in answers:
        if not isinstance(answer, str):
            raise ValueError(f"answer_sets[{number}] has an answer that is not a string: {answer!r}")
        text = answer if question is None else _together(question, answer)
        positions.append(index.setdefault(text, len(index)) if answer.strip() else None)
    return DistinctTexts(tuple(index), tuple(positions))


def _together(question: str, answer: str) -> str:
    return f"{answer} {question}" if isinstance(question, Behind) else f"{question} {answer}"


def number_by_first_appearance(labels: Iterable[Hashable]) -> list[int]:
    """Replace labels by 0, 1, ... in order of first appearance.

    Example:
        >>> number_by_first_appearance("baacb")
        [0, 1, 1, 2, 0]
    """
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]


def map_in_batches(
    function: Callable[[list[Item]], Sequence[Result]],
    items: Sequence[Item],
    *,
    batch_size: int,
    key: Callable[[Item], Any],
    description: str,
) -> list[Result]:
    """Apply a model to batches of similar items; the results come back in the order of the items.

    Batches are formed after sorting by `key` (the length, to waste little on padding; then the text, so that the
    batches do not depend on the order of the items), longest first, so that a batch too big for the memory fails at
    once.
    """
    order = sorted(range(len(items)), key=lambda i: key(items[i]), reverse=True)
    results: dict[int, Result] = {}
    with progress(total=len(items), name=description) as bar:
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            results.update(zip(batch, function([items[i] for i in batch]), strict=True))
            bar.update(len(batch))
    return [results[i] for i in range(len(items))]
