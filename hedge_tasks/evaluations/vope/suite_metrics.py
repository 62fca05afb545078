"""The numbers that VOPE is about, for comparisons, submissions and reports: shares over all objects of all stories."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

from hedge_tasks.adjudication.base import Case
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.vope.documents import objects_of
from hedge_tasks.evaluations.vope.judge import VopeJudge
from hedge_tasks.evaluations.vope.metrics import METRICS, ObjectShare
from hedge_tasks.evaluations.vope.objects import ObjectRecord, object_records, story_verdict
from hedge_tasks.evaluations.vope.presence import EXACT
from hedge_tasks.evaluations.vope.rechecks import story_objects
from hedge_tasks.evaluations.vope.vocabulary import object_phrase
from hedge_tasks.measures.suite import Record, SuiteMetric

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


def _again(row: ObjectShare, document: Mapping[str, Any], judge: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record out of the story and the replies to its rechecks.

    None where the rechecks are not there, a model read replies or said what is in the image, or another edition judged.
    """
    texts = document["texts"]
    rules = judge.get("presence") == EXACT and "fallback" not in judge and judge.get("version") == VopeJudge.version
    told = AnswerSet(document["id"], Answer(texts["answers"][0]), (), reference=texts.get("reference"))
    if not rules or (story_objects(told, judge["unit"]) and "follow_ups" not in texts):
        return None
    objects = _objects(told, texts.get("follow_ups", ()), VopeJudge(judge["parsing"], judge["unit"]))
    label = story_verdict(objects, VopeJudge.name, VopeJudge.version).label
    if label != document["label"]:
        raise DataError(f"the replies say {label}, but the label is {document['label']}")
    about: Any = SimpleNamespace(id=document["id"], group=document["group"])
    return row.record(about, {"objects": [one.to_dict() for one in objects]}, {"truth": told.reference or ""})


def _objects(told: AnswerSet, rechecks: list[Mapping[str, Any]], judge: VopeJudge) -> list[ObjectRecord]:
    """What is known of the objects of a story.

    Raises:
        DataError: the rechecks are of other objects.
    """
    objects, truth = story_objects(told, judge.unit), objects_of(told.reference or "")
    if [word for word, _ in objects] != [recheck["id"] for recheck in rechecks]:
        raise DataError("the rechecks are not those of the story's objects")
    present = [category in truth for _, category in objects]
    cases = [
        Case(word, object_phrase(word)[0], "yes" if there else "no", one["reply"], cut=one["finish"] == "length")
        for (word, _), there, one in zip(objects, present, rechecks, strict=True)
    ]
    return object_records(told, objects, present, judge.judge(cases))


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
        again=partial(_again, row),
        leads=name in _LEADS,
    )


SUITE = [_suite_metric(name, *texts) for name, texts in _TITLES.items()]
