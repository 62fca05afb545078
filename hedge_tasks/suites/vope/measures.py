"""The rows of VOPE's tables: Hal-D, Hal-I, Exp (section 3.3) and CHAIR (section 3.5), and HEDGE by the object.

All are shares in [0, 1] over all objects of all stories, as in the paper, not means over images. Standard errors and
intervals are between images: the objects of a story are not independent. ROC-AUCs resample images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import Unit
from hedge_tasks.measures.measure import Auroc, Count, Measure, Record
from hedge_tasks.measures.standard_measures import DetectorAuroc
from hedge_tasks.numbers import PERCENT, Format
from hedge_tasks.suites.shares import RatioOf
from hedge_tasks.suites.vope.documents import objects_of
from hedge_tasks.suites.vope.judge import (
    FALSE_DESCRIPTION,
    FALSE_IMAGINATION,
    HALLUCINATED,
    TRUE_DESCRIPTION,
    TRUE_IMAGINATION,
)

ObjectTest = Callable[[Mapping[str, Any]], Any]
"""Record of an object (`ObjectRecord.to_dict`) -> whether, or how much, it counts."""

Counting = Callable[[Record, Record], float]
"""Verdict and document of a story -> a count."""


def counting(counts: ObjectTest) -> Counting:
    """Count the objects of a story that pass a test; None counts as nothing."""
    return lambda verdict, document: sum(float(counts(entry) or 0) for entry in verdict["objects"])


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectShare(RatioOf):
    """A share of the objects of all stories; a story with a hallucinated one is labelled hallucinated."""

    higher_is_better: bool = False
    format: Format = PERCENT
    beyond_experts: str = "made of objects, and experts label whole stories"


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectCount(Count):
    """A count, summed over all stories.

    Attributes:
        count: of one story.
    """

    count: Counting
    higher_is_better: bool = False

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": self.count(verdict, document)}


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectAuroc(Auroc):
    """ROC-AUC of a detector's score of an object against its hallucination label, over the objects of all stories."""

    detector: str
    unit: str = "object"
    of_samples: bool = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        objects = [entry for entry in verdict["objects"] if entry["kind"]]
        return {
            "scores": [entry.get(self.detector) for entry in objects],
            "labels": [int(entry["kind"] in HALLUCINATED) for entry in objects],
            "group": scores.group or scores.id,
        }

    def cases(self, record: Record) -> Sequence[Unit]:
        pairs = zip(record["scores"], record["labels"], strict=True)
        return [Unit("", label, record["group"], numbers={self.name: score}) for score, label in pairs]


@dataclass(frozen=True, eq=False, kw_only=True)
class StoryAuroc(DetectorAuroc):
    """ROC-AUC of a story's score against its label: whether the model is wrong about any of its objects."""

    of_samples: bool = True

    @property
    def detectors(self) -> tuple[str, ...]:
        return ()  # the verdict brings the scores

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        score = verdict["story"].get(self.detector)
        return {self.detector: score, "label": verdict["label"], "group": scores.group or scores.id}


def absent(entry: Mapping[str, Any]) -> bool:
    """Whether an object is not in the image."""
    return not entry["present"]


def unread(entry: Mapping[str, Any]) -> bool:
    """Whether the recheck of an object says neither yes nor no."""
    return entry["kind"] is None


def _mentioned(verdict: Record, document: Record) -> float:
    """Count the categories of the image that a story mentions."""
    return len(objects_of(document["truth"]) & {entry["category"] for entry in verdict["objects"]})


_DESCRIBED = (TRUE_DESCRIPTION, FALSE_DESCRIPTION)
_IMAGINED = (TRUE_IMAGINATION, FALSE_IMAGINATION)

_SETS = {
    "hal_d": ((FALSE_DESCRIPTION,), _DESCRIBED),
    "hal_i": ((FALSE_IMAGINATION,), _IMAGINED),
    "exp": (_IMAGINED, (*_DESCRIBED, *_IMAGINED)),
}
"""Sets that are the part and the whole of the paper's three shares."""

_TITLES = {"hal_d": "Hal-D", "hal_i": "Hal-I", "exp": "Exp"}

