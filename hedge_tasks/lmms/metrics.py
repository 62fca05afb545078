"""The rows of lmms-eval's table: from one record a document to a number, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, auroc_of_pairs, shared_groups, within_strata_auroc
from hedge_tasks.statistics import Estimate, StratifiedAuroc, estimate_rate

Record = Mapping[str, Any]

NOT_AVAILABLE = "N/A"
"""What lmms-eval shows in a cell that has no number."""


class Metric(Protocol):
    """A row of the table. A task's YAML may bring its own: `{metric: NAME, aggregation: !function utils.MyMetric}`."""

    __name__: str
    higher_is_better: bool

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        """What the aggregation needs of one document, fit for JSON.

        Args:
            scores: of its answers, with label, group and question_type.
            verdict: of the judge: `judge`, `reason` and whatever else it says.
            document: its row of the data set.
        """

    def __call__(self, records: Sequence[Record]) -> float | str:
        """The number, or `"undefined: ..."` with the reason."""

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Its standard error, or `NOT_AVAILABLE`."""


class AurocMetric:
    """ROC-AUC of one score against the hallucination labels, over the documents that have a label."""

    higher_is_better = True

    def __init__(self, score: str) -> None:
        self.score = score
        self.__name__ = f"{score}_auroc"  # lmms-eval names aggregations in its logs

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {self.score: getattr(scores, self.score), "label": scores.reported_label, "group": scores.group}

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
    """ROC-AUC of one score that compares only questions of the same kind (the task's `question_type` column)."""

    higher_is_better = True

    def __init__(self, score: str) -> None:
        self.score = score
        self.__name__ = f"{score}_auroc_within"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        about = {"label": scores.reported_label, "question_type": scores.question_type, "group": scores.group}
        return {self.score: getattr(scores, self.score), **about}

    def __call__(self, records: Sequence[Record]) -> float | str:
        result = self._estimate(records)
        return f"undefined: {result.reason}" if result.value is None else result.value

    def stderr(self, records: Sequence[Record]) -> float | str:
        """DeLong's standard error within strata, by image where questions share images."""
        stderr = self._estimate(records).stderr
        return NOT_AVAILABLE if stderr is None else stderr

    def _estimate(self, records: Sequence[Record]) -> StratifiedAuroc:
        rows = [(r[self.score], r["label"], r["question_type"], r["group"]) for r in records if r["label"] is not None]
        return within_strata_auroc(rows)


class RateMetric:
    """Share of documents with some property; `None` in a record leaves it out."""

    higher_is_better = False

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} is abstract")

    def __call__(self, records: Sequence[Record]) -> float | str:
        values = self._values(records)
        return sum(values) / len(values) if values else "undefined: no document has a label"

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Standard error of a proportion; between images where the records say which questions share one."""
        groups = [r.get("group") for r in records if r["value"] is not None]
        stderr = estimate_rate(self._values(records), groups=shared_groups(groups)).stderr
        return NOT_AVAILABLE if stderr is None else stderr

    def _values(self, records: Sequence[Record]) -> list[int]:
        return [int(r["value"]) for r in records if r["value"] is not None]


class HallucinationRate(RateMetric):
    """Share of hallucinated baseline answers among the labelled ones. The verdict's reason rides along."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**verdict, "value": scores.label, "group": scores.group}


class UnlabelledRate(RateMetric):
    """Share of documents that the judge could not label; no other number knows of them."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(scores.label is None), "group": scores.group}


class OfQuestionType:
    """Another metric, over the documents of one kind only (the task's `question_type` column).

    Example, in the `utils.py` beside a YAML with `{metric: se_auroc_closed, aggregation: !function utils.se_closed}`:
        >>> se_closed = OfQuestionType(AurocMetric("se"), "closed")
        >>> se_closed.__name__
        'se_auroc_closed'
    """

    def __init__(self, metric: Metric, question_type: str) -> None:
        self.metric = metric
        self.question_type = question_type
        self.higher_is_better = metric.higher_is_better
        self.__name__ = f"{metric.__name__}_{question_type}"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**self.metric.record(scores, verdict, document), "question_type": scores.question_type}

    def __call__(self, records: Sequence[Record]) -> float | str:
        mine = self._mine(records)
        return self.metric(mine) if mine else f"undefined: no document is of the kind {self.question_type!r}"

    def stderr(self, records: Sequence[Record]) -> float | str:
        mine = self._mine(records)
        return self.metric.stderr(mine) if mine else NOT_AVAILABLE

    def _mine(self, records: Sequence[Record]) -> list[Record]:
        return [record for record in records if record["question_type"] == self.question_type]


METRICS: dict[str, Metric] = {
    **{f"{name}_auroc": AurocMetric(name) for name in SCORE_NAMES},
    **{f"{name}_auroc_within": WithinAurocMetric(name) for name in SCORE_NAMES},
    "hallucination_rate": HallucinationRate("hallucination_rate"),
    "unlabelled_rate": UnlabelledRate("unlabelled_rate"),
}
"""Every metric that a task's YAML may list."""
