"""Audits in submissions: labels of experts on a designed sample, and the numbers that follow from them.

Numbers are computed again from the labels and the strata, always. That experts gave these labels is the submitter's
word: it says who they are in roles and numbers, and names nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores, detectors_of
from hedge_tasks.judging.designed import ExpertAudit, ExpertLabels
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.stated import MOST_FAULTS, differences, interval_in, number_fields, rounded
from hedge_tasks.measures.audited import auroc_by_experts, rate_by_experts
from hedge_tasks.numbers import THREE_DIGITS, Number
from hedge_tasks.statistics.agreement import cohen_kappa
from hedge_tasks.statistics.verified import Audited

MOST_LABELS = 4000
"""Of a stratum: every two of its labels are looked at."""

_TWO, _KAPPA = 2, (0.1, 0.5)


def record_of(
    audit: ExpertAudit, answer_sets: Sequence[AnswerSet], scores: Mapping[str, Sequence[Scores]]
) -> dict[str, Any]:
    """Return what a submission says of its audit: who, of how many documents, and the numbers.

    Args:
        audit: of the run.
        answer_sets, scores: of the documents, as the submission states them; scores by clustering.
    """
    kappa = None if audit.kappa is None else rounded(audit.kappa.value)
    return {
        "by": audit.by,
        "people": audit.raters,
        "kappa": kappa,
        "controls": list(audit.controls),
        "strata": _strata(audit),
        **_numbers(answer_sets, scores, audit),
    }


def in_document(audit: ExpertAudit, id: str) -> dict[str, Any]:
    """Return what a submission says of one document: its stratum, what each person said, and the image drawn whole."""
    drawn_with = {"unit": audit.units[id]} if audit.units else {}
    return {"stratum": audit.of[id], "said": list(audit.said.get(id, ())), **drawn_with}


def check_audit(
    submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet], scores: Mapping[str, Sequence[Scores]]
) -> tuple[PartStatus | None, list[str]]:
    """Compute the numbers against experts again; a submission without an audit has no such part.

    Args:
        answer_sets, scores: of its documents, as it states them; scores by clustering.
    """
    documents = submission["documents"]
    has = sum("audit" in document for document in documents)
    if "audit" not in submission:
        return None, [f"documents[].audit: of {has} documents, but there is no audit"] if has else []
    if has < len(documents):
        return None, [f"audit: {has} of {len(documents)} documents say their stratum"]
    record = submission["audit"]
    units = [document["audit"].get("unit") for document in documents]
    if None in units and set(units) != {None}:
        return None, ["documents[].audit.unit: of some documents only"]
    pairs = {(unit, document["audit"]["stratum"]) for unit, document in zip(units, documents, strict=True)}
    if None not in units and len(pairs) > len(set(units)):
        return None, ["documents[].audit.unit: one is in two strata"]
    if any(document["audit"]["stratum"] >= len(record["strata"]) for document in documents):
        return None, ["documents[].audit.stratum: there is no such stratum"]
    if fault := _people_fault(submission):
        return None, [fault]
    audit = audit_of(submission)
    if (strata := _strata(audit)) != list(record["strata"]):
        return None, [f"audit.strata: stated {record['strata']}, counted {strata}"[:300]]
    large = [stratum["title"] for stratum in strata if stratum["labelled"] > MOST_LABELS]
    if large:
        return None, [f"audit.strata: more than {MOST_LABELS} labels in one, which nobody can check"]
    numbers = _numbers(answer_sets, scores, audit)
    wrong = list(islice(differences("audit", numbers, {key: record[key] for key in numbers}), MOST_FAULTS))
    reason = "numbers computed again from the labels of experts; that experts gave them no file can show"
    return PartStatus(False, reason), wrong


def _people_fault(submission: Mapping[str, Any]) -> str | None:
    """How many labelled, and how well two of them agree, as what they said tells it."""
    audit = submission["audit"]
    opinions = [document["audit"]["said"] for document in submission["documents"]]
    if audit["people"] < (most := max(map(len, opinions))):
        return f"audit.people: stated {audit['people']}, but {most} labelled one document"
    both = [labels for labels in opinions if len(labels) == _TWO]
    if not both or audit["kappa"] is None:
        return None
    ours = cohen_kappa([labels[0] for labels in both], [labels[1] for labels in both]).value
    # Who said which is not in it, and labels that are left out count there; of more people it is that of one pair.
    if ours is not None and abs(ours - audit["kappa"]) > _KAPPA[audit["people"] > _TWO]:
        return f"audit.kappa: stated {audit['kappa']}, of what is in it {THREE_DIGITS(ours)}"
    return None


def audit_of(submission: Mapping[str, Any]) -> ExpertAudit:
    """Return a submission's audit as commands have it."""
    documents, audit = submission["documents"], submission["audit"]
    return ExpertAudit(
        tuple(stratum["title"] for stratum in audit["strata"]),
        {document["id"]: document["audit"]["stratum"] for document in documents},
        {document["id"]: tuple(labels) for document in documents if (labels := document["audit"]["said"])},
        audit["people"],
        by=audit["by"],
        units={d["id"]: unit for d in documents if (unit := d["audit"].get("unit")) is not None},
    )


