"""MediHall Score (Med-HallMark section 4), the distribution of categories (Figure 15), and what prefixes change."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.judging.by_sentence import SENTENCES
from hedge_tasks.measures.measure import Bound, Mean, Measure, Record, SumsMeasure
from hedge_tasks.numbers import Number
from hedge_tasks.numbers.number import Interval
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


def is_by_sentence(verdict: Record) -> bool:
    """Whether each sentence of a report was judged by itself."""
    return str(verdict.get("judge", "")).startswith(SENTENCES)


def categories_of(verdict: Record) -> list[str]:
    """The categories of a verdict: one of an answer, one a sentence of a report, none where the judge named none.

    Sentences that were not judged are left out.
    """
    votes = verdict.get("votes") or () if is_by_sentence(verdict) else (verdict,)
    return [vote["category"] for vote in votes if vote.get("category") in MEDIHALL]


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerMean(Mean):
    """Mean of one number an answer (or report), over the answers that have it.

    Attributes:
        value_of: verdict and document -> the number; None where the document has none.
        no_labels: why there is no number, where no answer has a label either.
    """

    value_of: Callable[[Record, Record], float | None] = lambda verdict, document: None
    no_labels: str = ""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        record = {
            "value": self.value_of({**verdict, "label": scores.label}, document),
            "group": scores.group,
            "pair": document.get("pair"),
            "weakened": document.get("weakened"),
        }
        return {**record, "labelled": scores.label is not None} if self.no_labels else record

    def why_undefined(self, records: Sequence[Record]) -> str:
        """Return why: without any label it is the answers that are lacking, not the categories."""
        unlabelled = self.no_labels and not any(record["labelled"] for record in records)
        return self.no_labels if unlabelled else self.nothing


@dataclass(frozen=True, eq=False, kw_only=True)
class OfLabel(AnswerMean):
    """Mean of what follows from the label alone."""

    def with_label(self, record: Record, label: int | None) -> Record:
        return {**record, "value": self.value_of({"label": label}, {})}


@dataclass(frozen=True, eq=False, kw_only=True)
class OfCategory(AnswerMean):
    """Mean of what follows from the category of an answer, or from the categories of a report's sentences."""

    beyond_experts: str = "made of categories, which experts do not name"


@dataclass(frozen=True, eq=False, kw_only=True)
class OfSentences(AnswerMean):
    """Mean of what only a report has, of which each sentence is judged."""

    beyond_experts: str = "made of sentences, and experts label whole answers"

    nothing: str = "no report has a judged sentence"


@dataclass(frozen=True, eq=False, kw_only=True)
class PrefixDifference(SumsMeasure):
    """Another mean with a confidence-weakening prefix less without, over the same questions (Table 3).

    Only questions that have a number both ways count.

    Attributes:
        mean: whose numbers are compared.
    """

    mean: AnswerMean
    about: str = "With a prefix that weakens the model's confidence less without, over the same questions."
    bounds: Interval = (-1.0, 1.0)
    beyond_experts: str = "made of pairs of answers, which are not drawn together"
    columns: tuple[str, ...] = ("pair", "weakened")
    nothing: str = "no question has a number both with and without the prefix"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return self.mean.record(scores, verdict, document)

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """The difference, and 1, where a question with its prefix stands that has a number both ways, shape (n, 2)."""
        plain = {r["pair"]: r["value"] for r in records if not r["weakened"] and r["value"] is not None}
        counts = np.zeros((len(records), 2))
        for row, record in zip(counts, records, strict=True):
            if record["weakened"] and None not in (record["value"], without_prefix := plain.get(record["pair"])):
                row[:] = record["value"] - without_prefix, 1
        return counts

    def students(self, records: Sequence[Record]) -> Number:
        """Return the mean of the differences with Student's interval; images are independent of each other."""
        pairs = [(parts[0], r["group"]) for parts, r in zip(self.counts(records), records, strict=True) if parts[1]]
        number = estimate_mean([float(difference) for difference, _ in pairs], [group for _, group in pairs])
        return number if number.defined else replace(number, reason=self.nothing)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrefixBound(Bound):
    """An end of Student's interval of a `PrefixDifference`."""

    measure: PrefixDifference
    needs: str = "an interval needs questions on two images"

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        number = self.measure.students(records)
        if not number.defined:
            return number
        end = number.low if self.end == "low" else number.high
        return Number.undefined(self.needs, n=number.n) if end is None else Number(end, n=number.n)


