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
        strata = np.zeros(int(self.units.max()) + 1, dtype=np.int64)
        strata[self.units] = self.strata
        return strata

    @cached_property
    def drawn_units(self) -> BoolArray:
        """Shape `(units,)`."""
        drawn = np.zeros(len(self.stratum_of_unit), dtype=bool)
        drawn[self.units[self.drawn]] = True
        return drawn

    @cached_property
    def sizes(self) -> tuple[IntArray, IntArray]:
        """Units of each stratum, and those drawn, both of shape `(strata,)`."""
        n = int(self.strata.max()) + 1
        n_units = np.bincount(self.stratum_of_unit, minlength=n)
        return n_units, np.bincount(self.stratum_of_unit[self.drawn_units], minlength=n)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Inclusion probability of each document, shape `(n,)`."""
        sizes, n_drawn = self.sizes
        shares: FloatArray = (n_drawn / sizes)[self.strata]
        return shares

    def pair_factor(self, stratum: int) -> float:
        r""":math:`\pi_i \pi_j / \pi_{ij}` of two units of a stratum; 1 where there is no such pair in the sample."""
        size, n_drawn = (int(sizes[stratum]) for sizes in self.sizes)
        return n_drawn * (size - 1) / (size * (n_drawn - 1)) if n_drawn > 1 else 1.0

    def variance(self, values: FloatArray, least: FloatArray | None = None) -> tuple[float, float]:
        """Variance of the expanded total of `values` by the draw, and its degrees of freedom (Satterthwaite 1946).

        Args:
            values: of the documents; only those drawn count, shape `(n,)`.
            least: least variance of a document's value, for strata in which the few drawn happen to be alike. It rests
                on other strata, too, and counts as `POOLED` labels more in the degrees of freedom.
        """
        sizes, n_drawn = self.sizes
        n_units = len(self.stratum_of_unit)
        totals = np.bincount(self.units, np.where(self.drawn, values, 0.0), n_units)
        chosen, stratum_of_unit = self.drawn_units, self.stratum_of_unit
        means = np.bincount(stratum_of_unit[chosen], totals[chosen], len(sizes)) / n_drawn
        squares = np.bincount(stratum_of_unit[chosen], (totals - means[stratum_of_unit])[chosen] ** 2, len(sizes))
        spread, degrees = squares / np.maximum(n_drawn - 1, 1), np.maximum(n_drawn - 1, 1).astype(np.float64)
        if least is not None:
            degrees += POOLED
            spread = np.maximum(spread, np.bincount(self.strata, least, len(sizes)) / sizes)
        parts = sizes**2 * (1 - n_drawn / sizes) * spread / n_drawn
        total = float(parts.sum())
        if total <= 0:
            return 0.0, float(max(1, n_drawn.sum() - len(n_drawn)))
        return total, float(total**2 / (parts**2 / degrees).sum())


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
    available = np.asarray(sizes, dtype=np.int64)
    n = min(n, int(available.sum()))
    least = np.minimum(available, np.maximum(LEAST, np.floor(floor * n * available / available.sum()))).astype(np.int64)
    if least.sum() > n:
        raise ValueError(f"{n} units are too few for {len(available)} strata")
    needed = available * np.asarray(needs, dtype=np.float64)
    allocated = least.copy()
    # One at a time where it is missed most: bounds and rounding need no cases of their own.
    while allocated.sum() < n:
        lack = np.where(allocated < available, needed / (allocated + 0.5), -1.0)
        allocated[int(lack.argmax())] += 1
    return [int(count) for count in allocated]
