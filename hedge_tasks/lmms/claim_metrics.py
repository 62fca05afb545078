"""Rows about claims: how well a detector finds the hallucinated claims of long answers, and the best blind baseline.

They are of all claims with a label, over all answers or within each; the same in every filter, for no clustering plays
a role in them. The numbers, standard errors and intervals are those of `hedge claims`, clustered by image.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedge_tasks.claims.base import ClaimNumbers
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.measures.claim_numbers import (
    TEXT,
    FloatArray,
    Labelled,
    blind_columns,
    fault_of,
    pooled,
    together,
    within,
)
from hedge_tasks.measures.measure import Measure, Record, by_name
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import StratifiedAuroc

_PREFIX = "claim_"

_NO_CLAIMS = "the task does not say how claims are found: hedge.claims, such as {unit: sentence, support: nli}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimAuroc(Measure):
    """ROC-AUC of a detector of claims against the claims' labels.

    Attributes:
        detector: its name.
        inside: whether only claims of one answer are compared.
    """

    detector: str
    inside: bool = False
    unit: str = "claim"

    @property
    def detectors(self) -> tuple[str, ...]:
        """What has to be scored for this row."""
        return (self.detector,)

    @property
    def claim_detectors(self) -> tuple[str, ...]:
        """What has to be scored of claims for this row."""
        return (self.detector,)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        numbers = scores.claims
        if numbers is None:
            return {"group": "", "labels": [], "scores": {}, "left_out": {}, "unlabelled": _NO_CLAIMS}
        names = self.claim_detectors
        told = {name: [_written(v) for v in numbers.scores[name]] for name in names if name in numbers.scores}
        left_out = {name: numbers.left_out[name] for name in names if name in numbers.left_out}
        about = {"group": numbers.group, "labels": list(numbers.labels), "unlabelled": numbers.unlabelled}
        return {**about, "scores": told, "left_out": left_out}

    def estimate(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        number = self._measure(records)
        if isinstance(number, str):
            return Number.undefined(number, unit=self.unit)
        reason = number.reason if number.defined else _of_claims(number.reason)
        return replace(number, unit=self.unit, reason=reason)

    def _measure(self, records: Sequence[Record]) -> Number | StratifiedAuroc | str:
        """The number, or why there is none."""
        numbers = [_numbers(record) for record in records]
        data, columns = together(numbers)
        if not len(data.labels):
            return next((one.unlabelled for one in numbers if one.unlabelled), "no claim has a label")
        return self._of(columns, data, {name: why for one in numbers for name, why in one.left_out.items()})

    def _of(
        self, columns: Mapping[str, FloatArray], data: Labelled, left_out: Mapping[str, str]
    ) -> Number | StratifiedAuroc | str:
        if self.detector not in columns:
            return left_out.get(self.detector, "claims have no such score")
        values = columns[self.detector]
        return fault_of(values) or self._auroc(values, data)

    def _auroc(self, values: FloatArray, data: Labelled) -> Number | StratifiedAuroc:
        return within(values, data) if self.inside else pooled(values, data)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlindClaimAuroc(ClaimAuroc):
    """That of the best blind baseline, each turned the way in which it is better: what detectors have to beat.

    Best by the labels that it is measured on, as `hedge claims` has it.
    """

    of_samples: bool = True

    @property
    def detectors(self) -> tuple[str, ...]:
        return ()

    @property
    def claim_detectors(self) -> tuple[str, ...]:
        return (*(name for name in registry.names("claim") if registry.get(name).blind), TEXT)

    def _of(
        self, columns: Mapping[str, FloatArray], data: Labelled, left_out: Mapping[str, str]
    ) -> Number | StratifiedAuroc | str:
        found = [self._auroc(values, data) for _, values in sorted(blind_columns(columns, data).items())]
        defined = [one for one in found if one.value is not None]
        if not defined:
            return str(found[0].reason) if found else "no blind baseline tells claims apart"
        return max(defined, key=lambda one: one.value or 0.0)


def row_name(detector: str, *, inside: bool = False) -> str:
    """The row of a detector of claims.

    Example:
        >>> row_name("claim_radflag"), row_name("mine", inside=True)
        ('radflag_claim_auroc', 'mine_claim_auroc_within')
    """
    return f"{detector.removeprefix(_PREFIX)}_claim_auroc" + ("_within" if inside else "")


def claim_measures() -> dict[str, Measure]:
    """Return two measures for every detector of claims, and for the best blind baseline."""
    rows: list[ClaimAuroc] = []
    for inside in (False, True):
        for name in registry.names("claim"):
            rows.append(ClaimAuroc(name=row_name(name, inside=inside), detector=name, inside=inside))
        blind = f"{_PREFIX}blind"
        rows.append(BlindClaimAuroc(name=row_name(blind, inside=inside), detector=blind, inside=inside))
    return by_name(rows)


def _numbers(record: Record) -> ClaimNumbers:
    scores = {name: tuple(math.nan if v is None else float(v) for v in of) for name, of in record["scores"].items()}
    about = (record["group"], tuple(record["labels"]), scores, record["left_out"], record["unlabelled"])
    return ClaimNumbers(*about)


def _of_claims(reason: str | None) -> str:
    """Why there is no number, of claims and answers in place of documents and strata."""
    return str(reason).replace("document", "claim").replace("stratum", "answer")


def _written(value: float) -> float | str | None:
    """JSON has neither NaN nor infinity."""
    if math.isnan(value):
        return None
    return value if np.isfinite(value) else str(value)
