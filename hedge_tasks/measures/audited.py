"""A run's numbers against experts, beside those against its judge, and how good the judge is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores, detection_auroc
from hedge_tasks.detectors.units import labelled
from hedge_tasks.errors import DataError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.measures.comparisons import compare_two_scores
from hedge_tasks.measures.curves import other_measures
from hedge_tasks.measures.measure import separate_groups
from hedge_tasks.measures.run_measures import documents_of, estimate_of, scored_documents, sums_of
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc, known_measures
from hedge_tasks.numbers import ONE_DIGIT, WHOLE, Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.replies.reading import BASES
from hedge_tasks.runs.audit_files import KeptCheck
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, max_t, ratio
from hedge_tasks.statistics.misclassified import if_independent
from hedge_tasks.statistics.rates import exact_limits
from hedge_tasks.statistics.verified import (
    Audited,
    Verified,
    audited_precision,
    audited_risk_coverage,
    audited_sums,
    compare_audited_runs,
    compare_audited_scores,
)

RATES = ("hallucination_rate", "supported_share", "declined_share")
"""Numbers of the model that follow from labels."""

_OF_DETECTORS = ("_auroc", "_auprc", "_aurc")

_NAMED = 6
"""Numbers that a line names."""

_LEAST = 5
"""Labels of a kind of question, or of a rule, that a number of the judge needs."""


@dataclass(frozen=True)
class AuditedNumber:
    """A number against the judge, and against experts."""

    name: str
    judge: Number
    experts: Number


@dataclass(frozen=True)
class AuditedDifference:
    """A difference of two detectors against the judge, and against experts."""

    name: str
    judge: Comparison
    experts: Comparison


@dataclass(frozen=True)
class JudgeByExperts:
    """How good the judge is, by experts, weighted for the draw.

    Attributes:
        part: kind of question or rule of the judge; empty for all answers.
        labels: of experts.
        sensitivity: share of what experts call hallucinated that the judge does, of what it judged.
        specificity: share of what experts call supported that the judge does, of what it judged.
    """

    part: str
    labels: int
    sensitivity: Number
    specificity: Number


@dataclass(frozen=True)
class ReadingByExperts:
    """How often labels are wrong that rest on one kind of reading.

    Attributes:
        basis: of the reading, a key of `hedge_tasks.replies.reading.BASES`.
        labels: of experts.
        wrong: labels that experts contradict, those who find no answer among them; experts who disagree count in part.
        share: of wrong ones, weighted for the draw, with exact limits.
    """

    basis: str
    labels: int
    wrong: float
    share: Number


def whose_labels(run: Run, audit: ExpertAudit | None) -> str:
    """Return a line about the source of the labels of a run's numbers."""
    judges = [name for name, _ in Counter(str(v.get("judge")) for v in run.verdicts.values()).most_common()]
    whose = f"the judge's ({', '.join(judges[:2])})" if judges else "those that came with the answers"
    if audit is not None:
        return f"Labels: {whose}; `against experts`: {audit.n_labels} labels of experts correct them."
    return f"Labels: {whose}; its errors are in every number. `hedge audit plan` says what experts' labels would buy."


def auroc_by_experts(scores: Sequence[Scores], detector: str, audit: ExpertAudit) -> Number:
    """Return the ROC-AUC of a detector against experts."""
    measure = detector_auroc(detector)
    documents = scored_documents(scores, measure)
    return estimate_of(measure, documents, audit.on([document.id for document in documents]))


def rate_by_experts(answer_sets: Sequence[AnswerSet], audit: ExpertAudit) -> Number:
    """Return the hallucination rate of answers against experts."""
    records = [{"value": answers.label, "group": answers.group} for answers in answer_sets]
    return HALLUCINATION_RATE.estimate(records, None, audit.on([answers.id for answers in answer_sets]))


def auroc_if_independent(scores: Sequence[Scores], detector: str, check: KeptCheck) -> Number:
    """Return the ROC-AUC of a detector without the judge's errors, if they are independent of the score."""
    labels = [s.reported_label for s in scores if s.reported_label is not None and s[detector] is not None]
    rate = sum(labels) / len(labels) if labels else 0.0
    return if_independent(detection_auroc(scores, detector), rate, check.sensitivity, check.specificity)


