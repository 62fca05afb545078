r"""Samples drawn by design: of which documents experts were asked, and with what probability.

Units (documents, or images with all their documents) are drawn without replacement, a fixed number in each stratum. All
inclusion probabilities are then known, also those of pairs: with :math:`n_h` of :math:`N_h` units of stratum :math:`h`

.. math::
    \pi_i = \frac{n_h}{N_h}, \qquad
    \pi_{ij} = \pi_i \text{ in one unit}, \quad
    \frac{n_h (n_h - 1)}{N_h (N_h - 1)} \text{ in one stratum}, \quad \pi_i \pi_j \text{ otherwise.}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray, UndefinedStatistic

LEAST = 2
"""Units that a stratum needs: one alone shows no variation."""

POOLED = 2.0
"""Labels that a least variance, which rests on other strata, is worth."""


@dataclass(frozen=True, eq=False)
class Design:
    """A stratified sample without replacement of all documents.

    Attributes:
        strata: stratum of each document, whole numbers from 0 without gaps, shape `(n,)`.
        units: what is drawn together, such as the documents of one image; whole numbers from 0 without gaps, shape
            `(n,)`. A unit is in one stratum.
        drawn: whether a document is in the sample, shape `(n,)`. All of a unit are, or none.

    Raises:
        UndefinedStatistic: a stratum has no unit in the sample.
    """

    strata: IntArray
    units: IntArray
    drawn: BoolArray

    def __post_init__(self) -> None:
        if not len(self.strata) == len(self.units) == len(self.drawn):
            raise ValueError("strata, units and drawn differ in length")
        if not len(self.strata):
            raise UndefinedStatistic("no documents")
        if (self.stratum_of_unit[self.units] != self.strata).any():
            raise ValueError("a unit is in two strata")
        if (self.drawn != self.drawn_units[self.units]).any():
            raise ValueError("a unit is drawn in part")
        if not self.sizes[1].all():
            raise UndefinedStatistic("a stratum has no label")

    @cached_property
    def stratum_of_unit(self) -> IntArray:
        """Shape `(units,)`."""
        of = np.zeros(int(self.units.max()) + 1, dtype=np.int64)
        of[self.units] = self.strata
        return of

    @cached_property
    def drawn_units(self) -> BoolArray:
        """Shape `(units,)`."""
        of = np.zeros(len(self.stratum_of_unit), dtype=bool)
        of[self.units[self.drawn]] = True
        return of

    @cached_property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Units of each stratum, and those drawn, both of shape `(strata,)`."""
        n = int(self.strata.max()) + 1
        there = np.bincount(self.stratum_of_unit, minlength=n)
        return there, np.bincount(self.stratum_of_unit[self.drawn_units], minlength=n)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Inclusion probability of each document, shape `(n,)`."""
        there, drawn = self.sizes
        shares: FloatArray = (drawn / there)[self.strata]
        return shares

    def pair_factor(self, stratum: int) -> float:
        r""":math:`\pi_i \pi_j / \pi_{ij}` of two units of a stratum; 1 where there is no such pair in the sample."""
        there, drawn = (int(sizes[stratum]) for sizes in self.sizes)
        return drawn * (there - 1) / (there * (drawn - 1)) if drawn > 1 else 1.0

    def variance(self, values: FloatArray, least: FloatArray | None = None) -> tuple[float, float]:
        """Variance of the expanded total of `values` by the draw, and its degrees of freedom (Satterthwaite 1946).

        Args:
            values: of the documents; only those drawn count, shape `(n,)`.
            least: least variance of a document's value, for strata in which the few drawn happen to be alike. It rests
                on other strata, too, and counts as `POOLED` labels more in the degrees of freedom.
        """
        there, drawn = self.sizes
        n_units = len(self.stratum_of_unit)
        totals = np.bincount(self.units, np.where(self.drawn, values, 0.0), n_units)
        chosen, of = self.drawn_units, self.stratum_of_unit
        means = np.bincount(of[chosen], totals[chosen], len(there)) / drawn
        squares = np.bincount(of[chosen], (totals - means[of])[chosen] ** 2, len(there))
        spread, known = squares / np.maximum(drawn - 1, 1), np.maximum(drawn - 1, 1).astype(np.float64)
        if least is not None:
            known += POOLED
            spread = np.maximum(spread, np.bincount(self.strata, least, len(there)) / there)
        parts = there**2 * (1 - drawn / there) * spread / drawn
        total = float(parts.sum())
        if total <= 0:
            return 0.0, float(max(1, drawn.sum() - len(drawn)))
        return total, float(total**2 / (parts**2 / known).sum())


def simple_random(drawn: BoolArray) -> Design:
    """A sample of documents of which every one had the same chance."""
    return Design(np.zeros(len(drawn), dtype=np.int64), np.arange(len(drawn)), drawn)


def allocate(sizes: Sequence[int], needs: Sequence[float], n: int, *, floor: float = 0.5) -> list[int]:
    """Number of units to draw in each stratum: in proportion to size x need (Neyman 1934), none below a floor.

    Args:
        sizes: units of each stratum, at least 1.
        needs: standard deviation that a unit's value is expected to have.
        n: units to draw in all.
        floor: share of a proportional draw that every stratum gets at least, and never fewer than `LEAST` units.

    Example:
        >>> allocate([100, 100, 4], [1.0, 3.0, 1.0], 40)
        [10, 28, 2]
    """
    there = np.asarray(sizes, dtype=np.int64)
    n = min(n, int(there.sum()))
    least = np.minimum(there, np.maximum(LEAST, np.floor(floor * n * there / there.sum()))).astype(np.int64)
    if least.sum() > n:
        raise ValueError(f"{n} units are too few for {len(there)} strata")
    wanted = there * np.asarray(needs, dtype=np.float64)
    drawn = least.copy()
    # One at a time where it is missed most: bounds and rounding need no cases of their own.
    while drawn.sum() < n:
        lack = np.where(drawn < there, wanted / (drawn + 0.5), -1.0)
        drawn[int(lack.argmax())] += 1
    return [int(count) for count in drawn]
