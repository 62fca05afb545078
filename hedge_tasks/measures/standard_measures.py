"""Measures that every task may list: the ROC-AUC of each detector, rates of labels, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import Unit, columns_of, detection_auroc
from hedge_tasks.judging.designed import ExpertLabels
from hedge_tasks.judging.outcomes import (
    DECLINED,
    OUTCOME_HALLUCINATED,
    OUTCOME_SUPPORTED,
    SOFTLY_READ,
    outcome_of,
)
from hedge_tasks.measures.blind import CLAIM_TEXT
from hedge_tasks.measures.measure import Auroc, Count, Measure, Rate, Record, by_name
from hedge_tasks.measures.unit_numbers import best_of, blind_columns, is_blind
from hedge_tasks.numbers import Number
from hedge_tasks.replies.reading import MODEL
from hedge_tasks.statistics.experts import by_labels_alone


@dataclass(frozen=True, eq=False, kw_only=True)
class DetectorAuroc(Auroc):
    """ROC-AUC of a detector against the hallucination labels.

    It is over the documents that have a label and that no threshold was chosen on (those not held out). An evaluation
    with scores, labels or units of its own overrides `record` and `cases`.

    Attributes:
        detector: name of the detector.
    """

    detector: str

    @property
    def detectors(self) -> tuple[str, ...]:
        return (self.detector,)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        kind = {"question_type": scores.parent} if self.within else {}
        why = {"left_out": scores.left_out[self.detector]} if self.detector in scores.left_out else {}
        error = scores.choice_errors.get(self.detector)
        extra = {"choice_error": error} if error else {}
        held_out = {"held_out": True} if scores.held_out else {}
        labels = {"label": scores.reported_label, "group": scores.group}
        return {self.detector: scores[self.detector], **labels, **kind, **extra, **why, **held_out}

    def cases(self, record: Record) -> Sequence[Unit]:
        scores, errors = {self.name: record[self.detector]}, {self.name: record.get("choice_error", 0.0)}
        return [Unit("", record["label"], record["group"], record.get("question_type"), scores, choice_errors=errors)]

    def by_experts(self, records: Sequence[Record], groups: Sequence[Hashable] | None, audit: ExpertLabels) -> Number:
        # Labels and scores of an evaluation's own are not what experts were asked about.
        own = any(getattr(type(self), name) is not getattr(DetectorAuroc, name) for name in ("record", "cases"))
        if self.within or own:
            return super().by_experts(records, groups, audit)
        labelled = [{**records[i], "label": audit.label(i)} for i in audit.places if not held_out(records[i])]
        return by_labels_alone(self.by_judge(labelled, groups), len(labelled))


def held_out(record: Record) -> bool:
    """Return whether a threshold was chosen on the document of a record, so that no AUROC counts it."""
    return bool(record.get("held_out"))


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitAuroc(Auroc):
    """ROC-AUC of a detector of parts of answers, such as claims, over all of them or within each answer.

    The same in every filter, for no clustering plays a role. The numbers are those of `hedge claims`, with errors and
    intervals clustered by image.

    Attributes:
        detector: name of the detector.
    """

    detector: str
    unit: str = "claim"

    @property
    def detectors(self) -> tuple[str, ...]:
        return (self.detector,)

    @property
    def unit_detectors(self) -> tuple[str, ...]:
        return (self.detector,)

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        parts = scores.parts
        if parts is None:
            return {"answer": scores.id, "units": [], "left_out": {}, "unlabelled": _NO_PARTS}
        units = [
            {
                "group": unit.group,
                "label": unit.label,
                **{name: _written(unit.numbers.get(name)) for name in self.unit_detectors},
            }
            for unit in parts.units
        ]
        left_out = {name: parts.left_out[name] for name in self.unit_detectors if name in parts.left_out}
        return {"answer": scores.id, "units": units, "left_out": left_out, "unlabelled": parts.unlabelled}

    def by_experts(self, records: Sequence[Record], groups: Sequence[Hashable] | None, audit: ExpertLabels) -> Number:
        return Number.undefined("experts labelled answers, not the parts of answers", unit=self.unit)

    def cases(self, record: Record) -> Sequence[Unit]:
        return [
            Unit(
                f"{record['answer']}#{i}",
                unit["label"],
                unit["group"],
                record["answer"],
                {name: None if unit.get(name) is None else float(unit[name]) for name in self.unit_detectors},
                level=self.unit,
                left_out=record["left_out"],
            )
            for i, unit in enumerate(record["units"])
        ]

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        units = [unit for record in records for unit in self.cases(record)]
        if not units:
            why = next((record["unlabelled"] for record in records if record["unlabelled"]), "no claim has a label")
            return Number.undefined(why, unit=self.unit)
        number = self._of_units(units)
        return replace(number, unit=self.unit, reason=number.reason and number.reason.replace("stratum", "answer"))

    def _of_units(self, units: Sequence[Unit]) -> Number:
        return detection_auroc(units, self.detector, within=self.within, unit=self.unit)


def _written(number: float | None) -> float | str | None:
    return number if number is None or math.isfinite(number) else str(number)  # JSON has no infinity


@dataclass(frozen=True, eq=False, kw_only=True)
class BlindUnitAuroc(UnitAuroc):
    """That of the best blind baseline, each turned the way in which it is better: what detectors have to beat.

    Best by the labels that it is measured on, as `hedge claims` has it.
    """

    of_samples: bool = True

    @property
    def detectors(self) -> tuple[str, ...]:
        return ()

    @property
    def unit_detectors(self) -> tuple[str, ...]:
        return (*(name for name in registry.names("claim") if is_blind(name)), CLAIM_TEXT)

    def _of_units(self, units: Sequence[Unit]) -> Number:
        columns = blind_columns(columns_of(units, self.unit_detectors)[0])
        numbers = {name: column.within() if self.within else column.auroc() for name, column in columns.items()}
        if not numbers:
            return Number.undefined("no blind baseline tells claims apart")
        return numbers[best_of(numbers) or min(numbers)]


@dataclass(frozen=True, eq=False, kw_only=True)
class HallucinationRate(Rate):
    """Share of hallucinated baseline answers among all labelled ones. The verdict's reason rides along.

    It is about the model, not about a detector: documents that a threshold was chosen on count as well, so that all
    filters of a run have the same rate.
    """

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**verdict, "value": scores.label, "group": scores.group}

    def under(self, label: int | None) -> int | None:
        return label


@dataclass(frozen=True, eq=False, kw_only=True)
class UnlabelledRate(Rate):
    """Share of all documents that the judge could not label; no other number knows of them.

    A held-out document has its label and is none of these, although no AUROC counts it.
    """

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(scores.label is None), "group": scores.group}


@dataclass(frozen=True, eq=False, kw_only=True)
class OutcomeShare(Rate):
    """Share of answers with one outcome, of those that are supported, hallucinated or declined: the three add up to 1.

    `supported_share` is the one to compare models by: it does not grow by declining, while a model that declines has
    less to hallucinate in.

    Attributes:
        outcome: that is counted.
    """

    outcome: str

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        labels = {OUTCOME_SUPPORTED: 0, OUTCOME_HALLUCINATED: 1}
        outcome = next((name for name, label in labels.items() if scores.label == label), None) or outcome_of(verdict)
        counts = outcome in (*labels, DECLINED)
        return {"value": int(outcome == self.outcome) if counts else None, "group": scores.group}

    def under(self, label: int | None) -> int | None:
        outcome = DECLINED if label is None else OUTCOME_HALLUCINATED if label else OUTCOME_SUPPORTED
        return int(outcome == self.outcome)

    def label_of(self, record: Record) -> int | None:
        """Count all that is not supported as hallucinated: predictions need no more, and numbers stay right."""
        value = record["value"]
        if value is None or self.outcome == DECLINED:
            return None if value is None or value else 0
        return int(bool(value) == (self.outcome == OUTCOME_HALLUCINATED))


@dataclass(frozen=True, eq=False, kw_only=True)
class UnconfirmedRate(Rate):
    """Share of documents whose reply the rules read only softly, and no second reading confirmed."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(outcome_of(verdict) == SOFTLY_READ), "group": scores.group}


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadByModelRate(Rate):
    """Share of documents whose reply a judge model read, because the rules could not (`fallback` of the judge)."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("basis") == MODEL), "group": scores.group}


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedDocuments(Count):
    """Number of documents that the AUROCs of a filter rest on: labelled, and not held out by its threshold."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(scores.reported_label is not None)}


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionTypeMeasure(Measure):
    """Another measure, over the documents of one kind only (the task's `question_type` column).

    Attributes:
        measure: the other measure.
        question_type: the kind.

    Example:
        >>> of_question_type(detector_auroc("se"), "closed").name
        'se_auroc_closed'
    """

    measure: Measure
    question_type: str

    @property
    def detectors(self) -> tuple[str, ...]:
        return self.measure.detectors

    @property
    def unit_detectors(self) -> tuple[str, ...]:
        return self.measure.unit_detectors

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**self.measure.record(scores, verdict, document), "question_type": scores.parent}

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        return self._over_kind(records, groups, None)

    def by_experts(self, records: Sequence[Record], groups: Sequence[Hashable] | None, audit: ExpertLabels) -> Number:
        return self._over_kind(records, groups, audit)

    def _over_kind(
        self, records: Sequence[Record], groups: Sequence[Hashable] | None, audit: ExpertLabels | None
    ) -> Number:
        places = [i for i, record in enumerate(records) if record["question_type"] == self.question_type]
        if not places:
            return Number.undefined(f"no document is of the kind {self.question_type!r}", unit=self.unit)
        kind_groups = None if groups is None else [groups[i] for i in places]
        return self.measure.estimate(
            [records[i] for i in places], kind_groups, None if audit is None else audit.some(places)
        )


