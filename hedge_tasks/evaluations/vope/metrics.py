"""The rows of VOPE's tables: Hal-D, Hal-I, Exp (section 3.3) and CHAIR (section 3.5), and HEDGE by the object.

All are shares in [0, 1] over all objects of all stories, as in the paper, not means over images. Standard errors and
intervals are between images: the objects of a story are not independent. ROC-AUCs resample images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores
from hedge_tasks.evaluations.vope.documents import objects_of
from hedge_tasks.evaluations.vope.judge import (
    FALSE_DESCRIPTION,
    FALSE_IMAGINATION,
    HALLUCINATED,
    TRUE_DESCRIPTION,
    TRUE_IMAGINATION,
)
from hedge_tasks.lmms.metrics import NOT_AVAILABLE, AurocMetric, Metric, OfSums, Record, ScoredCase
from hedge_tasks.statistics.base import FloatArray

Objects = Sequence[Mapping[str, Any]]
"""Object records of one story, as `ObjectRecord.to_dict` gives them."""

Count = Callable[[Objects], int]


def in_sets(*kinds: str) -> Count:
    """Counts the objects of some of the four sets."""

    def count(objects: Objects) -> int:
        return sum(entry["kind"] in kinds for entry in objects)

    return count


def official_in_sets(*kinds: str) -> Count:
    """The same, with replies read as the reference code does."""

    def count(objects: Objects) -> int:
        return sum(entry["kind_official"] in kinds for entry in objects)

    return count


def unread_of(present: bool) -> Count:
    """Counts the objects whose recheck cannot be read, among those that are in the image or among the others."""

    def count(objects: Objects) -> int:
        return sum(entry["kind"] is None and entry["present"] is present for entry in objects)

    return count


def both(one: Count, other: Count) -> Count:
    """The sum of two counts."""
    return lambda objects: one(objects) + other(objects)


class ObjectShare(OfSums):
    r"""A ratio of two counts, each summed over all stories.

    .. math:: \frac{\sum_i a_i}{\sum_i b_i}

    Args:
        name: of the row.
        part, whole: the two counts of one story.
        reason: why there is no number where the whole is 0.
        bound: "" for the share itself; "low" or "high" for an end of its 95 % interval between images.
    """

    def __init__(
        self, name: str, part: Count, whole: Count, reason: str, *, bound: str = "", higher_is_better: bool = False
    ) -> None:
        self.part, self.whole, self.reason, self.bound = part, whole, reason, bound
        self.higher_is_better = higher_is_better
        self.__name__ = "_".join(filter(None, (name, bound)))
        self._name = name

    def of(self, bound: str) -> ObjectShare:
        """The same share, or an end of its interval."""
        return ObjectShare(
            self._name, self.part, self.whole, self.reason, bound=bound, higher_is_better=self.higher_is_better
        )

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        objects = verdict["objects"]
        return {"part": self.part(objects), "whole": self.whole(objects), "group": scores.group or scores.id}

    def __call__(self, records: Sequence[Record]) -> float | str:
        part, whole = (sum(record[key] for record in records) for key in ("part", "whole"))
        if not whole:
            return f"undefined: {self.reason}"
        if not self.bound:
            return part / whole
        interval = self.measured(records).interval
        if interval is None:
            return "undefined: an interval needs objects in two images"
        return interval[self.bound == "high"]

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Part and whole of each story, shape (n, 2)."""
        return np.array([(r["part"], r["whole"]) for r in records], dtype=np.float64).reshape(-1, 2)

    def stderr(self, records: Sequence[Record]) -> float | str:
        return NOT_AVAILABLE if self.bound else super().stderr(records)


class Cover(ObjectShare):
    r"""Share of the categories in the images that the stories mention (AMBER's Cover), summed over all stories.

    .. math:: \frac{\sum_i |R_i \cap A_i|}{\sum_i |A_i|}

    with the categories :math:`R_i` of a story and :math:`A_i` of its image.
    """

    def __init__(self, *, bound: str = "") -> None:
        super().__init__("cover", len, len, "no image has a COCO object", bound=bound, higher_is_better=True)

    def of(self, bound: str) -> Cover:
        return Cover(bound=bound)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        truth = objects_of(document["truth"])
        mentioned = {entry["category"] for entry in verdict["objects"]}
        return {"part": len(truth & mentioned), "whole": len(truth), "group": scores.group or scores.id}


class ObjectCount:
    """A count, summed over all stories."""

    higher_is_better = False

    def __init__(self, name: str, count: Count) -> None:
        self.__name__ = name
        self.count = count

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"count": self.count(verdict["objects"])}

    def __call__(self, records: Sequence[Record]) -> float | str:
        return float(sum(record["count"] for record in records))

    def stderr(self, records: Sequence[Record]) -> str:
        return NOT_AVAILABLE


