"""The numbers that Med-HallMark is about, for comparisons, submissions and reports; MediHall Score leads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from hedge_tasks.adjudication.by_sentence import SENTENCES
from hedge_tasks.evaluations.medhallmark.mediscore import MEDIHALL, METRICS, PrefixDifference
from hedge_tasks.evaluations.medhallmark.wording import METRICS as WORDING
from hedge_tasks.evaluations.medhallmark.wording import WordingMetric
from hedge_tasks.measures.suite import Record, SuiteMetric

_LEADS = ("medihall", "accuracy")

_UNREAD = "accuracy_unread_wrong"

_FROM_LABELS = ("accuracy", _UNREAD)

_ABOUT = (
    "Mean of what the judge's category of each answer is worth, from 0 (catastrophic hallucination) to 1 (correct)."
)


def _fault(name: str, record: Record, document: Mapping[str, Any]) -> str | None:
    """The value of an answer is that of its category, its accuracy that of its label; a report has many sentences."""
    value, judged = record["value"], document["judged"]
    if value is not None and not 0 <= value <= 1:
        return f"value {value!r}"
    if name in _FROM_LABELS:
        unread = 0.0 if name == _UNREAD else None
        expected = unread if document["label"] is None else 1.0 - document["label"]
        return None if value == expected else f"value {value}, but the label is {document['label']}"
    by_sentence = str(judged["judge"]).startswith(SENTENCES)
    if name == "wrong_sentences":
        return None if by_sentence or value is None else f"value {value}, but the judge is {judged['judge']}"
    if by_sentence:
        return None
    category = judged["category"] if judged["category"] in MEDIHALL else None
    share = name.removeprefix("share_")
    expected = None if category is None else MEDIHALL[category] if name == "medihall" else float(category == share)
    return None if value == expected else f"value {value}, but the category is {category}"


def _suite_metric(name: str, title: str, about: str = "") -> SuiteMetric:
    return SuiteMetric(
        METRICS[name],
        title,
        about,
        fault=partial(_fault, name),
        follows_label=name in _FROM_LABELS,
        leads=name in _LEADS,
    )


_WORDING = {
    "rouge1_f1": ("ROUGE-1", "Mean F1 of the words that an answer and its reference share."),
    "rougel_f1": ("ROUGE-L", "Mean F1 of the longest sequence of words that an answer and its reference share."),
    "bleu": ("BLEU", "Mean of sentence BLEU against the reference."),
    "meteor": ("METEOR", "Words, stems and synonyms that an answer shares with its reference, less for their order."),
}
"""BERTScore needs a model for all answers together, and is in `hedge paper medhallmark`."""


def _again(row: WordingMetric, document: Mapping[str, Any], judge: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record out of answer and reference; None where the library or file that measures them is not here."""
    texts = document["texts"]
    told = {"baseline_answer": texts["answers"][0], "reference": texts.get("reference") or ""}
    about: Any = SimpleNamespace(label=document["label"], group=document["group"])
    record = row.record(about, {}, told)
    return None if "missing" in record else record


def _wording(name: str, title: str, about: str) -> SuiteMetric:
    row = WORDING[name]
    assert isinstance(row, WordingMetric)
    return SuiteMetric(row, title, about, fault=_no_share, again=partial(_again, row))


def _no_share(record: Record, document: Mapping[str, Any]) -> str | None:
    value = record["value"]
    return None if value is None or 0 <= value <= 1 else f"value {value!r}"


def _prefix_fault(name: str, record: Record, document: Mapping[str, Any]) -> str | None:
    """The value is that of the answer; which question it is of stands in the id."""
    pair = document["id"].removesuffix("-weakened")
    if (record["pair"], record["weakened"]) != (pair, pair != document["id"]):
        return f"pair {record['pair']!r} of the document {document['id']}"
    return _fault(name, record, document)


def _prefix(name: str, title: str) -> SuiteMetric:
    row = METRICS[f"{name}_prefix_difference"]
    assert isinstance(row, PrefixDifference)
    about = "With a prefix that weakens the model's confidence less without, over the same questions."
    return SuiteMetric(
        row,
        title,
        about,
        row.counts,
        columns=("pair", "weakened"),
        bounds=(-1.0, 1.0),
        fault=partial(_prefix_fault, name),
        follows_label=name in _FROM_LABELS,
    )


SUITE = [
    _suite_metric("medihall", "MediHall Score", _ABOUT),
    _suite_metric("accuracy", "accuracy", "Share of answers that the judge does not call hallucinated."),
    _suite_metric(
        _UNREAD,
        "accuracy, unreadable is wrong",
        "Where an answer without a label is a wrong one: a refusal, one that was cut off, one that nobody could judge.",
    ),
    _suite_metric(
        "wrong_sentences", "wrong sentences", "Mean share of a report's judged sentences that are hallucinated."
    ),
    *(
        _suite_metric(f"share_{kind}", f"share of {kind.replace('_', '-')}", f"Share of answers judged {kind}.")
        for kind in MEDIHALL
    ),
    _prefix("medihall", "MediHall Score, prefix"),
    _prefix("accuracy", "accuracy, prefix"),
    *(_wording(name, *texts) for name, texts in _WORDING.items()),
]