def compare_by_experts(
    scores: Sequence[Scores], a: str, others: Sequence[Scores], b: str, audit: ExpertAudit
) -> Comparison | None:
    """Return the difference in ROC-AUC of two scores of the same answers, against experts; None where none has both.

    Args:
        scores, a: the first score, by its clustering.
        others, b: the second one, of the same documents.
        audit: of their run.
    """
    pairs = [(s, t) for s, t in _pairs_by_id(scores, others) if None not in (s[a], t[b])]
    if not pairs:
        return None
    first, second = zip(*pairs, strict=True)
    return compare_audited_scores(_values(first, a), _values(second, b), _expert_labels(audit, first))


def compare_runs_by_experts(
    a: Sequence[Scores], audit_a: ExpertAudit, b: Sequence[Scores], audit_b: ExpertAudit, name: str
) -> Comparison | None:
    """Return the difference in ROC-AUC of one score in two runs, each with its audit; None where they share nothing."""
    pairs = [(s, t) for s, t in _pairs_by_id(a, b) if None not in (s[name], t[name])]
    if not pairs:
        return None
    first, second = zip(*pairs, strict=True)
    groups = [s.group for s in first]
    return compare_audited_runs(
        _values(first, name),
        _expert_labels(audit_a, first, groups),
        _values(second, name),
        _expert_labels(audit_b, second, groups),
    )


def _pairs_by_id(a: Sequence[Scores], b: Sequence[Scores]) -> list[tuple[Scores, Scores]]:
    """Return the documents that both have, without those that a threshold was chosen on."""
    by_id = {s.id: s for s in b if not s.held_out}
    return [(s, by_id[s.id]) for s in a if not s.held_out and s.id in by_id]


def _values(scores: Sequence[Scores], name: str) -> list[float]:
    """Return one score of documents that all have it."""
    return [value for s in scores if (value := s[name]) is not None]


def _expert_labels(
    audit: ExpertAudit, documents: Sequence[Scores | AnswerSet], groups: Sequence[Hashable] | None = None
) -> Verified:
    """Return the labels of experts with the judge's, in the order of the documents.

    Args:
        documents: with their labels by the judge.
        groups: of the documents; by default those that they name.
    """
    groups = separate_groups([document.group for document in documents] if groups is None else groups)
    labels = audit.on([document.id for document in documents])
    return labels.verified(range(len(documents)), [document.label for document in documents], groups)


def audited_numbers(
    run: Run, scores: Sequence[Scores], detectors: Sequence[str], audit: ExpertAudit
) -> list[AuditedNumber]:
    """Return the AUROC of each detector, the rates of the model and the numbers of its suite, both ways.

    Numbers that experts do not correct say why.

    Args:
        scores: of the run's documents.
        detectors: those that they have.
    """
    numbers = []
    for name in detectors:
        auroc = detector_auroc(name)
        by_judge = estimate_of(auroc, scored_documents(scores, auroc))
        numbers.append(AuditedNumber(auroc.name, by_judge, auroc_by_experts(scores, name, audit)))
    run_labels = audit.on([answers.id for answers in run.answer_sets])
    measures = known_measures()
    for measure in [*(measures[name] for name in RATES), *sums_of(run.settings)]:
        if measure.name in {number.name for number in numbers}:
            continue
        try:
            documents = documents_of(run, measure)
        except DataError as error:
            numbers.append(AuditedNumber(measure.name, *[Number.undefined(str(error), unit=measure.unit)] * 2))
            continue
        by_judge, by_experts = estimate_of(measure, documents), estimate_of(measure, documents, run_labels)
        numbers.append(AuditedNumber(measure.name, by_judge, by_experts))
    return numbers


def audited_curves(scores: Sequence[Scores], detectors: Sequence[str], audit: ExpertAudit) -> list[AuditedNumber]:
    """Return AUPRC and AURC of each detector, both ways."""
    numbers = []
    for name in detectors:
        scored = [s for s in scores if not s.held_out and s[name] is not None]
        if not scored:
            continue
        by_judge = other_measures(labelled(scores, name))
        values, labels = _values(scored, name), _expert_labels(audit, scored)
        for key, by_experts in (("auprc", audited_precision), ("aurc", audited_risk_coverage)):
            judged = by_judge.get(key, Number.undefined("no document has a label"))
            numbers.append(AuditedNumber(f"{name}_{key}", judged, by_experts(values, labels)))
    return numbers