_NO_OBJECT = "no story mentions a COCO object"
_NOTHING = {
    "hal_d": "the model affirms no object",
    "hal_i": "the model denies no object",
    "exp": "no recheck could be read, or no story mentions a COCO object",
}

_ABOUT = {
    "hal_d": "Of the objects that the model says are in the image, the share that is not.",
    "hal_i": "Of the objects that the model says it imagined, the share that is in the image.",
    "exp": "Share of the objects that the model says it imagined: how far it expands on the image.",
}


def _in(kinds: Sequence[str], reading: str, unread_present: bool | None) -> Counting:
    def counts(entry: Mapping[str, Any]) -> bool:
        wrong_reply = unread(entry) and entry["present"] is unread_present
        return entry[reading] in kinds or wrong_reply

    return counting(counts)


def _share(name: str, ending: str = "", *, unread_present: bool | None = None, **declared: Any) -> ObjectShare:
    """Declare one of the paper's three shares, by one reading of the rechecks.

    Args:
        ending: whose reading counts: that of the task, "_soft" (soft readings as well), "_official" (the reference
            code's) or "_forced" (the likelier of "Yes" and "No", by forced passes).
        unread_present: whether objects with an unreadable recheck that are (not) in the image count as the wrong reply;
            None: they do not count.
    """
    reading = "kind" if unread_present is not None else f"kind{ending}"
    part, whole = (_in(kinds, reading, unread_present) for kinds in _SETS[name])
    declared = {"nothing": _NOTHING[name], "higher_is_better": name == "exp", **declared}
    return ObjectShare(name=f"{name}{ending}", part=part, whole=whole, **declared)


_FORCED: Mapping[str, Any] = {
    "about": 'The same with the likelier of "Yes" and "No" as what the model says, by forced passes.',
    "nothing": "the model does not tell how likely Yes and No are as whole replies, or no object is of that kind",
    "passes": ("forced_options",),
}

MEASURES: tuple[Measure, ...] = (
    *(_share(name, title=title, about=_ABOUT[name], kept=True, leads=True) for name, title in _TITLES.items()),
    ObjectShare(
        name="chair_i",
        title="CHAIR_i",
        about="Share of the objects in the stories that are not in the image.",
        part=counting(absent),
        whole=counting(lambda entry: True),
        nothing=_NO_OBJECT,
        kept=True,
    ),
    ObjectShare(
        name="chair_s",
        title="CHAIR_s",
        about="Share of the stories with an object that is not in the image.",
        part=lambda verdict, document: any(map(absent, verdict["objects"])),
        whole=lambda verdict, document: 1,
        nothing="there are no stories",
        kept=True,
    ),
    ObjectShare(
        name="cover",
        title="Cover",
        about="Share of the categories in the images that the stories mention (AMBER's), summed over all stories.",
        part=_mentioned,
        whole=lambda verdict, document: len(objects_of(document["truth"])),
        columns=("truth",),
        higher_is_better=True,
        nothing="no image has a COCO object",
        kept=True,
    ),
    _share("hal_d", "_unread_wrong", unread_present=False),
    _share("hal_i", "_unread_wrong", unread_present=True),
    *(_share(name, "_soft", title=f"{title}, soft") for name, title in _TITLES.items()),
    *(_share(name, "_official") for name in _SETS),
    *(_share(name, "_forced", **_FORCED) for name in _SETS),
    ObjectCount(name="objects", count=counting(lambda entry: True)),
    ObjectShare(name="unread_rate", part=counting(unread), whole=counting(lambda entry: True), nothing=_NO_OBJECT),
    ObjectCount(name="parsers_differ", count=counting(lambda entry: entry["readings_differ"])),
    ObjectCount(name="read_by_model", title="by a model", count=counting(lambda entry: entry["by_model"])),
    *(ObjectAuroc(name=f"object_{detector}_auroc", detector=detector) for detector in names("object")),
    *(StoryAuroc(name=f"story_{detector}_auroc", detector=detector) for detector in names("story")),
)
"""Every measure of this benchmark but those of relevance; Hal-D leads."""