BLIND = "claim_blind"
"""Stands for the best blind baseline among the detectors of claims."""

_NO_PARTS = "the task does not say how claims are found: hedge.claims, such as {unit: sentence, support: nli}"

HALLUCINATION_RATE = HallucinationRate(
    name="hallucination_rate",
    about="Share of hallucinated baseline answers among the labelled ones.",
)

FAILED_RATE = Rate(name="failed_rate", about="Share of documents left out because a draw of theirs failed for good.")
"""`HedgeTask` makes its records."""


def detector_auroc(detector: str, *, within: bool = False) -> DetectorAuroc:
    """Return the measure of a detector.

    Args:
        within: whether only questions of the same kind (the task's `question_type` column) are compared.
    """
    return DetectorAuroc(name=f"{detector}_auroc" + ("_within" if within else ""), detector=detector, within=within)


def unit_auroc(detector: str, *, within: bool = False) -> UnitAuroc:
    """Return the measure of a detector of claims; of the best blind baseline for `BLIND`.

    Example:
        >>> unit_auroc("claim_radflag").name, unit_auroc("mine", within=True).name
        ('radflag_claim_auroc', 'mine_claim_auroc_within')
    """
    name = f"{detector.removeprefix('claim_')}_claim_auroc" + ("_within" if within else "")
    return (BlindUnitAuroc if detector == BLIND else UnitAuroc)(name=name, detector=detector, within=within)


