"""The numbers that VOPE is about, for comparisons, submissions and reports: shares over all objects of all stories."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hedge_tasks.evaluations.vope.metrics import METRICS, ObjectShare
from hedge_tasks.runs.suite import Record, SuiteMetric

_TITLES = {
    "hal_d": ("Hal-D", "Of the objects that the model says are in the image, the share that is not."),
    "hal_i": ("Hal-I", "Of the objects that the model says it imagined, the share that is in the image."),
    "exp": ("Exp", "Share of the objects that the model says it imagined: how far it expands on the image."),
    "chair_i": ("CHAIR_i", "Share of the objects in the stories that are not in the image."),
    "chair_s": ("CHAIR_s", "Share of the stories with an object that is not in the image."),
    "cover": ("Cover", "Share of the categories in the images that the stories mention (AMBER's)."),
}

_LEADS = ("hal_d", "hal_i", "exp")

_COLUMNS = {"cover": ("truth",)}

_HALLUCINATIONS = ("hal_d", "hal_i")


def _fault(name: str, record: Record, document: Mapping[str, Any]) -> str | None:
    """A part is no more than its whole, and a story with a hallucinated object is labelled hallucinated."""
    part, whole = record["part"], record["whole"]
    if not (isinstance(part, int) and isinstance(whole, int) and 0 <= part <= whole):
        return f"{part!r} of {whole!r} objects"
    if record["group"] != (document["group"] or document["id"]):
        return "another group"
    if name in _HALLUCINATIONS and part and document["label"] != 1:
        return f"{part} hallucinated objects, but the label is {document['label']}"
    return None


def _suite_metric(name: str, title: str, about: str) -> SuiteMetric:
    row = METRICS[name]
    assert isinstance(row, ObjectShare)
    return SuiteMetric(
        row,
        title,
        about,
        row.counts,
        row.statistic,
        _COLUMNS.get(name, ()),
        fault=partial(_fault, name),
        leads=name in _LEADS,
    )


SUITE = [_suite_metric(name, *texts) for name, texts in _TITLES.items()]
