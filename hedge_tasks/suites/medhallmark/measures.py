"""MediHall Score (Med-HallMark section 4), the distribution of categories (Figure 15), and shares of sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from hedge_tasks.judging.by_sentence import SENTENCES
from hedge_tasks.measures.measure import Measure, Record
from hedge_tasks.suites.shares import MeanOf

MEDIHALL: Mapping[str, float] = {
    "catastrophic": 0.0,
    "critical": 0.2,
    "attribute": 0.4,
    "prompt_induced": 0.6,
    "minor": 0.8,
    "correct": 1.0,
}
"""Score of each category; higher is better."""

_NO_CATEGORY = "no answer has a category (a judge with the prompt medhallmark names them)"
_NO_LABEL = "no answer has a label"
_NO_SENTENCE = "no report has a judged sentence"


def medihall_score(categories: Sequence[str]) -> float:
    """MediHall Score of an answer (its category) or a report (the categories of its sentences), none of them empty.

    .. math:: H_\\mathrm{answer} = H_i, \\qquad H_\\mathrm{report} = \\frac{1}{n} \\sum_{j=1}^{n} H_j

    Raises:
        KeyError: a category is unknown.

    Example:
        >>> medihall_score(["attribute"]), medihall_score(["correct", "catastrophic"])
        (0.4, 0.5)
    """
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


def _of_categories(number: Callable[[Sequence[str]], float]) -> Callable[[Record, Record], float | None]:
    """Return a number of the categories of a verdict; None where there are none."""
    return lambda verdict, document: number(named) if (named := categories_of(verdict)) else None


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


MEASURES: tuple[Measure, ...] = (
    MeanOf(
        name="medihall",
        title="MediHall Score",
        about="Mean of what the judge's category of each answer is worth, from 0 (catastrophic hallucination) to 1.",
        value_of=_of_categories(medihall_score),
        beyond_experts="made of categories, which experts do not name",
        nothing=_NO_CATEGORY,
        kept=True,
        leads=True,
    ),
    MeanOf(
        name="accuracy",
        about="Share of answers that the judge does not call hallucinated.",
        value_of=lambda verdict, document: None if verdict["label"] is None else float(verdict["label"] == 0),
        by_label=True,
        nothing=_NO_LABEL,
        kept=True,
        leads=True,
    ),
    MeanOf(
        name="accuracy_unread_wrong",
        title="accuracy, unreadable is wrong",
        about="Where an answer without a label is a wrong one: a refusal, one cut off, one that nobody could judge.",
        value_of=lambda verdict, document: float(verdict["label"] == 0),
        by_label=True,
        nothing="there are no answers",
        kept=True,
    ),
    MeanOf(
        name="wrong_sentences",
        about="Mean share of a report's judged sentences that are hallucinated.",
        value_of=wrong_sentences,
        nothing=_NO_SENTENCE,
        higher_is_better=False,
        kept=True,
    ),
    MeanOf(
        name="unjudged_sentences",
        title="sentences without a label",
        about="Mean share of a report's sentences that the judge gave no label.",
        value_of=unjudged_sentences,
        nothing=_NO_SENTENCE,
        higher_is_better=False,
    ),
    *(
        MeanOf(
            name=f"share_{kind}",
            title=f"share of {kind.replace('_', '-')}",
            about=f"Share of answers judged {kind}.",
            value_of=_of_categories(lambda categories, kind=kind: categories.count(kind) / len(categories)),  # type: ignore[misc]
            nothing=_NO_CATEGORY,
            higher_is_better=kind == "correct",
            kept=True,
        )
        for kind in MEDIHALL
    ),
)
"""Measures that come from the judge; MediHall Score leads."""
