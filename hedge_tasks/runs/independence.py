"""How independent the documents of a run are: how many groups they are, and what that makes of their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.groups import count_groups, effective_groups, find_groups, missed_text, rotated_items
from hedge_tasks.statistics.rates import estimate_rate

FEW_GROUPS = 20
"""With fewer effective groups than this no interval is to be relied on (Carter, Schnepel & Steigerwald 2017)."""


@dataclass(frozen=True)
class Independence:
    """Counts of a run's groups.

    Attributes:
        groups: independent groups of documents; a document without one is alone.
        largest: documents of the largest group.
        effective: groups of equal size that are worth as many.
        design_effect: by how much the groups raise the variance of the share of hallucinated answers; None where it
            cannot be told.
        repeated: documents that ask of the same group what another one has asked.
    """

    groups: int
    largest: int
    effective: float
    design_effect: float | None
    repeated: int


def independence_of(answer_sets: Sequence[AnswerSet]) -> Independence:
    """Count the groups of a run's documents, and what they make of the number of documents."""
    groups = _groups_or_alone([a.group for a in answer_sets])
    repeats = Counter((group, _words(a)) for group, a in zip(groups, answer_sets, strict=True) if a.question)
    return Independence(
        groups=len(set(groups)),
        largest=max(Counter(groups).values(), default=0),
        effective=effective_groups(groups),
        design_effect=_design_effect(answer_sets),
        repeated=sum(n - 1 for n in repeats.values()),
    )


def hidden_dependence(answer_sets: Sequence[AnswerSet], grouping: Mapping[str, Any]) -> list[str]:
    """Return signs of dependence between documents that the groups do not cover, as sentences.

    Args:
        grouping: of `Grouping.settings`; empty where a run does not say.
    """
    sentences = [text] if (text := missed_text(grouping)) else []
    rotated = rotated_items([a.id for a in answer_sets], [_words(a) for a in answer_sets])
    groups = [a.group for a in answer_sets]
    n_groups, n_with_rotations = count_groups(groups), find_groups(groups, rotated).n_groups
    if n_with_rotations < n_groups:
        sentences.append(
            f"by their ids the documents are rotations of {n_with_rotations:,} questions (CircularEval), but they "
            f"count as {n_groups:,} groups: intervals are too short; give `group`"
        )
    alone = Counter((_words(a), a.reference) for a in answer_sets if a.group is None and a.question)
    if (n := sum(count for count in alone.values() if count > 1)) and n_with_rotations == n_groups:
        sentences.append(
            f"{n} documents ask in the same words for the same answer as others, and nothing says whether they are "
            "about the same picture; where they are, give `group`, or intervals are too short"
        )
    return sentences


def _design_effect(answer_sets: Sequence[AnswerSet]) -> float | None:
    labelled = [a for a in answer_sets if a.label is not None]
    rate = estimate_rate([a.label or 0 for a in labelled], groups=_groups_or_alone([a.group for a in labelled]))
    if rate.value is None or rate.stderr is None or not 0 < rate.value < 1:
        return None
    return rate.stderr**2 / (rate.value * (1 - rate.value) / rate.n)


def _groups_or_alone(groups: Sequence[str | None]) -> list[tuple[str, str | int]]:
    return [("document", i) if group is None else ("group", group) for i, group in enumerate(groups)]


def _words(answers: AnswerSet) -> str | None:
    """The first line of the question: the lines below are its options, which rotations change."""
    return answers.question.strip().split("\n", 1)[0] if answers.question else None
