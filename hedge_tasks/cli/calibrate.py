"""`hedge calibrate`: a threshold that promises a risk, out of a labelled run; and whether it held elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice, chosen_detectors, listed, with_fitted
from hedge_tasks.io.commands import PROBLEMS_FOUND
from hedge_tasks.runs.run_files import load_run

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.guard.by_experts import RunByExperts
    from hedge_tasks.guard.calibrate import PolicyCheck, PolicySearch
    from hedge_tasks.guard.policy import Policy
    from hedge_tasks.judging.designed import ExpertAudit
    from hedge_tasks.numbers import Number, Table
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.statistics.risk_control import RiskControl

_MOST_PLANNED = 20_000


def calibrate(
    run: RunChoice,
    clustering: ClusteringChoice,
    *,
    risk: float | None = None,
    confidence: float = 0.9,
    epsilon: float = 0.0,
    out: Path | None = None,
    check: Path | None = None,
    type_: str | None = None,
    no_sentinels: bool = False,
    audit: bool = False,
    plan: str | None = None,
    fit_on: Path | None = None,
    trust_policy: bool = False,
    seed: int = 0,
    detectors: str = "radflag",
) -> tuple[dict[str, Any], int]:
    """Find a threshold that bounds the hallucinated share, or check one.

    Args:
        risk: Largest share of hallucinated answers let through.
        confidence: That this holds.
        epsilon: Let RadFlag's draws end where the other verdict has at most this probability; 0 is only where certain.
        out: Where the policy is written (JSON).
        check: Say instead whether the promise of this policy held in RUN.
        type_: Only questions of this type, which the promise is about then; another type has a policy of its own.
        no_sentinels: Keep no question and picture in the policy, by which the guard would check the server.
        audit: Go by labels of experts, which `hedge audit apply` has put beside RUN: the promise is then about
            hallucinations, and not about what the judge calls so.
        plan: Say instead what so many labels may be hoped to give, such as 200,500,1000; RUN is a pilot with some
            labels.
        fit_on: Fit detectors that are fitted (`hedge probes`) on this run of the same model, not on half of RUN's
            images.
        trust_policy: Load the models, functions and packages that the policy names, also where no installed task uses
            them.
        seed: Of the documents that place the candidates.
        detectors: Which ones may be chosen, such as se,radflag, or fused:se+msp.
    """
    from hedge_tasks.errors import ConfigError

    finished = run.load()
    if check is not None:
        return _check(finished, check, trust=trust_policy, experts=_audit(finished) if audit else None)
    if risk is None:
        raise ConfigError("--risk: say which share of hallucinated answers may be let through, such as 0.1")
    scorer = clustering.scorer(finished)
    terms: dict[str, Any] = {"risk": risk, "confidence": confidence, "seed": seed}
    if plan is not None:
        return _plan(finished, scorer, detectors, plan, type_, terms), 0
    terms |= {"epsilon": epsilon, "question_type": type_}
    training = load_run(fit_on, None, trust=run.trust_run) if fit_on else None
    return _search(finished, scorer, detectors, terms, training, out, sentinels=not no_sentinels, audit=audit)


def _search(
    finished: Run,
    scorer: Scorer,
    names: str,
    terms: dict[str, Any],
    training: Run | None,
    out: Path | None,
    *,
    sentinels: bool,
    audit: bool,
) -> tuple[dict[str, Any], int]:
    """Return facts of a search for a policy, which is written where there is one, and the exit code."""
    from hedge_tasks.guard.by_experts import labelled_by_experts
    from hedge_tasks.guard.calibrate import accepted, risk_by_experts
    from hedge_tasks.guard.calibrate import calibrate as search
    from hedge_tasks.guard.fitted import fit_apart
    from hedge_tasks.guard.fused import members_of
    from hedge_tasks.guard.policy import save_policy

    fused = [members for name in listed(names) if (members := members_of(name))]
    detectors, to_fit = with_fitted([name for name in listed(names) if not members_of(name)])
    pictures, without = _pictures(finished, sentinels=sentinels)
    options, facts, notes = {**terms, "pictures": pictures}, dict[str, Any](), list[str]()
    if to_fit or fused:
        apart = fit_apart(finished, scorer, to_fit, fused=fused, fit_on=training, seed=terms["seed"])
        finished, detectors, options["fitted"] = apart.run, (*detectors, *apart.states), apart.states
        facts["fitted"] = {name: state.documents for name, state in apart.states.items()}
        n, rest = max(facts["fitted"].values()), len(finished.answer_sets)
        notes.append(f"Fitted on {n} other documents; the promise rests on {rest} it has not seen.")
    experts = labelled_by_experts(finished, _audit(finished), terms["seed"]) if audit else None
    calibration = search(experts.run if experts else finished, scorer, detectors, **options)
    if out is not None:
        calibration = _with_attempts(calibration, terms, detectors, finished, out)
        if calibration.policy is not None:
            save_policy(calibration.policy, out)
    policy = calibration.policy
    about = {"policy": None, "tried": calibration.tried, "candidates": _table(calibration)}
    facts = {**about, "left_out": calibration.left_out, **facts}
    if policy is not None:
        dumped = {**policy.model_dump(mode="json"), "sentinels": f"{len(policy.sentinels)} questions"}
        facts |= {"policy": dumped, "watched": len(policy.sentinels)}
    if experts is not None:
        estimate = risk_by_experts(finished, _audit(finished), accepted(policy, finished)) if policy else None
        facts |= {"labels": experts.labels, "labels_tested": experts.kept, "risk_by_experts": estimate}
        notes.append(_label_text(experts, estimate))
    facts["notes"] = [*_text(finished, calibration, out, without), *notes]
    return facts, 0 if policy is not None else PROBLEMS_FOUND


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
        "a test for finite samples has little power with the plan's weights."
    )
    if estimate is None:
        return text
    number = format_number(estimate, PERCENT, interval=True)
    return f"{text} By all of them, doubly robust and asymptotic, the share is {number}."


def _with_attempts(
    calibration: PolicySearch, terms: dict[str, Any], detectors: Sequence[str], finished: Run, out: Path
) -> PolicySearch:
    """Return the calibration with its policy's ledger of attempts, this one included."""
    from hedge_tasks.guard.ledger import note_attempt

    policy = calibration.policy
    attempt = {**terms, "detectors": list(detectors), "task": finished.task, "model": finished.model}
    attempts = note_attempt(out, {**attempt, "run": finished.created, "promise": policy is not None})
    if policy is None:
        return calibration
    return replace(calibration, policy=policy.replaced(calibration={**policy.calibration, "attempts": attempts}))


