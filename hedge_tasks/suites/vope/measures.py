"""The rows of VOPE's tables: Hal-D, Hal-I, Exp (section 3.3) and CHAIR (section 3.5), and HEDGE by the object.

All are shares in [0, 1] over all objects of all stories, as in the paper, not means over images. Standard errors and
intervals are between images: the objects of a story are not independent. ROC-AUCs resample images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores
from hedge_tasks.detectors.units import Unit
from hedge_tasks.measures.measure import Auroc, Count, Measure, Record, SumsMeasure, bounds_of
from hedge_tasks.measures.standard_measures import DetectorAuroc
from hedge_tasks.numbers import PERCENT, Format
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.suites.vope.documents import objects_of
from hedge_tasks.suites.vope.judge import (
    FALSE_DESCRIPTION,
    FALSE_IMAGINATION,
    HALLUCINATED,
    TRUE_DESCRIPTION,
    TRUE_IMAGINATION,
)

Objects = Sequence[Mapping[str, Any]]
"""Object records of one story, as `ObjectRecord.to_dict` gives them."""

ObjectNumber = Callable[[Objects], int]


def counting(has: Callable[[Mapping[str, Any]], Any]) -> ObjectNumber:
    """Count the objects of a story whose record has some property."""
    return lambda objects: sum(bool(has(entry)) for entry in objects)


def in_sets(*kinds: str, reading: str = "kind") -> ObjectNumber:
    """Count the objects of some of the four sets.

    Args:
        reading: whose reading of the recheck counts: "kind" (that of the task), "kind_soft" (soft readings as well),
            "kind_official" (the reference code's) or "kind_forced" (the likelier of "Yes" and "No", by forced passes).
    """
    return counting(lambda entry: entry[reading] in kinds)


def unread_of(present: bool) -> ObjectNumber:
    """Count the objects whose recheck cannot be read, among those that are in the image or among the others."""
    return counting(lambda entry: entry["kind"] is None and entry["present"] is present)


def both(first: ObjectNumber, second: ObjectNumber) -> ObjectNumber:
    """Return the sum of two counts."""
    return lambda objects: first(objects) + second(objects)


absent = counting(lambda entry: not entry["present"])
"""Objects that are not in the image."""

unread = counting(lambda entry: entry["kind"] is None)
"""Objects whose recheck says neither yes nor no."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectShare(SumsMeasure):
    r"""A ratio of two counts, each summed over all stories.

    .. math:: \frac{\sum_i a_i}{\sum_i b_i}

    Attributes:
        part, whole: the two counts of one story.
        hallucinations: whether the part is hallucinated objects, so that a story with one is labelled hallucinated.
    """

    part: ObjectNumber
    whole: ObjectNumber
    hallucinations: bool = False
    higher_is_better: bool = False
    format: Format = PERCENT
    beyond_experts: str = "made of objects, and experts label whole stories"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        objects = verdict["objects"]
        return {"part": self.part(objects), "whole": self.whole(objects), "group": scores.group or scores.id}

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Part and whole of each story, shape (n, 2)."""
        return np.array([(r["part"], r["whole"]) for r in records], dtype=np.float64).reshape(-1, 2)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cover(ObjectShare):
    r"""Share of the categories in the images that the stories mention (AMBER's Cover), summed over all stories.

    .. math:: \frac{\sum_i |R_i \cap A_i|}{\sum_i |A_i|}

    with the categories :math:`R_i` of a story and :math:`A_i` of its image.
    """

    part: ObjectNumber = len
    whole: ObjectNumber = len
    columns: tuple[str, ...] = ("truth",)
    higher_is_better: bool = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        truth = objects_of(document["truth"])
        mentioned = {entry["category"] for entry in verdict["objects"]}
        return {"part": len(truth & mentioned), "whole": len(truth), "group": scores.group or scores.id}


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectCount(Count):
    """A count, summed over all stories.

    Attributes:
        count: of one story.
    """

    count: ObjectNumber
    higher_is_better: bool = False

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": self.count(verdict["objects"])}


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectAuroc(Auroc):
    """ROC-AUC of an object's score against its hallucination label, over the objects of all stories.

    Attributes:
        score: of `ObjectRecord.scores`, or "noisy" for 1 - the share of noisy stories with it.
        kinds: only objects of these sets; empty for all.
    """

    score: str
    kinds: tuple[str, ...] = ()
    unit: str = "object"
    of_samples: bool = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        objects = [entry for entry in verdict["objects"] if entry["kind"] and self._counts(entry["kind"])]
        return {
            "scores": [self._score(entry) for entry in objects],
            "labels": [int(entry["kind"] in HALLUCINATED) for entry in objects],
            "group": scores.group or scores.id,
        }

    def cases(self, record: Record) -> Sequence[Unit]:
        pairs = zip(record["scores"], record["labels"], strict=True)
        return [Unit("", label, record["group"], numbers={self.name: score}) for score, label in pairs]

    def _counts(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds

    def _score(self, entry: Mapping[str, Any]) -> float | None:
        if self.score == "noisy":
            return None if entry["noisy"] is None else 1.0 - entry["noisy"]
        value: float | None = entry.get(self.score)
        return value


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


_DESCRIBED = (TRUE_DESCRIPTION, FALSE_DESCRIPTION)
_IMAGINED = (TRUE_IMAGINATION, FALSE_IMAGINATION)

_NONE_AFFIRMED, _NONE_DENIED = "the model affirms no object", "the model denies no object"
_NONE_READ = "no recheck could be read, or no story mentions a COCO object"
_NONE_MENTIONED = "no story mentions a COCO object"
_NONE_FORCED = "the model does not tell how likely Yes and No are as whole replies, or no object is of that kind"

_SETS = {
    "hal_d": ((FALSE_DESCRIPTION,), _DESCRIBED),
    "hal_i": ((FALSE_IMAGINATION,), _IMAGINED),
    "exp": (_IMAGINED, (*_DESCRIBED, *_IMAGINED)),
}
"""Sets that are the part and the whole of the paper's three shares."""

_TITLES = {"hal_d": "Hal-D", "hal_i": "Hal-I", "exp": "Exp"}

_NOTHING = {"hal_d": _NONE_AFFIRMED, "hal_i": _NONE_DENIED, "exp": _NONE_READ}


def _paper_share(name: str, ending: str = "", reading: str = "kind", **declared: Any) -> ObjectShare:
    """Declare one of the paper's three shares, by one reading of the rechecks."""
    part, whole = (in_sets(*kinds, reading=reading) for kinds in _SETS[name])
    declared = {"nothing": _NOTHING[name], "higher_is_better": name == "exp", **declared}
    return ObjectShare(name=f"{name}{ending}", part=part, whole=whole, **declared)


_SHARES = (
    _paper_share(
        "hal_d",
        title="Hal-D",
        about="Of the objects that the model says are in the image, the share that is not.",
        hallucinations=True,
        kept=True,
        leads=True,
    ),
    _paper_share(
        "hal_i",
        title="Hal-I",
        about="Of the objects that the model says it imagined, the share that is in the image.",
        hallucinations=True,
        kept=True,
        leads=True,
    ),
    _paper_share(
        "exp",
        title="Exp",
        about="Share of the objects that the model says it imagined: how far it expands on the image.",
        kept=True,
        leads=True,
    ),
    ObjectShare(
        name="chair_i",
        title="CHAIR_i",
        about="Share of the objects in the stories that are not in the image.",
        part=absent,
        whole=len,
        nothing=_NONE_MENTIONED,
        kept=True,
    ),
    ObjectShare(
        name="chair_s",
        title="CHAIR_s",
        about="Share of the stories with an object that is not in the image.",
        part=lambda objects: int(absent(objects) > 0),
        whole=lambda objects: 1,
        nothing="there are no stories",
        kept=True,
    ),
    Cover(
        name="cover",
        title="Cover",
        about="Share of the categories in the images that the stories mention (AMBER's).",
        nothing="no image has a COCO object",
        kept=True,
    ),
)

# An unreadable recheck counts as the wrong reply: of an absent object as affirmed, of a present one as denied.
_UNREAD_WRONG = tuple(
    ObjectShare(
        name=f"{name}_unread_wrong",
        part=both(in_sets(*_SETS[name][0]), unread_of(present)),
        whole=both(in_sets(*_SETS[name][1]), unread_of(present)),
        nothing=_NOTHING[name],
    )
    for name, present in (("hal_d", False), ("hal_i", True))
)

_FORCED: Mapping[str, Any] = {"nothing": _NONE_FORCED, "passes": ("forced_options",)}

_OBJECT_SCORES = (*SCORE_NAMES, "noisy")


def _further(level: str) -> list[str]:
    """Return the other detectors that serve a level."""
    return [name for name in names(level) if name not in SCORE_NAMES]


MEASURES: tuple[Measure, ...] = (
    *(row for share in _SHARES for row in bounds_of(share, "an interval needs objects in two images")),
    *_UNREAD_WRONG,
    *(_paper_share(name, "_soft", "kind_soft", title=f"{title}, soft") for name, title in _TITLES.items()),
    *(_paper_share(name, "_official", "kind_official") for name in _SETS),
    *(
        _paper_share(
            name,
            "_forced",
            "kind_forced",
            about='The same with the likelier of "Yes" and "No" as what the model says, by forced passes.',
            **_FORCED,
        )
        for name in _SETS
    ),
    ObjectCount(name="objects", count=len),
    ObjectShare(name="unread_rate", part=unread, whole=len, nothing=_NONE_MENTIONED),
    ObjectCount(name="parsers_differ", count=counting(lambda entry: entry["readings_differ"])),
    ObjectCount(name="read_by_model", title="by a model", count=counting(lambda entry: entry["by_model"])),
    ObjectShare(
        name="recheck_flips",
        part=counting(lambda entry: entry["flips"] is True),
        whole=counting(lambda entry: entry["flips"] is not None),
        nothing="no recheck has two replies that can be read",
    ),
    *(ObjectAuroc(name=f"object_{score}_auroc", score=score) for score in _OBJECT_SCORES),
    *(ObjectAuroc(name=f"object_{score}_auroc_described", score=score, kinds=_DESCRIBED) for score in _OBJECT_SCORES),
    *(StoryAuroc(name=f"story_{score}_auroc", detector=score) for score in SCORE_NAMES),
    *(ObjectAuroc(name=f"object_{score}_auroc", score=score) for score in _further("object")),
    *(StoryAuroc(name=f"story_{score}_auroc", detector=score) for score in _further("story")),
)
"""Every measure of this benchmark but those of relevance; Hal-D leads."""
