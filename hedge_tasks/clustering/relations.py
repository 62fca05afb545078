"""The relation of two texts by NLI, and when that makes them equivalent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

Pair = tuple[str, str]
"""Premise and hypothesis."""


class Relation(Enum):
    """Relation of a premise to a hypothesis."""

    CONTRADICTION = "contradiction"
    NEUTRAL = "neutral"
    ENTAILMENT = "entailment"


LIKELIEST = (Relation.CONTRADICTION, Relation.NEUTRAL, Relation.ENTAILMENT)
"""The order of their probabilities, everywhere."""

# (premise, hypothesis) pairs -> their relations, in the same order.
Classifier = Callable[[Sequence[Pair]], list[Relation]]

# Relations of pairs, as far as they are known.
Relations = Mapping[Pair, Relation]


@dataclass(frozen=True)
class Rule:
    """When two answers are equivalent, given the relations in both directions. Symmetric in the two.

    Attributes:
        equivalent: The unordered pairs of relations that make two answers equivalent.
    """

    equivalent: frozenset[frozenset[Relation]]

    def holds(self, forward: Relation, backward: Relation) -> bool:
        """Whether two answers with these relations are equivalent."""
        return frozenset((forward, backward)) in self.equivalent

    def is_open(self, relation: Relation) -> bool:
        """Whether, with one direction known, the other one can still make the answers equivalent."""
        return any(relation in pair for pair in self.equivalent)

    def verdict(self, forward: Relation | None, backward: Relation | None) -> bool | None:
        """Whether two answers are equivalent; `None` as long as a direction that matters is unknown (`None`)."""
        if forward is not None and backward is not None:
            return self.holds(forward, backward)
        known = forward if forward is not None else backward
        return None if known is None or self.is_open(known) else False


RULES = {
    # No direction is a contradiction, and not both are neutral: at least one entails.
    "relaxed": Rule(
        frozenset({frozenset({Relation.ENTAILMENT}), frozenset({Relation.ENTAILMENT, Relation.NEUTRAL})}),
    ),
    # Both directions entail.
    "strict": Rule(frozenset({frozenset({Relation.ENTAILMENT})})),
}
