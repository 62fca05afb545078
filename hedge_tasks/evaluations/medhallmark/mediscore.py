"""MediHall Score (Med-HallMark §4) and the distribution of categories (Figure 15)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hedge_tasks.adjudication.by_sentence import SENTENCES
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.lmms.metrics import NOT_AVAILABLE, Metric, Record
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import estimate_mean
from hedge_tasks.statistics.base import FloatArray

MEDIHALL: Mapping[str, float] = {
    "catastrophic": 0.0,
    "critical": 0.2,
    "attribute": 0.4,
    "prompt_induced": 0.6,
    "minor": 0.8,
    "correct": 1.0,
}
"""Score of each category; higher is better."""

_NO_SENTENCE = "no report has a judged sentence"
_NO_CATEGORY = "the judge names no categories (prompt medhallmark does)"
_NO_LABEL = "no answer has a label"


def medihall_score(categories: str | Sequence[str]) -> float:
    """MediHall Score of one answer (its category) or of one report (the categories of its sentences).

    .. math:: H_\\mathrm{answer} = H_i, \\qquad H_\\mathrm{report} = \\frac{1}{n} \\sum_{j=1}^{n} H_j

    Raises:
        KeyError: a category is unknown.
        ValueError: a report has no sentence.

    Example:
        >>> medihall_score("attribute"), medihall_score(["correct", "catastrophic"])
        (0.4, 0.5)
    """
    if isinstance(categories, str):
        return MEDIHALL[categories]
    if not categories:
        raise ValueError("a report needs at least one sentence")
    return math.fsum(MEDIHALL[category] for category in categories) / len(categories)


def categories_of(verdict: Record) -> list[str]:
    """The categories of a verdict: one of an answer, one a sentence of a report, none where the judge named none.

    Sentences that were not judged are left out.
    """
    by_sentence = str(verdict.get("judge", "")).startswith(SENTENCES)
    of = verdict.get("votes") or () if by_sentence else (verdict,)
    return [vote["category"] for vote in of if vote.get("category") in MEDIHALL]


class MeanMetric:
    """Mean of one number a document, over the documents that have it.

    Args:
        name: of the row.
        value: verdict and document -> the number, or None where the document has none.
        reason: why there is no number where no document has one.
    """

    higher_is_better = True

    def __init__(
        self,
        name: str,
        value: Callable[[Record, Record], float | None],
        reason: str,
        *,
        higher_is_better: bool = True,
    ) -> None:
        self.__name__ = name
        self.value = value
        self.reason = reason
        self.higher_is_better = higher_is_better

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {
            "value": self.value({**verdict, "label": scores.label}, document),
            "group": scores.group,
            "pair": document.get("pair"),
            "weakened": document.get("weakened"),
        }

    def __call__(self, records: Sequence[Record]) -> float | str:
        values = [record["value"] for record in records if record["value"] is not None]
        return math.fsum(values) / len(values) if values else f"undefined: {self.why(records)}"

    def why(self, records: Sequence[Record]) -> str:
        """Why none of the documents has a number."""
        return self.reason

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Standard error over images: questions on the same image are not independent."""
        known = [record for record in records if record["value"] is not None]
        stderr = estimate_mean([r["value"] for r in known], [r["group"] for r in known]).stderr
        return NOT_AVAILABLE if stderr is None else stderr


