"""The rows of MedHallu's tables. Positive class: hallucinated. Rows without a verdict 0 or 1 are in none but the rates.

As in the reference code (scikit-learn with `zero_division=0`), precision, recall and F1 are 0 where nothing is called
hallucinated.
"""

from __future__ import annotations

import statistics as stdlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.evaluations.medhallu.documents import CATEGORIES
from hedge_tasks.evaluations.medhallu.replies import FACTUAL, HALLUCINATED, VERDICTS
from hedge_tasks.lmms.metrics import NOT_AVAILABLE, AurocMetric, Metric, RateMetric, Record, ScoredCase
from hedge_tasks.statistics.resampling import group_bootstrap, group_totals

Counts = np.ndarray
"""True negatives, false negatives, false positives, true positives; shape (..., 4)."""


def precision(counts: Counts) -> np.ndarray:
    _, _, fp, tp = np.moveaxis(counts, -1, 0)
    return _ratio(tp, tp + fp)


def recall(counts: Counts) -> np.ndarray:
    _, fn, _, tp = np.moveaxis(counts, -1, 0)
    return _ratio(tp, tp + fn)


def f1(counts: Counts) -> np.ndarray:
    _, fn, fp, tp = np.moveaxis(counts, -1, 0)
    return _ratio(2 * tp, 2 * tp + fp + fn)


def accuracy(counts: Counts) -> np.ndarray:
    tn, fn, fp, tp = np.moveaxis(counts, -1, 0)
    return _ratio(tp + tn, tp + fp + fn + tn)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


class Detection:
    """A measure of the confusion matrix of verdicts and truth, over all answered documents or those of one kind.

    Args:
        measure: `f1`, `precision`, `recall` or `accuracy`.
        column: of the documents, to keep only those with `value` in it; None keeps all.
        suffix: what the name ends with, where that is not the value.
    """

    higher_is_better = True

    def __init__(
        self, measure: Callable[[Counts], np.ndarray], column: str | None = None, value: str = "", suffix: str = ""
    ) -> None:
        self.measure, self.column, self.value = measure, column, value
        self.__name__ = "_".join(filter(None, (measure.__name__, suffix or value)))

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        kept = self.column is None or document[self.column] == self.value
        said = self._said(verdict, document) if kept else None
        return {"said": said, "truth": int(document["truth"]), "row": document["row"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        answered = self._answered(records)
        if not answered:
            return (
                "undefined: no document"
                + (f" with {self.column} {self.value}" if self.column else "")
                + " has a verdict"
            )
        return float(self.measure(_confusions(answered).sum(0)))

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Bootstrap standard error over the rows of the data set; both answers of a row stay together."""
        answered = self._answered(records)
        rows = group_totals([record["row"] for record in answered], _confusions(answered))
        return NOT_AVAILABLE if len(rows) < 2 else float(np.std(group_bootstrap(rows, self.measure), ddof=1))

    def _said(self, verdict: Record, document: Record) -> int | None:
        return VERDICTS[verdict["category"]] if verdict.get("category") in (FACTUAL, HALLUCINATED) else None

    def _answered(self, records: Sequence[Record]) -> list[Record]:
        return [record for record in records if record["said"] is not None]


class AlwaysHallucinated(Detection):
    """What the same measure is for a model that calls everything hallucinated."""

    def __init__(self, measure: Callable[[Counts], np.ndarray]) -> None:
        super().__init__(measure, suffix="constant")

    def _said(self, verdict: Record, document: Record) -> int | None:
        return 1


class ShorterIsHallucinated(Detection):
    """What the same measure is where an answer shorter than the median of the shown answers is called hallucinated.

    Hallucinated answers are shorter on average (204 against 268 characters in pqa_labeled), and a model that gets no
    further than this guess has learnt nothing about medicine.
    """

    def __init__(self, measure: Callable[[Counts], np.ndarray]) -> None:
        super().__init__(measure, suffix="length")

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"length": document["length"], "truth": int(document["truth"]), "row": document["row"]}

    def _answered(self, records: Sequence[Record]) -> list[Record]:
        if not records:
            return []
        median = stdlib.median(record["length"] for record in records)
        return [{**record, "said": int(record["length"] < median)} for record in records]


class LengthAuroc(AurocMetric):
    """ROC-AUC of the shown answers' shortness against the truth: the length alone, without a threshold."""

    higher_is_better = False

    def __init__(self) -> None:
        super().__init__("length")

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"shortness": -float(document["length"]), "truth": int(document["truth"]), "row": document["row"]}

    def cases(self, record: Record) -> Sequence[ScoredCase]:
        return [ScoredCase(record["shortness"], record["truth"], record["row"])]


class ResponseRate(RateMetric):
    """Share of documents with a verdict 0 or 1 (the paper's response rate)."""

    higher_is_better = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("category") in (FACTUAL, HALLUCINATED))}


class UnreadableRate(RateMetric):
    """Share of documents whose reply states no verdict, not even "not sure". None of the other rows knows of them."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("category") is None)}


class ParsersDiffer(RateMetric):
    """Share of replies that the strict reading and the reference code's read differently."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        readings = {vote.get("category") for vote in verdict["votes"]}
        return {"value": int(len(readings) > 1)}


def _confusions(answered: Sequence[Record]) -> np.ndarray:
    """One row a record, shape (n, 4)."""
    said = np.array([record["said"] for record in answered], dtype=np.int64)
    truth = np.array([record["truth"] for record in answered], dtype=np.int64)
    cells = ((1 - said) & (1 - truth), (1 - said) & truth, said & (1 - truth), said & truth)
    return np.stack(cells, axis=-1)


MESH = {
    "C": "diseases",
    "D": "chemicals",
    "E": "techniques",
    "F": "psychiatry",
    "N": "healthcare",
}
"""The five MeSH groups of the paper's figure."""


def _by_name(metrics: Sequence[Metric]) -> dict[str, Metric]:
    return {metric.__name__: metric for metric in metrics}


METRICS: Mapping[str, Metric] = _by_name(
    [
        *(Detection(measure) for measure in (f1, precision, recall, accuracy)),
        *(Detection(f1, "difficulty", level) for level in ("easy", "medium", "hard")),
        *(Detection(precision, "difficulty", level) for level in ("easy", "medium", "hard")),
        *(Detection(accuracy, "difficulty", level) for level in ("easy", "medium", "hard")),
        *(Detection(accuracy, "kind", kind) for kind in CATEGORIES),
        *(Detection(accuracy, "mesh", letter, f"mesh_{name}") for letter, name in MESH.items()),
        AlwaysHallucinated(f1),
        ShorterIsHallucinated(f1),
        ShorterIsHallucinated(accuracy),
        LengthAuroc(),
        ResponseRate("response_rate"),
        UnreadableRate("unreadable_rate"),
        ParsersDiffer("parsers_differ"),
    ]
)
"""Every metric of this benchmark, by the name that its row has."""
