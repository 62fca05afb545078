"""Units: what detectors score and somebody labels. A unit is a whole answer or a part of one: a claim, an object.

Numbers of detectors are made of units alone, whatever they are units of: `labelled` makes columns of them, and columns
have a ROC-AUC over all units and one within strata (the answer of a claim, the kind of question of an answer).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
    """An answer, or a part of one: a claim, an object, a story, a verdict. One type for all tables, rows and probes.

    Attributes:
        id: of the unit, such as `<id of the answer>#<number>`.
        label: 1 = hallucinated, 0 = supported, None = it counts for nothing.
        group: what varies together, such as an image; None for a unit that is alone.
        parent: within which units are compared: of a part its answer, of an answer the kind of its question.
        numbers: score by detector, from its evidence; None where it is undefined.
        level: one of `hedge_tasks.detectors.base.LEVELS`, or what a suite calls it.
        text: what is claimed.
        left_out: detector -> why it has no number.
        choice_errors: by detector, what the choice of a threshold adds to the standard error of its ROC-AUC.
    """

    id: str
    label: int | None
    group: str | None = None
    parent: str | None = None
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    level: str = field(default="answer", kw_only=True)
    text: str = field(default="", kw_only=True)
    left_out: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    choice_errors: Mapping[str, float] = field(default_factory=dict, kw_only=True)

    @property
    def reported_label(self) -> int | None:
        """The label as a ROC-AUC counts it."""
        return self.label


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

    def fault(self, unit: str, n: int) -> str | None:
        """Return why the score tells nothing; None where it may.

        Args:
            unit: name of one unit.
            n: labelled units, with the score or without.
        """
        if not n:
            return f"no {unit} has a label"
        if missing := n - len(self.values):
            return f"{missing} of {n} {unit}s have no such score"
        # 0.5 by the definition, and by a server that always gives the same answer: no finding about a detector.
        return f"every {unit} has the same score" if self.both_classes and np.ptp(self.values) == 0 else None

    def auroc(self, **options: Any) -> Number:
        """Return the ROC-AUC over all units; its interval is clustered by group."""
        return estimate_auroc(self.values, self.labels, groups=self.groups, inflation=self.inflation, **options)

    def within(self, *, each: bool = False) -> StratifiedAuroc:
        """Return the ROC-AUC that compares only units of one stratum.

        Args:
            each: whether that of each stratum is wanted, too; strata may be thousands.
        """
        if self.strata is None:
            return StratifiedAuroc.undefined("not every unit has a parent, such as a kind of question")
        data = self.values, self.labels, self.strata
        return stratified_auroc(*data, groups=self.groups, inflation=self.inflation, each=each)

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


def labelled(units: Iterable[Unit], detector: str) -> Labelled:
    """Return the units that have a label and the score of a detector.

    In an order of their own, the same for every detector: which process hands its units in first must not change a
    digit, and comparisons are known to be of the same units. Without an id the score decides.
    """
    rows = [u for u in units if u.reported_label is not None and u.numbers.get(detector) is not None]
    rows.sort(
        key=lambda u: (str(u.group), str(u.parent), u.reported_label, u.id, u.numbers[detector] if not u.id else None)
    )
    strata = tuple(u.parent for u in rows if u.parent is not None)
    return Labelled(
        np.array([u.numbers[detector] for u in rows], dtype=np.float64),
        np.array([u.reported_label for u in rows], dtype=np.int64),
        shared_groups([u.group for u in rows]),
        strata if len(strata) == len(rows) and rows else None,
        tuple(u.id for u in rows),
    )


def detection_auroc(
    units: Sequence[Unit], detector: str, *, within: bool = False, unit: str = "document", **options: Any
) -> Number:
    """Return the ROC-AUC of a detector; undefined, with the reasons, where it tells nothing of the labelled units.

    A pooled one can be nothing but the parent: some kinds of questions are harder and have more diverse answers.

    Args:
        within: whether only units of one parent are compared; then the number is a `StratifiedAuroc`.
        unit: name of one unit.
        options: of `hedge_tasks.statistics.estimate_auroc`.
    """
    counted = [u for u in units if u.reported_label is not None]
    column = labelled(counted, detector)
    if within:
        missing = len(column.values) < len(counted)
        return StratifiedAuroc.undefined(f"some {unit}s have no such score") if missing else column.within(each=True)
    reason = column.fault(unit, len(counted))
    if reason is None:
        extra = max(u.choice_errors.get(detector, 0.0) for u in counted)
        number = column.auroc(extra_stderr=extra, **options)
    else:
        number = Number(None, n=len(counted), n_positive=sum(u.reported_label or 0 for u in counted), reason=reason)
    why = "; ".join(sorted({u.left_out[detector] for u in counted or units if detector in u.left_out}))
    if number.defined:
        return number
    return replace(number, reason=str(number.reason).replace("document", unit) + (f" ({why})" if why else ""))


def columns_of(units: Sequence[Unit], detectors: Iterable[str]) -> tuple[dict[str, Labelled], dict[str, str]]:
    """Return the columns of the detectors that all labelled units have a score of, and why the others have none."""
    counted = [unit for unit in units if unit.reported_label is not None]
    columns, left_out = {}, {}
    for name in detectors:
        column = labelled(counted, name)
        if (fault := column.fault(counted[0].level if counted else "unit", len(counted))) is not None:
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
