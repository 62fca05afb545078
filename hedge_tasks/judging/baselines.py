"""Baselines that a judge has to beat: guesses that look at no answer, and the rule. Each on the same answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.errors import ConfigError
from hedge_tasks.numbers import Number
from hedge_tasks.statistics.means import estimate_mean

MAJORITY = "majority"


@dataclass(frozen=True)
class Beside:
    """One way to label, on the answers that people labelled.

    Attributes:
        name: Who labels.
        judged: Number of answers that got a label.
        agreement: Share of all answers that got people's label; one that got none counts as wrong, so that all are
            compared on the same answers.
        ahead: How much more of them the judge itself got right than this one; None for the judge itself.
    """

    name: str
    judged: int
    agreement: Number
    ahead: Number | None


def majority(people: Sequence[str]) -> list[str]:
    """The commonest label of all, for every answer.

    The labels that it is taken from are those that it is measured on: the most that such a guess can reach. Of equally
    common ones the first in the alphabet is taken.

    Example:
        >>> majority(["b", "a", "b"])
        ['b', 'b', 'b']
    """
    counts = Counter(people)
    return [min(counts, key=lambda label: (-counts[label], label))] * len(people) if people else []


def stand_beside(
    people: Sequence[str], labels_by_name: Mapping[str, Sequence[str | None]], groups: Sequence[Hashable]
) -> list[Beside]:
    """How often each way to label agrees with people, and how far the first one is ahead of each other.

    Intervals are Student's over groups, such as images: answers about one image are judged alike. Differences are
    paired, answer by answer.

    Args:
        people: Label of each answer.
        labels_by_name: The labels of the judge, then those of what it is compared with; None where there is none.
        groups: Of each answer.

    Raises:
        ConfigError: Lengths differ, or there is nobody.
    """
    if not labels_by_name or any(len(labels) != len(people) for labels in (*labels_by_name.values(), groups)):
        raise ConfigError("labels and groups must be one an answer, of at least one judge")
    right = {
        name: [float(label == human) for label, human in zip(labels, people, strict=True)]
        for name, labels in labels_by_name.items()
    }
    first = next(iter(right))
    rows = []
    for name, labels in labels_by_name.items():
        differences = [a - b for a, b in zip(right[first], right[name], strict=True)]
        ahead = None if name == first else _within(estimate_mean(differences, groups), -1.0)
        judged = sum(label is not None for label in labels)
        rows.append(Beside(name, judged, _within(estimate_mean(right[name], groups), 0.0), ahead))
    return rows


def _within(mean: Number, least: float) -> Number:
    """A share, or a difference of two, whose interval does not go beyond what is possible."""
    if mean.interval is None:
        return mean
    return replace(mean, interval=(max(mean.interval[0], least), min(mean.interval[1], 1.0)))