class CategoryMean(MeanMetric):
    """Mean of what categories are worth. Without any label it is the answers that are lacking, not the categories."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**super().record(scores, verdict, document), "labelled": scores.label is not None}

    def why(self, records: Sequence[Record]) -> str:
        return self.reason if any(record["labelled"] for record in records) else _NO_LABEL


class PrefixDifference:
    """Another metric's mean with a confidence-weakening prefix minus without, over the same questions (Table 3).

    Only questions that have a number both ways count.

    Args:
        metric: whose numbers are compared.
        bound: "" for the difference itself; "low" or "high" for an end of its 95 % interval (Student's t over images).
    """

    def __init__(self, metric: MeanMetric, bound: str = "") -> None:
        self.metric, self.bound = metric, bound
        self.higher_is_better = metric.higher_is_better
        self.__name__ = "_".join(filter(None, (metric.__name__, "prefix_difference", bound)))

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return self.metric.record(scores, verdict, document)

    def __call__(self, records: Sequence[Record]) -> float | str:
        mean = self._estimate(records)
        if mean.value is None:
            return "undefined: no question has a number both with and without the prefix"
        if not self.bound:
            return mean.value
        interval = mean.interval
        return (
            "undefined: an interval needs questions on two images"
            if interval is None
            else interval[self.bound == "high"]
        )

    def stderr(self, records: Sequence[Record]) -> float | str:
        stderr = None if self.bound else self._estimate(records).stderr
        return NOT_AVAILABLE if stderr is None else stderr

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """The difference, and 1, where a question with its prefix stands that has a number both ways, shape (n, 2)."""
        plain = {r["pair"]: r["value"] for r in records if not r["weakened"] and r["value"] is not None}
        counts = np.zeros((len(records), 2))
        for row, record in zip(counts, records, strict=True):
            if record["weakened"] and None not in (record["value"], other := plain.get(record["pair"])):
                row[:] = record["value"] - other, 1
        return counts

    def _estimate(self, records: Sequence[Record]) -> Number:
        """Of the differences; images are independent of each other."""
        pairs = [(parts[0], r["group"]) for parts, r in zip(self.counts(records), records, strict=True) if parts[1]]
        return estimate_mean([float(difference) for difference, _ in pairs], [group for _, group in pairs])


def _medihall(verdict: Record, document: Record) -> float | None:
    categories = categories_of(verdict)
    return medihall_score(categories) if categories else None


def _share(category: str) -> Callable[[Record, Record], float | None]:
    def share(verdict: Record, document: Record) -> float | None:
        categories = categories_of(verdict)
        return categories.count(category) / len(categories) if categories else None

    return share


def wrong_sentences(verdict: Record, document: Record) -> float | None:
    """Share of the sentences of a report that are hallucinated, among those that were judged.

    Whether any sentence is wrong says little of a long report: with 10 % of wrong sentences, 65 % of reports of ten
    sentences have one.
    """
    if not str(verdict.get("judge", "")).startswith(SENTENCES):
        return None
    labels = [vote.get("label") for vote in verdict.get("votes") or ()]
    judged = [label for label in labels if label is not None]
    return sum(judged) / len(judged) if judged else None


def unjudged_sentences(verdict: Record, document: Record) -> float | None:
    """Share of the sentences of a report that the judge gave no label; the other rows leave them out."""
    if not str(verdict.get("judge", "")).startswith(SENTENCES):
        return None
    labels = [vote.get("label") for vote in verdict.get("votes") or ()]
    return labels.count(None) / len(labels) if labels else None


def _accuracy(verdict: Record, document: Record) -> float | None:
    return None if verdict["label"] is None else float(verdict["label"] == 0)


def _right(verdict: Record, document: Record) -> float:
    return float(verdict["label"] == 0)


medihall = CategoryMean("medihall", _medihall, _NO_CATEGORY)
accuracy = MeanMetric("accuracy", _accuracy, _NO_LABEL)

_ALL: list[Metric] = [
    medihall,
    accuracy,
    MeanMetric("accuracy_unread_wrong", _right, "there are no answers"),
    MeanMetric("wrong_sentences", wrong_sentences, _NO_SENTENCE, higher_is_better=False),
    MeanMetric("unjudged_sentences", unjudged_sentences, _NO_SENTENCE, higher_is_better=False),
    *(
        CategoryMean(f"share_{name}", _share(name), _NO_CATEGORY, higher_is_better=name == "correct")
        for name in MEDIHALL
    ),
    *(PrefixDifference(metric, bound) for metric in (medihall, accuracy) for bound in ("", "low", "high")),
]

METRICS: dict[str, Metric] = {metric.__name__: metric for metric in _ALL}
"""Metrics that come from the judge, by name."""