def of_question_type(measure: Measure, question_type: str) -> QuestionTypeMeasure:
    """Return a measure over the documents of one kind, named `MEASURE_KIND`.

    Example, in the `utils.py` beside a YAML with `{metric: se_auroc_closed, aggregation: !function utils.se_closed}`:
        >>> se_closed = of_question_type(detector_auroc("se"), "closed")
    """
    declared = {field.name: getattr(measure, field.name) for field in fields(Measure)}
    declared |= {"name": f"{measure.name}_{question_type}", "title": f"{measure.title}, {question_type}", "kept": False}
    return QuestionTypeMeasure(**declared, measure=measure, question_type=question_type)


def known_measures() -> dict[str, Measure]:
    """Return every measure that a task's YAML may list: two for every detector, and what is not about detectors."""
    of_answers, of_claims = registry.names(), [*registry.names("claim"), BLIND]
    return by_name(
        [
            *(detector_auroc(name, within=within) for within in (False, True) for name in of_answers),
            *(unit_auroc(name, within=within) for within in (False, True) for name in of_claims),
            HALLUCINATION_RATE,
            UnlabelledRate(name="unlabelled_rate"),
            CountedDocuments(name="auroc_documents"),
            OutcomeShare(name="supported_share", outcome=OUTCOME_SUPPORTED, higher_is_better=True),
            OutcomeShare(name="hallucinated_share", outcome=OUTCOME_HALLUCINATED),
            OutcomeShare(name="declined_share", outcome=DECLINED),
            UnconfirmedRate(name="unconfirmed_rate"),
            ReadByModelRate(name="read_by_model_rate"),
        ]
    )


def looks_at_samples(measure: Measure) -> bool:
    """Return whether a measure is about sampled answers: it is declared so, or all its detectors cost draws."""
    installed = {*registry.names(), *registry.names("claim")}
    detectors = [registry.get(name) for name in measure.detectors if name in installed]
    return measure.of_samples or (bool(detectors) and all(detector.draws(1, 1) > 0 for detector in detectors))


def detectors_of(measures: Iterable[Measure]) -> list[str]:
    """Return the installed detectors that measures need."""
    installed = frozenset(registry.names())
    return [name for measure in measures for name in measure.detectors if name in installed]
