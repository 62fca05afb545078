"""`hedge calibrate`: a threshold that promises a risk, out of a labelled run; and whether it held elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice
from hedge_tasks.cli.printing import Details, typed
from hedge_tasks.io.commands import PROBLEMS_FOUND
from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT, count_of, format_number

if TYPE_CHECKING:
    from hedge_tasks.guard.calibrate import PolicySearch
    from hedge_tasks.guard.policy import Policy
    from hedge_tasks.judging.designed import ExpertAudit
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
) -> tuple[dict[str, Any], int]:
    """Find a threshold that bounds the hallucinated share, or check one.

    Of the detectors that --detectors names the one that lets most through is chosen; radflag if not given.

    Args:
        risk: Largest share of hallucinated answers let through.
        confidence: That this holds.
        out: Where the policy is written (JSON).
        check: Say instead whether the promise of this policy held in RUN; exit code 1 if not, or if too few answers
            can tell.
        type_: Only questions of this type, which the promise is about then; another type has a policy of its own.
        audit: Go by labels of experts, which `hedge audit apply` has put beside RUN: the promise is then about
            hallucinations, and not about what the judge calls so.
        trust_policy: Load the models, functions and packages that the policy names, also where no installed task uses
            them.
        seed: Of the documents that place the candidates.
    """
    from hedge_tasks.errors import ConfigError, DataError
    from hedge_tasks.runs.audit_files import audit_of

    finished = run.load()
    experts = audit_of(finished) if audit else None
    if audit and experts is None:
        raise DataError(f"{finished.title}: no labels of experts stand beside it; first: hedge audit apply RUN LABELS")
    if check is not None:
        return _check(finished, check, trust=trust_policy, experts=experts)
    if risk is None:
        raise ConfigError("--risk: say which share of hallucinated answers may be let through, such as 0.1")
    terms = {"risk": risk, "confidence": confidence, "seed": seed, "question_type": type_}
    return _search(finished, clustering, out, experts, **terms)


def _search(
    finished: Run, clustering: ClusteringChoice, out: Path | None, experts: ExpertAudit | None, **terms: Any
) -> tuple[dict[str, Any], int]:
    """Return facts of a search for a policy, which is written where there is one, and the exit code."""
    from hedge_tasks.guard import calibrate as guard
    from hedge_tasks.guard.by_experts import labelled_by_experts
    from hedge_tasks.guard.policy import save_policy

    finding = clustering.headline(finished)
    tested = labelled_by_experts(finished, experts, terms["seed"]) if experts else finished
    calibration = guard.calibrate(tested, clustering.scorer(finished), clustering.names or ("radflag",), **terms)
    policy = calibration.policy
    facts: dict[str, Any] = {
        "finding": Details(finding),
        "policy": Details(policy.model_dump(mode="json") if policy else None),
        "candidates": _candidates(calibration),
        "left_out": Details(calibration.left_out),
    }
    notes = [*finding.lines(), promise_of(policy) if policy else "Nothing can be promised with these labels."]
    if experts is not None:
        facts |= {"labels": experts.n_labels, "labels_tested": len(tested.answer_sets)}
        if policy is not None:
            estimate = guard.risk_of(finished, guard.accepted(policy, finished), experts)
            facts["risk_by_experts"] = Details(estimate)
            notes.append(f"Hallucinated of it, by the experts: {format_number(estimate, PERCENT, interval=True)}.")
    if policy and out is not None:
        save_policy(policy, out)
        again = typed("calibrate", "OTHER_RUN", "--check", out)
        notes.append(f"Written to {out}; `{again}` says whether it holds there.")
    return {**facts, "notes": notes}, 0 if policy is not None else PROBLEMS_FOUND


def _candidates(calibration: PolicySearch) -> list[dict[str, Any]]:
    """Return the most that each detector can promise, or why it can promise nothing."""
    rows: list[dict[str, Any]] = []
    for name, control in calibration.tried.items():
        if (chosen := control.chosen) is None:
            rows.append({"detector": name, "no_promise": control.reason, "labels_that_might_do": control.more_labels})
        else:
            counts = {"accepted": f"{chosen.n_accepted} of {control.n}", "wrong": chosen.n_wrong}
            rows.append({"detector": name, **counts, "threshold": chosen.threshold})
    return rows


def promise_of(policy: Policy) -> str:
    """Return what a policy promises, in words."""
    promise, calibration = policy.promise, policy.calibration
    to_type = f" to questions of the type {calibration.question_type}" if calibration.question_type else ""
    return (
        f"With {WHOLE_PERCENT(promise.confidence)} confidence at most {PERCENT(promise.risk)} of the answers{to_type} "
        f"that {policy.detector} lets through are called hallucinated by {calibration.judge}; it lets "
        f"{PERCENT(promise.accepted)} through. It is about this model, prompt and decoding, and about questions like "
        f"these {promise.n}; {count_of(promise.n_detectors, 'detector')} and every threshold tried are accounted for."
    )


def _check(finished: Run, file: Path, *, trust: bool, experts: ExpertAudit | None) -> tuple[dict[str, Any], int]:
    from hedge_tasks.guard.calibrate import check
    from hedge_tasks.guard.policy import load_policy

    policy = load_policy(file, trust=trust)
    checked = check(policy, finished, experts)
    facts = {"promised": policy.promise.risk, "accepted_then": policy.promise.accepted, **vars(checked)}
    risk, accepted = (format_number(n, PERCENT, interval=True) for n in (checked.risk, checked.accepted))
    promised = f"promised {PERCENT(facts['promised'])} by {policy.calibration.judge}"
    notes = [
        f"Let through {accepted} (99 %), of it hallucinated {risk} by {checked.judge}; {promised}.",
        f"The promise: {checked.outcome}.",
    ]
    if checked.enough:
        notes.append(f"With labels of {checked.enough} that are let through it might hold.")
    if checked.shifted:
        notes.append("Another share is let through than when calibrated: the questions may be others.")
    code = 0 if checked.outcome == "held" and not checked.shifted else PROBLEMS_FOUND
    return {"run": finished.title, **{k: Details(v) for k, v in facts.items()}, "notes": notes}, code