def _plan(
    finished: Run, scorer: Scorer, detectors: str, plan: str, question_type: str | None, terms: dict[str, Any]
) -> dict[str, Any]:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.guard.calibrate import of_type
    from hedge_tasks.guard.planning import plan as planned_labels
    from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT, Column, Table

    parts = listed(plan)
    if not all(part.isdecimal() and 0 < int(part) <= _MOST_PLANNED for part in parts):
        raise ConfigError(f"--plan: expected numbers of labels up to {_MOST_PLANNED}, got {plan!r}")
    finished = finished if question_type is None else of_type(finished, question_type)
    [detector, *others] = chosen_detectors(detectors, ())
    if others:
        raise ConfigError("--plan: it is for one detector; name one with --detectors")
    plans = planned_labels(finished, scorer, detector, [int(part) for part in parts], **terms)
    columns = [
        Column("labels"),
        *(
            Column(key, title, format=PERCENT)
            for key, title in (("accepted", ""), ("low", "80 %: from"), ("high", "to"))
        ),
        Column("chance", "anything can be promised", format=WHOLE_PERCENT),
    ]
    note = "From this run's labels, drawn again: a small pilot says little."
    return {"detector": detector, "plan": Table(columns, [asdict(planned) for planned in plans], notes=[note])}


def _pictures(finished: Run, *, sentinels: bool) -> tuple[dict[str, list[bytes]], str]:
    """Return the files of the run's pictures by document, for the sentinel questions; and why there are none."""
    from hedge_tasks.report.pictures import stored_documents

    if not sentinels:
        return {}, "--no-sentinels"
    documents = finished.settings.get("documents") or {}
    if documents and not documents.get("images"):
        return {answers.id: [] for answers in finished.answer_sets}, ""
    stored, reason = stored_documents(finished)
    return {document.id: list(document.files) for document in stored}, reason


