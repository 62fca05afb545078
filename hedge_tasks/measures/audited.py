"""A run's numbers against experts, beside those against its judge, and how good the judge is.

The judge's labels of the answers that no expert saw are used for shares alone, by a rule that is fixed before a label
is seen: the plan draws in proportion to the judge's labels, so that the sizes of these strata are known, and the mean
of the strata's shares by their sizes has at most the variance of a simple random sample (Cochran 1977, section 5.6). It
needs the number of answers of every stratum that count; where experts find answers that claim nothing, that is not
known, and labels alone count. ROC-AUCs and differences never use them: measured
over judges of ROC-AUC .6 to .99, intervals by both were longer than by the labels alone in most cases.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.measures.comparisons import compare_two_scores
from hedge_tasks.measures.measure import shared_groups
from hedge_tasks.measures.run_measures import estimate_of, numbers_of_run, scored_documents, sums_of
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc, known_measures
from hedge_tasks.numbers import WHOLE, Column, Number, Table, count_of
from hedge_tasks.numbers.table import Cell
from hedge_tasks.replies.reading import BASES
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, estimate_rate, max_t
from hedge_tasks.statistics.experts import Audited

RATES = ("hallucination_rate", "supported_share", "declined_share")
"""Numbers of the model that follow from labels."""

NOT_SHOWN = "Curves and numbers by question type need a label of every answer, and are left out."

_OF_DETECTORS = "_auroc"

_NAMED = 6
"""Numbers that a line names."""


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


def whose_labels(run: Run, audit: ExpertAudit | None) -> str:
    """Return a line about the source of the labels of a run's numbers."""
    judges = [name for name, _ in Counter(str(v.get("judge")) for v in run.verdicts.values()).most_common(2)]
    came_along = not judges or judges[0].startswith("given ")
    whose = "those that came with the answers" if came_along else f"the judge's ({', '.join(judges)})"
    if audit is not None:
        return f"Labels: {audit.n_labels} labels of experts ({people_of(audit)}), in place of {whose}. {NOT_SHOWN}"
    return f"Labels: {whose}; errors in them are in every number. `hedge audit plan` chooses documents for experts."


def people_of(audit: ExpertAudit) -> str:
    """Return who labelled: in roles where the audit says so, else how many people there were."""
    return audit.by or count_of(audit.raters, "rater")


def auroc_by_experts(scores: Sequence[Scores], detector: str, audit: ExpertAudit) -> Number:
    """Return the ROC-AUC of a detector against experts."""
    measure = detector_auroc(detector)
    documents = scored_documents(scores, measure)
    return estimate_of(measure, documents, audit.on([document.id for document in documents]))


def rate_by(run: Run, audit: ExpertAudit | None = None) -> Number:
    """Return the share of hallucinated baseline answers, by experts where there is an audit, else by the judge."""
    return numbers_of_run(run, audit, [HALLUCINATION_RATE])[0][1]


def labels_by(answer_sets: Sequence[AnswerSet], audit: ExpertAudit | None) -> dict[str, int | None]:
    """Return labels of answers by id: of experts where there is an audit, else of the judge."""
    experts = None if audit is None else audit.on([answers.id for answers in answer_sets])
    return {a.id: experts.label(i) if experts else a.label for i, a in enumerate(answer_sets)}


def scores_by(scores: Sequence[Scores], audit: ExpertAudit | None) -> Sequence[Scores]:
    """Return documents under the labels of experts, where there is an audit; without types, which have few labels."""
    if audit is None:
        return scores
    labels = audit.on([s.id for s in scores])
    return [replace(s, label=labels.label(i), parent=None) for i, s in enumerate(scores)]


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
    known = known_measures()
    measures = [*(known[name] for name in RATES), *(m for m in sums_of(run.settings) if m.name not in RATES)]
    both = zip(*(numbers_of_run(run, labels, measures) for labels in (None, audit)), strict=True)
    return [*numbers, *(AuditedNumber(measure.name, a, b) for (measure, a), (_, b) in both)]


def audited_differences(
    scores: Sequence[Scores], detectors: Sequence[str], reference: str, audit: ExpertAudit
) -> list[AuditedDifference]:
    """Return the difference in AUROC of each detector and one of them, on the documents that have both scores."""
    differences, labelled = [], scores_by(scores, audit)
    for name in detectors:
        if name == reference:
            continue
        by_judge = compare_two_scores(scores, name, scores, reference)
        by_labels = compare_two_scores(labelled, name, labelled, reference)
        if by_judge is not None and by_labels is not None:
            differences.append(AuditedDifference(f"{name} - {reference}", by_judge, by_labels))
    return differences


def judge_table(run: Run, audit: ExpertAudit) -> Table:
    """Return how often experts agree with the judge, by its label, and by what a reply was read from."""
    sets = run.answer_sets
    labels = audit.on([answers.id for answers in sets])
    parts: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    for i in labels.places:
        answers = sets[i]
        if answers.label is None:
            continue
        right = int(labels.label(i) == answers.label), answers.group
        parts["hallucinated" if answers.label else "supported"].append(right)
        if (basis := (run.verdicts.get(answers.id) or {}).get("basis")) in BASES:
            parts[f"read from: {basis}"].append(right)
    rows: list[dict[str, Cell]] = []
    for name, judged in parts.items():
        agreed, groups = zip(*judged, strict=True)
        rows.append({"part": name, "labels": len(judged), "agree": estimate_rate(agreed, groups=shared_groups(groups))})
    columns = [Column("part", "the judge says"), Column("labels"), Column("agree", "experts agree", interval=True)]
    return Table(columns, rows)


def numbers_table(numbers: Sequence[AuditedNumber], audit: ExpertAudit) -> Table:
    """Return the table of both columns."""
    columns = [
        Column("number"),
        Column("judge", "against the judge", interval=True),
        Column("experts", "against experts", interval=True),
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
        worth = experts.n_effective if isinstance(experts, Audited) and experts.defined else None
        rows.append({"number": number.name, "judge": number.judge, "experts": experts, "worth": worth})
    reasons = [f"{reason[:1].upper()}{reason[1:]} ({_listed(names)})." for reason, names in refused.items()]
    return Table(columns, rows, notes=[*audit_notes(audit), *reasons])


def _listed(names: Sequence[str]) -> str:
    n_left = len(names) - _NAMED
    return ", ".join(names) if n_left < 2 else f"{', '.join(names[:_NAMED])} and {n_left} more"


def audit_notes(audit: ExpertAudit) -> list[str]:
    """Return whose labels these are, and what is to be known of them."""
    notes = [
        f"{audit.n_labels} labels by {people_of(audit)}, of {len(audit.of)} documents.",
        "Intervals are for documents like these. `worth labels`: as many of a simple random sample, without a judge, "
        "would be as sure.",
    ]
    if audit.kappa is not None:
        kappa = Column("kappa", interval=True).text(audit.kappa)
        notes.append(f"Two people labelled {audit.kappa.n} of them both: Cohen's kappa {kappa}.")
    if audit.missing:
        notes.append(f"Left out, which is right where it is chance: {audit.missing} drawn documents without a verdict.")
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