def compare_rates_by_experts(
    a: Sequence[AnswerSet], audit_a: ExpertAudit, b: Sequence[AnswerSet], audit_b: ExpertAudit
) -> Comparison | None:
    """Return the difference in the hallucination rate of two runs, each with its audit; None if they share nothing."""
    by_id = {answers.id: answers for answers in b}
    pairs = [(answers, by_id[answers.id]) for answers in a if answers.id in by_id]
    if not pairs:
        return None
    first, second = zip(*pairs, strict=True)
    groups = [answers.group for answers in first]
    labels_a, labels_b = _expert_labels(audit_a, first, groups), _expert_labels(audit_b, second, groups)
    return compare_audited_runs(None, labels_a, None, labels_b)


def audited_differences(
    scores: Sequence[Scores], detectors: Sequence[str], reference: str, audit: ExpertAudit
) -> list[AuditedDifference]:
    """Return the difference in AUROC of each detector and one of them, on the documents that have both scores."""
    differences = []
    for name in detectors:
        if name == reference:
            continue
        by_judge = compare_two_scores(scores, name, scores, reference)
        by_experts = compare_by_experts(scores, name, scores, reference, audit)
        if by_judge is not None and by_experts is not None:
            differences.append(AuditedDifference(f"{name} - {reference}", by_judge, by_experts))
    return differences


def judge_by_experts(
    run: Run, audit: ExpertAudit, rule_of: Callable[[Mapping[str, object] | None], str]
) -> list[JudgeByExperts]:
    """Return the judge's sensitivity and specificity: of all answers, by kind of question and by its own rule.

    Args:
        rule_of: what a verdict rests on; see `hedge_tasks.measures.audit_plan.basis_of`.
    """
    sets = run.answer_sets
    judged = [answers.label for answers in sets]
    labels = _expert_labels(audit, sets)
    parts: dict[str, list[bool]] = {"": [True] * len(sets)}
    kinds = [answers.question_type for answers in sets]
    rules = [rule_of(run.verdicts.get(answers.id)) for answers in sets]
    for values in (kinds, rules):
        for value, _ in Counter(v for v in values if v).most_common():
            parts.setdefault(str(value), [v == value for v in values])
    qualities = []
    zeros = np.zeros((len(sets), 2))
    for name, inside in parts.items():
        counted = np.array(inside) & np.array([label is not None for label in judged])
        numbers = []
        for label in (1, 0):
            agreeing = np.array([by_judge == label for by_judge in judged]) & counted
            rows = np.stack([agreeing, counted], axis=1).astype(np.float64)
            n = int(((labels.hallucinated if label else labels.supported)[counted] > 0).sum())
            if n < _LEAST:
                numbers.append(Number.undefined(f"fewer than {_LEAST} labels", n=n))
            elif label:
                numbers.append(audited_sums(rows, zeros, zeros, ratio, labels))
            else:
                numbers.append(audited_sums(zeros, rows, zeros, ratio, labels))
        n_drawn = int((labels.design.drawn & np.array(inside)).sum())
        if n_drawn:
            qualities.append(JudgeByExperts(name, n_drawn, numbers[0], numbers[1]))
    return qualities


def readings_by_experts(run: Run, audit: ExpertAudit) -> list[ReadingByExperts]:
    """Return errors of the labels by what each reply was read from, the firmest first; none where nothing was read.

    Limits are exact for as many labels as count alike.
    """
    sets = run.answer_sets
    bases = [(run.verdicts.get(answers.id) or {}).get("basis") for answers in sets]
    judged = [answers.label for answers in sets]
    labels = _expert_labels(audit, sets, range(len(sets)))
    right = np.where(np.array([label == 1 for label in judged]), labels.hallucinated, labels.supported)
    weights = labels.design.drawn / labels.design.probabilities
    readings = []
    for basis in BASES:
        counted = np.array([b == basis and label is not None for b, label in zip(bases, judged, strict=True)])
        weight = weights * counted
        if not weight.any():
            continue
        share = min(1.0, max(0.0, float(weight @ (1 - right) / weight.sum())))
        n_effective = float(weight.sum() ** 2 / (weight @ weight))
        labelled_here = counted & labels.design.drawn
        number = Number(share, interval=exact_limits(share, n_effective))
        n_wrong = float((1 - right)[labelled_here].sum())
        readings.append(ReadingByExperts(basis, int(labelled_here.sum()), n_wrong, number))
    return readings


