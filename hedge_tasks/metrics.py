"""The rows of lmms-eval's table: from one record a document to a number, or to the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.pipeline import SCORE_NAMES, Scores, auroc_of_pairs, within_strata_auroc
from hedge_tasks.statistics import Estimate

Record = Mapping[str, Any]

NOT_AVAILABLE = "N/A"
"""What lmms-eval shows in a cell that has no number."""


class AurocMetric:
    """ROC-AUC of one score against the hallucination labels, over the documents that have a label."""

    higher_is_better = True

    def __init__(self, score: str) -> None:
        self.score = score
        self.__name__ = f"{score}_auroc"  # lmms-eval names aggregations in its logs

    def record(self, scores: Scores, verdict: Record) -> dict[str, Any]:
        return {self.score: getattr(scores, self.score), "label": scores.label, "group": scores.group}

    def __call__(self, records: Sequence[Record]) -> float | str:
        estimate = self._estimate(records)
        return f"undefined: {estimate.reason}" if estimate.value is None else estimate.value

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Bootstrap standard error, resampled by image where questions share images."""
        stderr = self._estimate(records).stderr
        return NOT_AVAILABLE if stderr is None else stderr

    def _estimate(self, records: Sequence[Record]) -> Estimate:
        return auroc_of_pairs([(r[self.score], r["label"], r["group"]) for r in records if r["label"] is not None])


class WithinAurocMetric:
    """ROC-AUC of one score that compares only questions of the same kind (the task's `stratum` column)."""

    higher_is_better = True

    def __init__(self, score: str) -> None:
        self.score = score
        self.__name__ = f"{score}_auroc_within"

    def record(self, scores: Scores, verdict: Record) -> dict[str, Any]:
        return {self.score: getattr(scores, self.score), "label": scores.label, "stratum": scores.stratum}

    def __call__(self, records: Sequence[Record]) -> float | str:
        result = within_strata_auroc(
            [(r[self.score], r["label"], r["stratum"]) for r in records if r["label"] is not None]
        )
        return f"undefined: {result.reason}" if result.value is None else result.value

    def stderr(self, records: Sequence[Record]) -> str:
        return NOT_AVAILABLE


class RateMetric:
    """Share of documents with some property; `None` in a record leaves it out."""

    higher_is_better = False

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def record(self, scores: Scores, verdict: Record) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} is abstract")

    def __call__(self, records: Sequence[Record]) -> float | str:
        values = self._values(records)
        return sum(values) / len(values) if values else "undefined: no document has a label"

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Standard error of a proportion, sqrt(p (1 - p) / n)."""
        values = self._values(records)
        if not values:
            return NOT_AVAILABLE
        p = sum(values) / len(values)
        return math.sqrt(p * (1 - p) / len(values))

    def _values(self, records: Sequence[Record]) -> list[int]:
        return [int(r["value"]) for r in records if r["value"] is not None]


class HallucinationRate(RateMetric):
    """Share of hallucinated baseline answers among the labelled ones. The verdict's reason rides along."""

    def record(self, scores: Scores, verdict: Record) -> dict[str, Any]:
        return {"value": scores.label, **verdict}


class UnlabelledRate(RateMetric):
    """Share of documents that the judge could not label; no other number knows of them."""

    def record(self, scores: Scores, verdict: Record) -> dict[str, Any]:
        return {"value": int(scores.label is None)}


Metric = AurocMetric | WithinAurocMetric | HallucinationRate | UnlabelledRate

METRICS: dict[str, Metric] = {
    **{f"{name}_auroc": AurocMetric(name) for name in SCORE_NAMES},
    **{f"{name}_auroc_within": WithinAurocMetric(name) for name in SCORE_NAMES},
    "hallucination_rate": HallucinationRate("hallucination_rate"),
    "unlabelled_rate": UnlabelledRate("unlabelled_rate"),
}
"""Every metric that a task's YAML may list."""
