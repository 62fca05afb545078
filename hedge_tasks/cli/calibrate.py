"""`hedge calibrate`: a threshold that promises a risk, out of a labelled run; and whether it held elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice, chosen_detectors
from hedge_tasks.cli.printing import Details, typed
from hedge_tasks.io.commands import PROBLEMS_FOUND

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.guard.by_experts import RunByExperts
    from hedge_tasks.guard.calibrate import PolicyCheck, PolicySearch
    from hedge_tasks.guard.policy import Policy
    from hedge_tasks.judging.designed import ExpertAudit
    from hedge_tasks.numbers import Number, Table
    from hedge_tasks.runs.run_files import Run


def calibrate(
    run: RunChoice,
    clustering: ClusteringChoice,
    *,
    risk: float | None = None,
    confidence: float = 0.9,
    out: Path | None = None,
    check: Path | None = None,
    type_: str | None = None,
    audit: bool = False,
    trust_policy: bool = False,
    seed: int = 0,
    detectors: str = "radflag",
) -> tuple[dict[str, Any], int]:
    """Find a threshold that bounds the hallucinated share, or check one.

    Args:
        risk: Largest share of hallucinated answers let through.
        confidence: That this holds.
        out: Where the policy is written (JSON).
        check: Say instead whether the promise of this policy held in RUN.
        type_: Only questions of this type, which the promise is about then; another type has a policy of its own.
        audit: Go by labels of experts, which `hedge audit apply` has put beside RUN: the promise is then about
            hallucinations, and not about what the judge calls so.
        trust_policy: Load the models, functions and packages that the policy names, also where no installed task uses
            them.
        seed: Of the documents that place the candidates.
        detectors: Which ones may be chosen, such as se,radflag.
    """
    from hedge_tasks.errors import ConfigError

    finished = run.load()
    if check is not None:
        return _check(finished, check, trust=trust_policy, experts=_audit(finished) if audit else None)
    if risk is None:
        raise ConfigError("--risk: say which share of hallucinated answers may be let through, such as 0.1")
    scorer = clustering.scorer(finished)
    terms: dict[str, Any] = {"risk": risk, "confidence": confidence, "seed": seed}
    return _search(finished, scorer, detectors, {**terms, "question_type": type_}, out, audit=audit)


def _search(
    finished: Run, scorer: Scorer, names: str, terms: dict[str, Any], out: Path | None, *, audit: bool
) -> tuple[dict[str, Any], int]:
    """Return facts of a search for a policy, which is written where there is one, and the exit code."""
    from hedge_tasks.guard.by_experts import labelled_by_experts
    from hedge_tasks.guard.calibrate import accepted, risk_by_experts
    from hedge_tasks.guard.calibrate import calibrate as search
    from hedge_tasks.guard.policy import save_policy
    from hedge_tasks.measures.headline import headline

    detectors, finding = chosen_detectors(names, ()), headline(finished)
    experts = labelled_by_experts(finished, _audit(finished), terms["seed"]) if audit else None
    calibration = search(experts.run if experts else finished, scorer, detectors, **terms)
    policy = calibration.policy
    if out is not None and policy is not None:
        save_policy(policy, out)
    notes = [*finding.lines(), "", *_text(finished, calibration, out)]
    facts: dict[str, Any] = {
        "run": Details(finding.to_dict()),
        "policy": Details(policy.model_dump(mode="json") if policy else None),
        "tried": Details(calibration.tried),
        "candidates": _table(calibration),
        "left_out": calibration.left_out,
    }
    if experts is not None:
        estimate = risk_by_experts(finished, _audit(finished), accepted(policy, finished)) if policy else None
        facts |= {"labels": experts.labels, "labels_tested": experts.kept, "risk_by_experts": estimate}
        notes.append(_label_text(experts, estimate))
    return {**facts, "notes": notes}, 0 if policy is not None else PROBLEMS_FOUND


def _audit(finished: Run) -> ExpertAudit:
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.audit_files import audit_of

    audit = audit_of(finished)
    if audit is None:
        raise DataError(f"{finished.title}: no labels of experts stand beside it; first: hedge audit apply RUN LABELS")
    return audit


def _label_text(experts: RunByExperts, estimate: Number | None) -> str:
    from hedge_tasks.numbers import PERCENT, format_number

    text = (
        f"Of {experts.labels} labels of experts {experts.kept} are tested, so that every document had the same chance: "
        "which the test for finite samples asks for."
    )
    if estimate is None:
        return text
    number = format_number(estimate, PERCENT, interval=True)
    return f"{text} By all of them the share is {number}."


def _table(calibration: PolicySearch) -> Table:
    from hedge_tasks.numbers import FOUR_DIGITS, PERCENT, Cell, Column, Table

    rows: list[dict[str, Cell]] = []
    for name, control in calibration.tried.items():
        row: dict[str, Cell] = {"detector": name, "promise": "no" if control.chosen is None else "yes"}
        if (chosen := control.chosen) is not None:
            row |= {"accepted": f"{chosen.n_accepted} of {control.n}", "wrong": chosen.n_wrong}
            row |= {"share": chosen.share, "threshold": chosen.threshold}
        rows.append(row)
    columns = [
        Column("detector"),
        Column("accepted"),
        Column("wrong"),
        Column("share", format=PERCENT),
        Column("threshold", "score at most", format=FOUR_DIGITS),
        Column("promise"),
    ]
    return Table(columns, rows)


def _text(finished: Run, calibration: PolicySearch, out: Path | None) -> list[str]:
    policy = calibration.policy
    refused = {name: control for name, control in calibration.tried.items() if control.chosen is None}
    lines = [
        f"{name}: {c.reason}; "
        + (
            f"if what was seen is so, about {n} would do"
            if (n := c.more_labels)
            else "more labels alone would not help"
        )
        for name, c in refused.items()
    ]
    lines += [finished.title, _promise(policy) if policy else "Nothing can be promised with these labels."]
    if policy and out is not None:
        again = typed("calibrate", "OTHER_RUN", "--check", out)
        lines.append(f"Written to {out}; `{again}` says whether it holds there.")
    return lines


def _promise(policy: Policy) -> str:
    from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT

    promise = policy.promise
    counted = f"{promise.n_groups} images" if promise.n_groups is not None else "documents"
    some = f"all {promise.n_detectors} detectors that were tried" if promise.n_detectors > 1 else "one detector"
    tried = f"every threshold of {some} could have been chosen, which is part of the promise"
    only = policy.calibration.question_type
    to_type = f"to questions of the type {only} " if only else ""
    judge = f"this judge ({named})" if (named := policy.calibration.judge) else "this judge"
    return (
        f"With {WHOLE_PERCENT(promise.confidence)} confidence at most {PERCENT(promise.risk)} of the answers {to_type}"
        f"that {policy.detector} lets through are called hallucinated by {judge}; it lets "
        f"{PERCENT(promise.accepted)} through. It is about this model, prompt and decoding, and about questions like "
        f"these {promise.n} ({counted}); {tried}."
    )


def _check(finished: Run, file: Path, *, trust: bool, experts: ExpertAudit | None) -> tuple[dict[str, Any], int]:
    from hedge_tasks.guard.calibrate import check
    from hedge_tasks.guard.policy import load_policy

    policy = load_policy(file, trust=trust)
    checked = check(policy, finished, experts)
    facts: dict[str, Any] = {"risk": checked.risk, "accepted": checked.accepted}
    facts |= {"held": checked.held, "refuted": checked.refuted, "shifted": checked.shifted}
    code = PROBLEMS_FOUND if checked.held is False or checked.shifted else 0
    return {**facts, "notes": _checked(finished, policy, checked)}, code


def _risk_text(risk: Number) -> str:
    from hedge_tasks.statistics.experts import Audited

    if isinstance(risk, Audited):
        return f"accepted answers are hallucinated by {risk.n_labels} labels of experts"
    return f"{risk.n_positive} of {risk.n} accepted answers are hallucinated"


def _checked(finished: Run, policy: Policy, checked: PolicyCheck) -> list[str]:
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.numbers import PERCENT, format_number
    from hedge_tasks.statistics.experts import Audited

    lines = [finished.title]
    if checked.held is None:
        lines.append("Nothing that is accepted here has a label: nothing can be said of the promise.")
    else:
        words = "held" if checked.held else "is refuted" if checked.refuted else "was exceeded, as chance may do"
        lines.append(
            f"The promise {words}: {_risk_text(checked.risk)}, "
            f"{format_number(checked.risk, PERCENT, interval=True)}; at most {PERCENT(policy.promise.risk)} were "
            "promised."
        )
        if not isinstance(checked.risk, Audited):
            lines.append(whose_labels(finished, None))
    shift = (
        "another share than when calibrated: the questions may be others" if checked.shifted else "as when calibrated"
    )
    now = format_number(checked.accepted, PERCENT, interval=True)
    lines.append(f"It lets {now} through, then {PERCENT(policy.promise.accepted)}: {shift}.")
    return lines
