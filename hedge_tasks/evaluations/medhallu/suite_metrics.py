"""The numbers that MedHallu is about, for comparisons, submissions and reports; F1 leads, as in the paper's tables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hedge_tasks.data.manifests import text_digest
from hedge_tasks.evaluations.medhallu.documents import said_of
from hedge_tasks.evaluations.medhallu.judge import FACTUAL, HALLUCINATED, NOT_SURE, VERDICTS
from hedge_tasks.evaluations.medhallu.metrics import METRICS, Detection
from hedge_tasks.measures.suite import Record, SuiteMetric, SuiteScore
from hedge_tasks.replies.reading import UNREADABLE

_LEADS = ("f1", "accuracy")

_TITLES = {
    "f1": ("F1", "Of the answers called hallucinated and those that are: twice what both share, over their sum."),
    "accuracy": ("accuracy", "Share of shown answers that are called what they are: true, or hallucinated."),
    "precision": ("precision", "Of the answers called hallucinated, the share that is."),
    "recall": ("recall", "Of the hallucinated answers, the share that is called so."),
    "f1_unread_wrong": ("F1, unreadable is wrong", "F1 where a reply that states no verdict counts as a wrong one."),
    "accuracy_unread_wrong": ("accuracy, unreadable is wrong", "Where a reply that states no verdict is a wrong one."),
    "f1_easy": ("F1, easy", "F1 over the hallucinations that the paper calls easy to detect."),
    "f1_medium": ("F1, medium", "F1 over the hallucinations that the paper calls medium."),
    "f1_hard": ("F1, hard", "F1 over the hallucinations that the paper calls hard to detect."),
}


_SAID = {name: VERDICTS[name] for name in (FACTUAL, HALLUCINATED)}


def _fault(metric: Detection, record: Record, document: Mapping[str, Any]) -> str | None:
    """The label says whether the verdict is wrong, the reference is the truth, and the group is the row.

    Texts are the names of the verdicts by then (`MedHalluTask.read_answer`).
    """
    said, truth, label = record["said"], record["truth"], document["label"]
    if truth not in (0, 1) or said not in (0, 1, None):
        return f"said {said!r}, truth {truth!r}"
    if text_digest(str(truth)) != document["digests"]["reference"]:
        return f"truth {truth} is not the reference"
    if str(record["row"]) != document["group"]:
        return "row is not the group"
    mine = metric.column is None or document["question_type"] == metric.value
    if label is not None and said != ((truth ^ label) if mine else None):
        return f"said {said}, truth {truth}, but the label is {label}"
    category = document["judged"]["category"]
    unread = 1 - truth if metric.unread_wrong and category is None else None
    if said != (_SAID.get(category, unread) if mine else None):
        return f"said {said}, but the verdict is {category}"
    if mine and "texts" in document and said != _said(document["texts"]["answers"][0], truth, metric):
        return f"said {said}, but the answer is another"
    return None


def _said(answer: str, truth: int, metric: Detection) -> int | None:
    """The verdict that an answer is, as the metric takes it."""
    if answer == UNREADABLE and metric.unread_wrong:
        return 1 - truth
    return _SAID.get(answer)


def _suite_metric(name: str, title: str, about: str) -> SuiteMetric:
    row = METRICS[name]
    assert isinstance(row, Detection)
    columns = ("truth", "row", *filter(None, (row.column,)))
    return SuiteMetric(
        row,
        title,
        about,
        row.counts,
        row.statistic,
        columns,
        fault=partial(_fault, row),
        follows_label=True,
        leads=name in _LEADS,
    )


def _not_sure_fault(record: Record, document: Mapping[str, Any]) -> str | None:
    """The value says whether the verdict, and the answer where it is there, is "not sure"."""
    value, category = record["value"], document["judged"]["category"]
    if str(record["group"]) != document["group"]:
        return "another group"
    if value != int(category == NOT_SURE):
        return f"value {value}, but the verdict is {category}"
    if "texts" in document and value != int(document["texts"]["answers"][0].replace(" ", "_") == NOT_SURE):
        return f"value {value}, but the answer is another"
    return None


_NOT_SURE = SuiteMetric(
    METRICS["not_sure_rate"],
    "not sure",
    'Share of the replies that are "not sure", where that is offered.',
    columns=("row", "difficulty"),
    fault=_not_sure_fault,
    follows_label=True,
)

_SCORES = [
    SuiteScore(METRICS[name], ("truth", "row"), said_of, (name.removesuffix("_auroc"),))  # type: ignore[arg-type]
    for name in ("hallucinated_share_auroc", "hallucinated_probability_auroc")
]
"""The share of samples that say hallucinated, and p(1) against p(0)."""

SUITE = [*(_suite_metric(name, *texts) for name, texts in _TITLES.items()), _NOT_SURE, *_SCORES]
