"""The rows of SHALE's tables: shares of right answers by scenario and aspect, resistance, what the image adds.

An answer is right where the judge's label is 0. For closed questions an answer that cannot be read is wrong; for open
ones so is an "unclear" one (appendix A.3), and one that the judge could not decide is in no row but `unlabelled_rate`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.measures.forced_options import forced_measures
from hedge_tasks.measures.measure import Mean, Measure, Rate, Record, SumsMeasure
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.suites.readings import readings_differ, vote_of
from hedge_tasks.suites.shale.items import (
    CLEAN,
    COMBINED_SCENARIOS,
    CONTROLS,
    DISCRIMINATIVE,
    IMAGE_SCENARIOS,
    INSTRUCTION_SCENARIOS,
    KNOWLEDGE,
    NOISY_SCENARIOS,
    PERCEPTION,
    TASKS,
    controls_of,
)
from hedge_tasks.suites.shares import MeanOf


def is_right(verdict: Record) -> int | None:
    """1 for a right answer, 0 for a wrong, unclear or unreadable one, None where the judge said nothing."""
    if verdict["label"] is not None:
        return int(verdict["label"] == 0)
    return None if verdict.get("category") is None else 0


@dataclass(frozen=True, eq=False, kw_only=True)
class RightShare(Mean):
    """Share of right answers: accuracy of closed questions, non-hallucination rate of open ones.

    Attributes:
        among: columns of the documents and the values that they may have.
        read: verdict -> as it counts; None leaves the document out.
    """

    among: Mapping[str, Sequence[str]]
    read: Callable[[Record], Record | None] = lambda verdict: verdict
    columns: tuple[str, ...] = ("scenario", "group")
    beyond_experts: str = "of another reading of the replies"

    def with_label(self, record: Record, label: int | None) -> Record:
        """Return the record under another label; an answer in which experts find none is wrong, as an unread one is."""
        if self.read is not RightShare.read:
            raise LookupError(self.name)
        return record if record["value"] is None else {**record, "value": int(label == 0)}

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        counts_here = all(document[column] in values for column, values in self.among.items())
        counts = self.read(verdict) if counts_here else None
        return {"value": None if counts is None else is_right(counts), "group": document["group"]}

    def why_undefined(self, records: Sequence[Record]) -> str:
        where = ", ".join(
            f"{column} {self.name if len(values) > 1 else values[0]}" for column, values in self.among.items()
        )
        return f"no judged document is of {where}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ResistanceRate(SumsMeasure):
    r"""Share of the items answered rightly when clean that are still answered rightly when perturbed (section 3.3).

    .. math:: RR = \frac{\sum_i 1_{nh}(i)\, 1_{nh}(\tilde i)}{\sum_i 1_{nh}(i)}

    over the items that were asked and judged in both scenarios. Of several scenarios it is the mean of theirs, as in
    the column RR of Tables 2 and 3; scenarios that nothing was asked in are left out of it.

    Attributes:
        scenarios: perturbed ones.
        tasks: types of questions that count.
        controlled: whether the controls count with them: an item is still right where it is in all of its forms, the
            scenario's own and its controls'. Who believes every prefix has no resistance then, nor who believes none.
    """

    scenarios: tuple[str, ...]
    tasks: tuple[str, ...] = TASKS
    controlled: bool = False
    columns: tuple[str, ...] = ("scenario", "task", "pair", "group")
    beyond_experts: str = "made of pairs of answers, which are not drawn together"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        counts = document["scenario"] in (CLEAN, *self._forms) and document["task"] in self.tasks
        right = is_right(verdict) if counts else None
        return {"right": right, "scenario": document["scenario"], "pair": document["pair"], "group": document["group"]}

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Still right, and right when clean, shape (n, scenarios, 2); an item stands with the first of its forms."""
        clean = {r["pair"]: r["right"] for r in records if r["scenario"] == CLEAN and r["right"] is not None}
        counts = np.zeros((len(records), len(self.scenarios), 2))
        first: dict[tuple[str, int], int] = {}
        forms = self._forms
        if self.controlled:  # without controls there is nothing that a lie could be told from
            controlled = {CONTROLS[r["scenario"]] for r in records if r["scenario"] in CONTROLS}
            forms = {name: place for name, place in forms.items() if self.scenarios[place] in controlled}
        for row, record in enumerate(records):
            place, right = forms.get(record["scenario"]), record["right"]
            if place is not None and right is not None and clean.get(record["pair"]):
                item_row = first.setdefault((record["pair"], place), row)
                counts[item_row, place] = right if item_row == row else min(counts[item_row, place, 0], right), 1
        return counts

    @property
    def _forms(self) -> Mapping[str, int]:
        """Place of the scenario that a form of an item counts for."""
        places = {name: place for place, name in enumerate(self.scenarios)}
        controls = CONTROLS if self.controlled else {}
        return places | {name: places[scenario] for name, scenario in controls.items() if scenario in places}

    def statistic(self, sums: FloatArray) -> FloatArray:
        """Mean over the scenarios that anything was asked in; shape (m, scenarios, 2) -> (m,)."""
        rates = _rates(sums)
        n_asked = (~np.isnan(rates)).sum(axis=-1)
        return np.where(n_asked > 0, np.nansum(rates, axis=-1) / np.maximum(n_asked, 1), np.nan)

    def why_undefined(self, records: Sequence[Record]) -> str:
        where = self.scenarios[0] if len(self.scenarios) == 1 else "any perturbed scenario"
        where += " and its controls" if self.controlled else ""
        return f"no item is right when clean and asked in {where}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Average(SumsMeasure):
    """Mean of the shares of several types of questions, each counting the same (Table 2; column Avg of Table 5).

    Attributes:
        parts: the shares.
    """

    parts: tuple[RightShare, ...]
    columns: tuple[str, ...] = ("scenario", "task", "group")

    def with_label(self, record: Record, label: int | None) -> Record:
        return {part.name: part.with_label(record[part.name], label) for part in self.parts}

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {part.name: part.record(scores, verdict, document) for part in self.parts}

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Right, and judged, by type of question, shape (n, types, 2)."""
        return np.stack([part.counts([r[part.name] for r in records]) for part in self.parts], axis=1)

    def statistic(self, sums: FloatArray) -> FloatArray:
        """Mean of the shares of all types; nan where a type is not there."""
        return _rates(sums).mean(axis=-1)

    def group_of(self, record: Record) -> Hashable:
        return self.parts[0].group_of(record[self.parts[0].name])

    def why_undefined(self, records: Sequence[Record]) -> str:
        sums = self.counts(records).sum(axis=0)
        missing = next((part for part, (_, judged) in zip(self.parts, sums, strict=True) if not judged), self.parts[0])
        return missing.why_undefined(records)


def _rates(sums: FloatArray) -> FloatArray:
    """Parts over wholes, shape (m, rates, 2) -> (m, rates); nan where nothing was asked."""
    part, whole = np.moveaxis(sums, -1, 0)
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan)


@dataclass(frozen=True, eq=False, kw_only=True)
class VerdictRate(Rate):
    """Share of documents with some property of verdict or answers.

    Attributes:
        has: verdict and document -> 1, 0, or None where a document does not count.
    """

    has: Callable[[Record, Record], int | None]

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": self.has(verdict, document)}


CONTROLLED = tuple(name for name in NOISY_SCENARIOS if controls_of(name))
"""Scenarios that have controls."""


def _clean_share(name: str, title: str, about: str, **declared: Any) -> RightShare:
    return RightShare(name=name, title=title, about=about, among={"scenario": (CLEAN,)}, **declared)


def _resistance(name: str, scenarios: Sequence[str], title: str, when: str, **declared: Any) -> ResistanceRate:
    right = "Of the items answered rightly when clean, the share still answered rightly when"
    about = f"{right} {when}; mean over scenarios."
    return ResistanceRate(name=name, scenarios=tuple(scenarios), title=title, about=about, kept=True, **declared)


def _gain(verdict: Record, document: Record) -> float | None:
    """Right with the image less right without, of one question (Chen et al. 2024, MMStar: MG = S_v - S_wv)."""
    right = is_right(verdict)
    return None if right is None else right - document["blind_right"]


_TYPES = {
    task: RightShare(name=f"accuracy_{task}", among={"scenario": (CLEAN,), "task": (task,)}) for task in DISCRIMINATIVE
}

MEASURES: tuple[Measure, ...] = (
    Average(
        name="accuracy_average",
        parts=tuple(_TYPES.values()),
        title="accuracy, clean",
        about="Mean of the shares of right answers to yes-or-no and to multiple-choice questions, unperturbed.",
        kept=True,
        leads=True,
    ),
    _clean_share(
        "accuracy_clean",
        "accuracy, clean",
        "Share of closed questions answered rightly where nothing is perturbed.",
        kept=True,
        leads=True,
    ),
    _clean_share(
        "non_hallucination_clean",
        "non-hallucination, clean",
        "Share of open answers free of hallucination, unperturbed.",
        kept=True,
        leads=True,
    ),
    _resistance("resistance_rate", NOISY_SCENARIOS, "resistance rate", "perturbed in any way", leads=True),
    _resistance("resistance_image", IMAGE_SCENARIOS, "resistance, image", "the image is perturbed"),
    _resistance(
        "resistance_instruction", INSTRUCTION_SCENARIOS, "resistance, instruction", "the instruction is perturbed"
    ),
    _resistance(
        "resistance_combination", COMBINED_SCENARIOS, "resistance, both", "image and instruction are perturbed"
    ),
    *(ResistanceRate(name=f"resistance_{name}", scenarios=(name,)) for name in NOISY_SCENARIOS),
    _resistance(
        "resistance_controlled",
        CONTROLLED,
        "resistance with controls",
        "a wrong option is nearer or a prefix lies, and in the controls of these, too",
        controlled=True,
    ),
    *(RightShare(name=f"accuracy_{name}", among={"scenario": (name,)}) for name in NOISY_SCENARIOS),
    *(
        RightShare(name=f"accuracy_{name}", among={"scenario": (CLEAN,), "aspect": aspects})
        for name, aspects in (("perception", PERCEPTION), ("knowledge", KNOWLEDGE))
    ),
    *_TYPES.values(),
    _clean_share(
        "accuracy_clean_read",
        "accuracy, clean and readable",
        "Share of right answers among the replies that can be read.",
        read=lambda verdict: None if verdict.get("category") == UNREADABLE else verdict,
    ),
    _clean_share(
        "accuracy_clean_official",
        "accuracy, clean, official reading",
        "Share of right answers as the published code reads the replies; one that it cannot read is wrong.",
        read=lambda verdict: vote_of(verdict, OFFICIAL),
    ),
    VerdictRate(
        name="unreadable_rate",
        about="Share of closed questions whose reply takes no answer, or more than one. They count as wrong.",
        has=lambda verdict, document: int(verdict.get("category") == UNREADABLE),
    ),
    VerdictRate(
        name="sampled_unreadable_rate",
        about="Share of documents of which a sampled answer cannot be read. Together these answers are one meaning.",
        has=lambda verdict, document: int(UNREADABLE in document["sampled"]),
    ),
    VerdictRate(
        name="parsers_differ",
        about="Share of replies that our reading and the published code's read differently.",
        has=lambda verdict, document: int(readings_differ(verdict)),
    ),
    VerdictRate(
        name="unclear_rate",
        about="Share of open questions whose answer the judge calls unclear. They count as not free of hallucination.",
        has=lambda verdict, document: None if is_right(verdict) is None else int(verdict["label"] is None),
    ),
    VerdictRate(
        name="accuracy_blind",
        about="Share of right answers without the image (column Blind of Table 2, all questions counting the same).",
        has=lambda verdict, document: document["blind_right"],
        higher_is_better=True,
    ),
    MeanOf(
        name="multimodal_gain",
        value_of=_gain,
        group_by="group",
        bounds=(-1.0, 1.0),
        nothing="nothing was judged",
    ),
    *forced_measures(reply_is_right=is_right),
)
"""Every measure of this benchmark; what holds under noise comes second."""
