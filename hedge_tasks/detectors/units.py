"""Units: what detectors score and somebody labels. A unit is a whole answer or a part of one: a claim, an object.

Numbers of detectors are made of units alone, whatever they are units of: `labelled` makes columns of them, and columns
have a ROC-AUC over all units and one within strata (the answer of a claim, the kind of question of an answer).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.base import ClaimEvidence
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import (
    Comparison,
    StratifiedAuroc,
    compare_scores,
    compare_within,
    estimate_auroc,
    stratified_auroc,
)

UnitEvidence = ClaimEvidence
"""Units of one answer, as detectors see them."""

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Unit:
    """A part of an answer that is hallucinated or not. `Scores` is the unit that is a whole answer.

    Attributes:
        id: of the unit, such as `<id of the answer>#<number>`.
        level: one of `hedge_tasks.detectors.base.LEVELS`, or what a suite calls it.
        parent: id of the answer, within which units are compared.
        group: what varies together, such as an image; None for a unit that is alone.
        label: 1 = hallucinated, 0 = supported, None = it counts for nothing.
        text: what is claimed.
        numbers: score by detector; None where it is undefined.
    """

    id: str
    level: str
    parent: str
    group: str | None
    label: int | None
    text: str = ""
    numbers: Mapping[str, float | None] = field(default_factory=dict)

    def __getitem__(self, detector: str) -> float | None:
        return self.numbers.get(detector)

    @property
    def reported_label(self) -> int | None:
        """The label as a ROC-AUC counts it."""
        return self.label

    @property
    def stratum(self) -> str:
        """Units with the same one are compared with each other."""
        return self.parent


@dataclass(frozen=True)
class UnitsOfAnswer:
    """The labelled units of one answer: what rows of a table about them are made of.

    Attributes:
        units: with their scores.
        left_out: detector -> why it has no scores.
        unlabelled: why no unit of the whole run has a label; empty where one has.
    """

    units: tuple[Unit, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    unlabelled: str = ""


class _Scored(Protocol):
    """A `Unit` or `Scores`."""

    @property
    def id(self) -> str: ...
    @property
    def group(self) -> str | None: ...
    @property
    def stratum(self) -> str | None: ...
    @property
    def reported_label(self) -> int | None: ...
    def __getitem__(self, detector: str, /) -> float | None: ...


@dataclass(frozen=True)
class Labelled:
    """Units with a label and a score, as columns of one length.

    Attributes:
        values: of one score, shape (n,).
        labels: 0 or 1, shape (n,).
        groups: of the units; None where there is nothing to resample by.
        strata: of the units; None where a unit has none.
        ids: of the units.
        inflation: how many times as large the variance of a ROC-AUC is as the scores show, because they were fitted on
            these units (`hedge_tasks.detectors.probes.crossfit.INFLATION`); 1 of a score that knows none of the labels.
    """

    values: FloatArray
    labels: IntArray
    groups: tuple[Hashable, ...] | None
    strata: tuple[Hashable, ...] | None
    ids: tuple[str, ...] = ()
    inflation: float = 1.0

    @property
    def both_classes(self) -> bool:
        return bool(len(self.labels)) and 0 < self.labels.sum() < len(self.labels)

    @property
    def turned(self) -> Labelled:
        """The columns with the score the other way round."""
        return replace(self, values=-self.values)

    def fault(self, unit: str) -> str | None:
        """Return why the score tells nothing; None where it may.

        Args:
            unit: name of one unit.
        """
        if len(self.values) > 1 and np.ptp(self.values) == 0:
            return f"every labelled {unit} has the same score"
        return None

    def auroc(self) -> Number:
        """Return the ROC-AUC over all units; its interval is clustered by group."""
        return estimate_auroc(self.values, self.labels, groups=self.groups, inflation=self.inflation)

    def within(self) -> StratifiedAuroc:
        """Return the ROC-AUC that compares only units of one stratum."""
        strata = self.strata or (None,) * len(self.values)
        return stratified_auroc(
            self.values, self.labels, strata, groups=self.groups, inflation=self.inflation, each=False
        )

    def fitting_variance(self, *, within: bool) -> float:
        """Return what fitting adds to the variance of the ROC-AUC."""
        if self.inflation == 1:
            return 0.0
        stderr = (self.within() if within else self.auroc()).stderr or 0.0
        return (1 - 1 / self.inflation) * stderr**2

    def only(self, positions: Sequence[int]) -> Labelled:
        """Return the units at some positions."""
        chosen = list(positions)
        groups = None if self.groups is None else shared_groups([self.groups[i] for i in chosen])
        strata = None if self.strata is None else tuple(self.strata[i] for i in chosen)
        ids = tuple(self.ids[i] for i in chosen)
        return Labelled(self.values[chosen], self.labels[chosen], groups, strata, ids, self.inflation)


def labelled(units: Iterable[_Scored], detector: str) -> Labelled:
    """Return the units that have a label and the score of a detector."""
    rows = [u for u in units if u.reported_label is not None and u[detector] is not None]
    strata = tuple(u.stratum for u in rows if u.stratum is not None)
    return Labelled(
        np.array([u[detector] for u in rows], dtype=np.float64),
        np.array([u.reported_label for u in rows], dtype=np.int64),
        shared_groups([u.group for u in rows]),
        strata if len(strata) == len(rows) and rows else None,
        tuple(u.id for u in rows),
    )


def columns_of(units: Sequence[Unit], detectors: Iterable[str]) -> tuple[dict[str, Labelled], dict[str, str]]:
    """Return the columns of the detectors that all labelled units have a score of, and why the others have none."""
    counted = [unit for unit in units if unit.label is not None]
    columns, left_out = {}, {}
    for name in detectors:
        column = labelled(counted, name)
        name_of_unit = counted[0].level if counted else "unit"
        if missing := len(counted) - len(column.values):
            left_out[name] = f"{missing} of {len(counted)} labelled {name_of_unit}s have no such score"
        elif (fault := column.fault(name_of_unit)) is not None:
            left_out[name] = fault
        else:
            columns[name] = column
    return columns, left_out


def compare_columns(a: Labelled, b: Labelled, *, within: bool = False) -> Comparison | None:
    """Return the paired difference in ROC-AUC on the units that both have; None where there are none.

    Args:
        within: whether only units of one stratum are compared.
    """
    if a.ids != b.ids:
        places = {id: i for i, id in enumerate(b.ids)}
        shared = [i for i, id in enumerate(a.ids) if id in places]
        a, b = a.only(shared), b.only([places[a.ids[i]] for i in shared])
    if not len(a.values):
        return None
    extra = math.sqrt(a.fitting_variance(within=within) + b.fitting_variance(within=within))
    if not within:
        return compare_scores(a.values, b.values, a.labels, groups=a.groups, extra_stderr=extra).of(a.ids)
    strata = a.strata or (None,) * len(a.values)
    return compare_within(a.values, b.values, a.labels, strata, groups=a.groups, extra_stderr=extra).of(a.ids)


def shared_groups(groups: Sequence[Hashable]) -> tuple[Hashable, ...] | None:
    """Groups to resample by, where some units share one; else None. A unit without one is alone.

    Example:
        >>> shared_groups(["a", "a", None])
        ('a', 'a', ('alone', 2))
    """
    named = [group for group in groups if group is not None]
    if len(set(named)) == len(named):
        return None
    return tuple(("alone", i) if group is None else group for i, group in enumerate(groups))