def prefix_rows(mean: AnswerMean, **declared: Any) -> list[Measure]:
    """Return the difference that a prefix makes, with both ends of its interval."""
    name, higher = f"{mean.name}_prefix_difference", mean.higher_is_better
    difference = PrefixDifference(name=name, higher_is_better=higher, mean=mean, **declared)
    ends = (
        PrefixBound(name=f"{name}_{end}", higher_is_better=higher, measure=difference, end=end)
        for end in ("low", "high")
    )
    return [difference, *ends]


def _medihall(verdict: Record, document: Record) -> float | None:
    categories = categories_of(verdict)
    return medihall_score(categories) if categories else None


def _share(category: str) -> Callable[[Record, Record], float | None]:
    def share(verdict: Record, document: Record) -> float | None:
        categories = categories_of(verdict)
        return categories.count(category) / len(categories) if categories else None

    return share


def _sentence_labels(verdict: Record) -> list[int | None]:
    """Return the label of each sentence of a report; none of an answer that was judged as a whole."""
    return [vote.get("label") for vote in verdict.get("votes") or ()] if is_by_sentence(verdict) else []


def wrong_sentences(verdict: Record, document: Record) -> float | None:
    """Share of the sentences of a report that are hallucinated, among those that were judged.

    Whether any sentence is wrong says little of a long report: with 10 % of wrong sentences, 65 % of reports of ten
    sentences have one.
    """
    judged = [label for label in _sentence_labels(verdict) if label is not None]
    return sum(judged) / len(judged) if judged else None


def unjudged_sentences(verdict: Record, document: Record) -> float | None:
    """Share of the sentences of a report that the judge gave no label; the other rows leave them out."""
    labels = _sentence_labels(verdict)
    return labels.count(None) / len(labels) if labels else None


def _accuracy(verdict: Record, document: Record) -> float | None:
    return None if verdict["label"] is None else float(verdict["label"] == 0)


def _right(verdict: Record, document: Record) -> float:
    return float(verdict["label"] == 0)


MEDIHALL_SCORE = OfCategory(
    name="medihall",
    title="MediHall Score",
    about=(
        "Mean of what the judge's category of each answer is worth, from 0 (catastrophic hallucination) to 1 (correct)."
    ),
    value_of=_medihall,
    nothing=_NO_CATEGORY,
    no_labels=_NO_LABEL,
    kept=True,
    leads=True,
)

ACCURACY = OfLabel(
    name="accuracy",
    about="Share of answers that the judge does not call hallucinated.",
    value_of=_accuracy,
    nothing=_NO_LABEL,
    kept=True,
    leads=True,
)

MEASURES: tuple[Measure, ...] = (
    MEDIHALL_SCORE,
    ACCURACY,
    OfLabel(
        name="accuracy_unread_wrong",
        title="accuracy, unreadable is wrong",
        about="Where an answer without a label is a wrong one: a refusal, one cut off, one that nobody could judge.",
        value_of=_right,
        nothing="there are no answers",
        kept=True,
    ),
    OfSentences(
        name="wrong_sentences",
        about="Mean share of a report's judged sentences that are hallucinated.",
        value_of=wrong_sentences,
        higher_is_better=False,
        kept=True,
    ),
    OfSentences(
        name="unjudged_sentences",
        title="sentences without a label",
        about="Mean share of a report's sentences that the judge gave no label.",
        value_of=unjudged_sentences,
        higher_is_better=False,
    ),
    *(
        OfCategory(
            name=f"share_{kind}",
            title=f"share of {kind.replace('_', '-')}",
            about=f"Share of answers judged {kind}.",
            value_of=_share(kind),
            nothing=_NO_CATEGORY,
            no_labels=_NO_LABEL,
            higher_is_better=kind == "correct",
            kept=True,
        )
        for kind in MEDIHALL
    ),
    *prefix_rows(MEDIHALL_SCORE, title="MediHall Score, prefix", kept=True),
    *prefix_rows(ACCURACY, title="accuracy, prefix", kept=True),
)
"""Measures that come from the judge; MediHall Score leads."""