class ObjectAuroc(AurocMetric):
    """ROC-AUC of an object's score against its hallucination label, over the objects of all stories.

    The bootstrap resamples images.

    Args:
        score: `se`, `radflag` or `vase` of `ObjectRecord`, or "noisy" for 1 - the share of noisy stories with it.
        kinds: only objects of these sets; a suffix of the name says so.
    """

    unit = "object"

    def __init__(self, score: str, kinds: Sequence[str] = (), suffix: str = "") -> None:
        super().__init__(score)
        self.kinds = kinds
        self.__name__ = "_".join(filter(None, ("object", score, "auroc", suffix)))

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        objects = [entry for entry in verdict["objects"] if entry["kind"] and self._counts(entry["kind"])]
        return {
            "scores": [self._score(entry) for entry in objects],
            "labels": [int(entry["kind"] in HALLUCINATED) for entry in objects],
            "group": scores.group or scores.id,
        }

    def cases(self, record: Record) -> Sequence[ScoredCase]:
        pairs = zip(record["scores"], record["labels"], strict=True)
        return [ScoredCase(score, label, record["group"]) for score, label in pairs]

    def _counts(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds

    def _score(self, entry: Mapping[str, Any]) -> float | None:
        if self.score == "noisy":
            return None if entry["noisy"] is None else 1.0 - entry["noisy"]
        value: float | None = entry[self.score]
        return value


class StoryAuroc(AurocMetric):
    """ROC-AUC of a story's score against its label: whether the model is wrong about any of its objects."""

    def __init__(self, score: str) -> None:
        super().__init__(score)
        self.__name__ = f"story_{score}_auroc"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {self.score: verdict["story"][self.score], "label": verdict["label"], "group": scores.group or scores.id}


_DESCRIBED = (TRUE_DESCRIPTION, FALSE_DESCRIPTION)
_IMAGINED = (TRUE_IMAGINATION, FALSE_IMAGINATION)
_NONE_READ = "no recheck could be read, or no story mentions a COCO object"


def _absent(objects: Objects) -> int:
    return sum(not entry["present"] for entry in objects)


def _any_absent(objects: Objects) -> int:
    return int(_absent(objects) > 0)


def _one(objects: Objects) -> int:
    return 1


def _unread(objects: Objects) -> int:
    return sum(entry["kind"] is None for entry in objects)


def _flips(objects: Objects) -> int:
    return sum(entry["flips"] is True for entry in objects)


def _read_twice(objects: Objects) -> int:
    return sum(entry["flips"] is not None for entry in objects)


def _differ(objects: Objects) -> int:
    return sum(bool(entry["readings_differ"]) for entry in objects)


def _by_model(objects: Objects) -> int:
    return sum(bool(entry["by_model"]) for entry in objects)


hal_d = ObjectShare("hal_d", in_sets(FALSE_DESCRIPTION), in_sets(*_DESCRIBED), "the model affirms no object")
hal_i = ObjectShare("hal_i", in_sets(FALSE_IMAGINATION), in_sets(*_IMAGINED), "the model denies no object")
exp = ObjectShare("exp", in_sets(*_IMAGINED), in_sets(*_DESCRIBED, *_IMAGINED), _NONE_READ, higher_is_better=True)
chair_i = ObjectShare("chair_i", _absent, len, "no story mentions a COCO object")
chair_s = ObjectShare("chair_s", _any_absent, _one, "there are no stories")

cover = Cover()

_SHARES = (hal_d, hal_i, exp, chair_i, chair_s, cover)

# An unreadable recheck counts as the wrong reply: of an absent object as affirmed, of a present one as denied.
_WRONG_D, _WRONG_I = unread_of(present=False), unread_of(present=True)

_OTHER_READINGS = (
    ObjectShare(
        "hal_d_unread_wrong",
        both(in_sets(FALSE_DESCRIPTION), _WRONG_D),
        both(in_sets(*_DESCRIBED), _WRONG_D),
        "the model affirms no object",
    ),
    ObjectShare(
        "hal_i_unread_wrong",
        both(in_sets(FALSE_IMAGINATION), _WRONG_I),
        both(in_sets(*_IMAGINED), _WRONG_I),
        "the model denies no object",
    ),
    ObjectShare(
        "hal_d_official",
        official_in_sets(FALSE_DESCRIPTION),
        official_in_sets(*_DESCRIBED),
        "the model affirms no object",
    ),
    ObjectShare(
        "hal_i_official",
        official_in_sets(FALSE_IMAGINATION),
        official_in_sets(*_IMAGINED),
        "the model denies no object",
    ),
    ObjectShare(
        "exp_official",
        official_in_sets(*_IMAGINED),
        official_in_sets(*_DESCRIBED, *_IMAGINED),
        _NONE_READ,
        higher_is_better=True,
    ),
)

_ALL: list[Metric] = [
    *(share.of(bound) for share in _SHARES for bound in ("", "low", "high")),
    *_OTHER_READINGS,
    ObjectCount("objects", len),
    ObjectShare("unread_rate", _unread, len, "no story mentions a COCO object"),
    ObjectCount("parsers_differ", _differ),
    ObjectCount("read_by_model", _by_model),
    ObjectShare("recheck_flips", _flips, _read_twice, "no recheck has two replies that can be read"),
    *(ObjectAuroc(score) for score in (*SCORE_NAMES, "noisy")),
    *(ObjectAuroc(score, _DESCRIBED, "described") for score in (*SCORE_NAMES, "noisy")),
    *(StoryAuroc(score) for score in SCORE_NAMES),
]

METRICS: dict[str, Metric] = {metric.__name__: metric for metric in _ALL}
"""Every metric of this benchmark but those of relevance, by the name that its row has."""
