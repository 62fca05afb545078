"""The numbers that SHALE is about, for comparisons, submissions and reports; what holds under noise comes second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from hedge_tasks.evaluations.shale.items import CLEAN
from hedge_tasks.evaluations.shale.metrics import METRICS, Average, ResistanceRate, RightShare, is_right
from hedge_tasks.measures.suite import Record, SuiteMetric

_SHARES = {
    "accuracy_clean": ("accuracy, clean", "Share of closed questions answered rightly where nothing is perturbed."),
    "non_hallucination_clean": (
        "non-hallucination, clean",
        "Share of open answers free of hallucination, unperturbed.",
    ),
}

_ABOUT = "Of the items answered rightly when clean, the share still answered rightly when {}; mean over scenarios."
_ALL = "resistance_rate"
_RESISTANCES = {
    _ALL: ("resistance rate", "perturbed in any way"),
    "resistance_image": ("resistance, image", "the image is perturbed"),
    "resistance_instruction": ("resistance, instruction", "the instruction is perturbed"),
    "resistance_combination": ("resistance, both", "image and instruction are perturbed"),
}


def _average_fault(parts: Sequence[str], record: Record, document: Mapping[str, Any]) -> str | None:
    """A clean question is of one of the types."""
    asked = [record[part]["right"] for part in parts if record[part]["right"] is not None]
    if len(asked) > 1:
        return "more than one type of question"
    whole = {"right": asked[0] if asked else None, "group": record[parts[0]]["group"]}
    return _fault((CLEAN,), whole, document)


def _average() -> SuiteMetric:
    row = METRICS["accuracy_average"]
    assert isinstance(row, Average)
    parts = [part.__name__ for part in row.parts]
    return SuiteMetric(
        row,
        "accuracy, clean",
        "Mean of the shares of right answers to yes-or-no and to multiple-choice questions, unperturbed.",
        row.counts,
        row.statistic,
        ("scenario", "task", "group"),
        fault=partial(_average_fault, parts),
        follows_label=True,
        leads=True,
    )


def _fault(scenarios: Sequence[str], record: Record, document: Mapping[str, Any]) -> str | None:
    """What is right has the label 0; an answer without a label is wrong, or was not judged: then it has no kind."""
    right, label, mine = record["right"], document["label"], document["question_type"] in scenarios
    if record["group"] != document["group"]:
        return "another group"
    if "scenario" in record and record["scenario"] != document["question_type"]:
        return "scenario is not the question type"
    if "pair" in record and document["id"] != f"{record['pair']}-{record['scenario']}":
        return "pair is not that of the id"
    if right != (is_right({"label": label, "category": document["judged"]["category"]}) if mine else None):
        return f"right {right}, but the label is {label}, the verdict {document['judged']['category']}"
    return None


def _resistance(name: str, title: str, when: str) -> SuiteMetric:
    row = METRICS[name]
    assert isinstance(row, ResistanceRate)
    return SuiteMetric(
        row,
        title,
        _ABOUT.format(when),
        row.counts,
        row.statistic,
        ("scenario", "pair", "group"),
        fault=partial(_fault, (CLEAN, *row.scenarios)),
        follows_label=True,
        also=("resistance",),
        leads=name == _ALL,
    )


def _share(name: str, title: str, about: str) -> SuiteMetric:
    row = METRICS[name]
    assert isinstance(row, RightShare)
    columns = ("scenario", "group")
    fault = partial(_fault, (CLEAN,))
    return SuiteMetric(
        row, title, about, row.counts, row.statistic, columns, fault=fault, follows_label=True, leads=True
    )


SUITE = [
    _average(),
    *(_share(name, *texts) for name, texts in _SHARES.items()),
    *(_resistance(name, *texts) for name, texts in _RESISTANCES.items()),
]