def readings_table(readings: Sequence[ReadingByExperts]) -> Table:
    """Return the table of errors by what a reply was read from."""
    columns = [
        Column("basis", "read from"),
        Column("labels"),
        Column("wrong", format=ONE_DIGIT),
        Column("share", "share wrong", interval=True),
    ]
    rows: list[dict[str, Cell]] = [
        {"basis": reading.basis, "labels": reading.labels, "wrong": reading.wrong, "share": reading.share}
        for reading in readings
    ]
    return Table(columns, rows, notes=["Limits are exact (Clopper and Pearson's), for as many labels as count alike."])


def numbers_table(numbers: Sequence[AuditedNumber], audit: ExpertAudit) -> Table:
    """Return the table of both columns."""
    columns = [
        Column("number"),
        Column("judge", "against the judge", interval=True),
        Column("experts", "against experts", interval=True),
        Column("run", "this run alone", show="interval"),
        Column("worth", "worth labels", format=WHOLE),
    ]
    rows: list[dict[str, Cell]] = []
    refused: dict[str, list[str]] = defaultdict(list)
    for number in numbers:
        experts = number.experts
        if not experts.defined and number.name not in RATES and not number.name.endswith(_OF_DETECTORS):
            if number.judge.defined:
                refused[str(experts.reason)].append(number.name)
            continue
        extra: dict[str, Cell] = {}
        if isinstance(experts, Audited) and experts.value is not None:
            extra = {"run": Number(experts.value, interval=experts.run_interval), "worth": experts.n_effective}
        rows.append({"number": number.name, "judge": number.judge, "experts": experts, **extra})
    reasons = [f"{reason[:1].upper()}{reason[1:]} ({_listed(names)})." for reason, names in refused.items()]
    return Table(columns, rows, notes=[*audit_notes(audit), *reasons])


def _listed(names: Sequence[str]) -> str:
    n_left = len(names) - _NAMED
    return ", ".join(names) if n_left < 2 else f"{', '.join(names[:_NAMED])} and {n_left} more"


def audit_notes(audit: ExpertAudit) -> list[str]:
    """Return whose labels these are, and what is to be known of them."""
    people = "1 person" if audit.raters == 1 else f"{audit.raters} people"
    notes = [
        f"Experts: {audit.n_labels} labels by {audit.by or people}, of {len(audit.of)} documents in "
        f"{len(audit.strata)} strata.",
        "Intervals are for documents like these; `this run alone` is for these very documents. `worth labels`: as many",
        "of a simple random sample, without a judge, would be as sure of this run.",
    ]
    if audit.kappa is not None:
        kappa = audit.kappa
        value = "undefined" if kappa.value is None else Column("kappa", interval=True).text(kappa)
        notes.append(f"Two people labelled {kappa.n} of them both: Cohen's kappa {value}.")
    n_controls, n_right = audit.controls
    if n_controls:
        notes.append(f"Of {n_controls} hidden controls {n_right} were labelled right.")
    if audit.lost:
        which = "drawn images have a document without a label" if audit.units else "drawn documents have no label"
        notes.append(f"{audit.lost} {which}: taken for chance within their stratum.")
    return notes


def differences_table(differences: Sequence[AuditedDifference]) -> Table:
    """Return paired differences both ways, p-values corrected for their number.

    By max-T; differences by experts count as independent there, which is on the safe side.
    """
    columns = [
        Column("detectors"),
        Column("judge", "difference by the judge", interval=True),
        Column("judge_p", "p (max-T)", show="p"),
        Column("experts", "by experts", interval=True),
        Column("experts_p", "p (max-T)", show="p"),
    ]
    by_judge, by_experts = (max_t([getattr(d, side) for d in differences]) for side in ("judge", "experts"))
    rows: list[dict[str, Cell]] = [
        {"detectors": d.name, "judge": d.judge.number, "judge_p": p, "experts": d.experts.number, "experts_p": q}
        for d, p, q in zip(differences, by_judge, by_experts, strict=True)
    ]
    return Table(columns, rows)


def quality_table(qualities: Sequence[JudgeByExperts]) -> Table:
    """Return the judge's sensitivity and specificity by experts."""
    columns = [
        Column("judge", "the judge on"),
        Column("labels"),
        Column("sensitivity", interval=True),
        Column("specificity", interval=True),
    ]
    rows: list[dict[str, Cell]] = [
        {
            "judge": quality.part or "all",
            "labels": quality.labels,
            # A reason for every rule with few labels would be longer than the table.
            **{
                name: number if number.defined else None
                for name, number in (("sensitivity", quality.sensitivity), ("specificity", quality.specificity))
            },
        }
        for quality in qualities
    ]
    return Table(columns, rows)
