"""Places of entries, no finer than their differences can be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.leaderboard.comparison import Pairs
from hedge_tasks.statistics.base import BoolArray

LEVEL = 0.05
"""At which a difference counts, after max-T correction for all pairs of the table."""


@dataclass(frozen=True)
class Place:
    """Where an entry stands among `of`: one more than are better than it, with the worst place it may have.

    Attributes:
        rank: 1 is the best; entries of which none is better than the other share it.
        worst: the last place that cannot be ruled out.
        of: how many are ranked.
    """

    rank: int
    worst: int
    of: int

    @property
    def interval(self) -> str:
        """The places that the entry may have, such as "2–4"."""
        return str(self.rank) if self.rank == self.worst else f"{self.rank}–{self.worst}"


def places(values: Sequence[float | None], pairs: Pairs, *, higher_is_better: bool) -> list[Place | None]:
    r"""The places of entries; None for one without a value.

    Every two are tested, paired by document, and the p-values of all pairs corrected by max-T. With
    :math:`B_a` the number of entries significantly better than :math:`a` and :math:`W_a` of those significantly worse,
    its place is between :math:`1 + B_a` and :math:`N - W_a`; all these intervals together hold with 95 % (Mogstad,
    Romano, Shaikh & Wilhelm 2024, Review of Economic Studies 91(1), with a step-down test). The smaller is the rank.
    """
    defined = [i for i, value in enumerate(values) if value is not None]
    better = _is_better(pairs, defined, higher_is_better)
    n = len(defined)
    placed: list[Place | None] = [None] * len(values)
    for place, i in enumerate(defined):
        placed[i] = Place(1 + int(better[:, place].sum()), n - int(better[place].sum()), n)
    return placed


def _is_better(pairs: Pairs, chosen: Sequence[int], higher_is_better: bool) -> BoolArray:
    """Whether the entry of the row is better than that of the column, shape (chosen, chosen)."""
    at = np.ix_(chosen, chosen)
    difference = pairs.difference[at]
    with np.errstate(invalid="ignore"):
        return (pairs.adjusted[at] < LEVEL) & ((difference > 0) if higher_is_better else (difference < 0))