def _sentinel_text(policy: Policy, without: str) -> str:
    if n := len(policy.sentinels):
        return (
            f"{n} of the questions are in the policy with their pictures: the guard asks them to see whether the "
            "server still answers as it did."
        )
    why = without or "too few questions have several answers"
    return (
        "The guard notices a server that answers from a cache, or always the same, only by the share that it accepts, "
        f"and late: {why}"
    )


def _table(calibration: PolicySearch) -> Table:
    from hedge_tasks.numbers import FOUR_DIGITS, PERCENT, Cell, Column, Table

    rows: list[dict[str, Cell]] = []
    for name, control in calibration.tried.items():
        row: dict[str, Cell] = {"detector": name, "promise": "no" if control.chosen is None else "yes"}
        if (chosen := control.chosen) is not None:
            row |= {"accepted": f"{chosen.n_accepted} of {control.n}", "wrong": chosen.n_wrong, "share": chosen.share}
            row["threshold"] = chosen.threshold
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


def _text(finished: Run, calibration: PolicySearch, out: Path | None, without: str) -> list[str]:
    policy = calibration.policy
    lines = [f"{name}: {_refusal(control)}" for name, control in calibration.tried.items() if control.chosen is None]
    lines += [finished.title, _promise(policy) if policy else "Nothing can be promised with these labels."]
    if policy:
        lines.append(_sentinel_text(policy, without))
        if out is not None:
            again = shlex.join(["hedge", "calibrate", "OTHER_RUN", "--check", str(out)])
            lines.append(f"Written to {out}; `{again}` says whether it holds there.")
    return lines


def _refusal(control: RiskControl) -> str:
    if control.more_labels is None:
        return f"{control.reason}; more labels alone would not help"
    return f"{control.reason}; if what was seen is so, about {control.more_labels} would do"


def _promise(policy: Policy) -> str:
    from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT

    promise = policy.promise
    counted = f"{promise.n_groups} images" if promise.n_groups is not None else "documents"
    some = f"all {promise.n_detectors} detectors that were tried" if promise.n_detectors > 1 else "one detector"
    tried = f"every threshold of {some} could have been chosen, which is part of the promise"
    early = (
        f" Its draws end early at epsilon {policy.epsilon:g}, which is part of the promise." if policy.epsilon else ""
    )
    only = policy.calibration.get("question_type")
    to_type = f"to questions of the type {only} " if only else ""
    return (
        f"With {WHOLE_PERCENT(promise.confidence)} confidence at most {PERCENT(promise.risk)} of the answers {to_type}"
        f"that {policy.detector} lets through are called hallucinated by {_judge(policy)}; it lets "
        f"{PERCENT(promise.accepted)} through. It is about this model, prompt and decoding, and about questions like "
        f"these {promise.n} ({counted}); {tried}.{early}{_attempts(policy)}"
    )


def _attempts(policy: Policy) -> str:
    n = len(policy.calibration.get("attempts", ()))
    return (
        f" It came after {n - 1} other attempts, which nothing accounts for: check it on new labels." if n > 1 else ""
    )


def _judge(policy: Policy) -> str:
    judge = policy.calibration.get("judge")
    return "this judge" if not isinstance(judge, str) else f"this judge ({judge})"


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
    from hedge_tasks.statistics.verified import Audited

    if isinstance(risk, Audited):
        return f"accepted answers are hallucinated by {risk.n_labels} labels of experts (doubly robust, asymptotic)"
    return f"{risk.n_positive} of {risk.n} accepted answers are hallucinated"


def _checked(finished: Run, policy: Policy, checked: PolicyCheck) -> list[str]:
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.numbers import PERCENT, format_number
    from hedge_tasks.statistics.verified import Audited

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