def labels_of(submission: Mapping[str, Any]) -> ExpertLabels | None:
    """Return what experts said beside the documents, in their order."""
    if "audit" not in submission:
        return None
    records = [document["audit"] for document in submission["documents"]]
    units = None if records[0].get("unit") is None else tuple(record["unit"] for record in records)
    return ExpertLabels(
        tuple(record["stratum"] for record in records), tuple(tuple(record["said"]) for record in records), units
    )


def audited_number(content: Mapping[str, Any], clustering: str | None, name: str) -> Number | None:
    """Return a number against experts as a submission states it; None where it has none.

    Args:
        content: the submission.
        clustering: that a detector works on; None for a rate.
        name: of the detector or the rate.
    """
    audit = content.get("audit")
    numbers = {} if audit is None else audit["rates"] if clustering is None else audit["aggregates"].get(clustering, {})
    if (fields := numbers.get(name)) is None:
        return None
    return Audited(
        fields["value"],
        fields["stderr"],
        interval_in(fields),
        fields["n"],
        reason=fields["reason"],
        n_labels=fields["n_labels"],
        run_interval=interval_in(fields, "run_"),
    )


def whose(content: Mapping[str, Any]) -> str | None:
    """Return how many labels of experts an entry has and who they are, in a few words; None without an audit."""
    audit = content.get("audit")
    if audit is None:
        return None
    labels = sum(stratum["labelled"] for stratum in audit["strata"])
    people = audit["by"] or ("1 person" if audit["people"] == 1 else f"{audit['people']} people")
    return f"{labels} labels by {people}"


def _strata(audit: ExpertAudit) -> list[dict[str, Any]]:
    sizes, labelled = Counter(audit.of.values()), Counter(audit.of[id] for id in audit.said)
    return [{"title": title, "documents": sizes[i], "labelled": labelled[i]} for i, title in enumerate(audit.strata)]


def _numbers(
    answer_sets: Sequence[AnswerSet], scores: Mapping[str, Sequence[Scores]], audit: ExpertAudit
) -> dict[str, Any]:
    rate = rate_by_experts(answer_sets, audit)
    return {
        "aggregates": {name: _aurocs(documents_scores, audit) for name, documents_scores in scores.items()},
        "rates": {"hallucination_rate": _audited_fields(rate)},
    }


def _aurocs(scores: Sequence[Scores], audit: ExpertAudit) -> dict[str, Any]:
    return {name: _audited_fields(auroc_by_experts(scores, name, audit)) for name in detectors_of(scores)}


def _audited_fields(number: Number) -> dict[str, Any]:
    run_low, run_high = (number.run_interval if isinstance(number, Audited) else None) or (None, None)
    return {
        **number_fields(number),
        "run_low": rounded(run_low),
        "run_high": rounded(run_high),
        "n": number.n,
        "n_labels": number.n_labels if isinstance(number, Audited) else 0,
        "reason": number.reason,
    }
