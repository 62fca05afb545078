"""`hedge calibrate`: a threshold that promises a risk, out of a labelled run; and whether it held elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import (
    add_detectors,
    add_scored_run,
    add_trust_policy,
    chosen_detectors,
    chosen_run,
    chosen_scorer,
)
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.guard.by_experts import RunByExperts
    from hedge_tasks.guard.calibrate import PolicyCheck, PolicySearch
    from hedge_tasks.guard.policy import Policy
    from hedge_tasks.judging.designed import ExpertAudit
    from hedge_tasks.numbers import Number, Table
    from hedge_tasks.runs.run_files import Run
    from hedge_tasks.statistics.risk_control import RiskControl

_DEFAULT = ("radflag",)


def add(commands: Parser) -> None:
    text = "find a threshold that bounds the share of hallucinated answers, or check one on another run"
    parser = command(commands, "calibrate", run, text)
    add_scored_run(parser)
    parser.add_argument("--risk", type=float, metavar="R", help="largest share of hallucinated answers let through")
    parser.add_argument("--confidence", type=float, default=0.9, metavar="C", help="that this holds (default: 0.9)")
    add_out(parser, "the policy (JSON)")
    parser.add_argument(
        "--check", type=Path, metavar="POLICY", help="instead: whether this policy's promise held in RUN"
    )
    how = "only questions of this type, which the promise is about then; another type has a policy of its own"
    parser.add_argument("--type", metavar="TYPE", dest="question_type", help=how)
    parser.add_argument(
        "--audit",
        action="store_true",
        help="go by labels of experts, which `hedge audit apply` has put beside RUN: the promise is then about "
        "hallucinations, and not about what the judge calls so",
    )
    add_trust_policy(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the documents that place the candidates (default: 0)")
    add_detectors(parser, _DEFAULT[0])


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError

    finished = chosen_run(arguments)
    if arguments.check is not None:
        return _check(arguments, finished)
    if arguments.risk is None:
        raise ConfigError("--risk: say which share of hallucinated answers may be let through, such as 0.1")
    return _calibrate(arguments, finished)


def _calibrate(arguments: argparse.Namespace, finished: Run) -> int:
    from hedge_tasks.guard.calibrate import calibrate
    from hedge_tasks.guard.policy import save_policy
    from hedge_tasks.measures.headline import headline

    finding = headline(finished)
    detectors = chosen_detectors(arguments, _DEFAULT)
    options = {"risk": arguments.risk, "confidence": arguments.confidence, "seed": arguments.seed}
    options["question_type"] = arguments.question_type
    scorer = chosen_scorer(arguments, finished)
    experts = _experts(arguments, finished)
    calibration = calibrate(experts.run if experts else finished, scorer, detectors, **options)
    if arguments.out is not None and calibration.policy is not None:
        save_policy(calibration.policy, arguments.out)
    facts: dict[str, Any] = {
        "run": finding.to_dict(),
        "policy": calibration.policy.model_dump(mode="json") if calibration.policy else None,
        "tried": calibration.tried,
        "left_out": calibration.left_out,
    }
    text = "\n".join([*finding.lines(), "", _text(finished, calibration, arguments.out)])
    if experts is not None:
        estimate = _risk_by_experts(finished, calibration.policy)
        facts |= {"labels": experts.labels, "labels_tested": experts.kept, "risk_by_experts": estimate}
        text += f"\n{_label_text(experts, estimate)}"
    show(arguments, facts, text)
    return 0 if calibration.policy is not None else PROBLEMS_FOUND


def _experts(arguments: argparse.Namespace, finished: Run) -> RunByExperts | None:
    """Return the run with labels of experts in place of the judge's, where that is asked for."""
    from hedge_tasks.guard.by_experts import labelled_by_experts

    return labelled_by_experts(finished, _audit(finished), arguments.seed) if arguments.audit else None


def _audit(finished: Run) -> ExpertAudit:
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.audit_files import audit_of

    audit = audit_of(finished)
    if audit is None:
        raise DataError(f"{finished.title}: no labels of experts stand beside it; first: hedge audit apply RUN LABELS")
    return audit


def _risk_by_experts(finished: Run, policy: Policy | None) -> Number | None:
    from hedge_tasks.guard.calibrate import accepted, risk_by_experts

    return None if policy is None else risk_by_experts(finished, _audit(finished), accepted(policy, finished))


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


def _text(finished: Run, calibration: PolicySearch, out: Path | None) -> str:
    lines = [finished.title, *([str(_table(calibration))] if calibration.tried else [])]
    lines += [f"{name}: {reason}" for name, reason in calibration.left_out.items()]
    lines += [f"{name}: {_refusal(control)}" for name, control in calibration.tried.items() if control.chosen is None]
    lines.append("")
    lines.append(_promise(calibration.policy) if calibration.policy else "Nothing can be promised with these labels.")
    if calibration.policy and out is not None:
        lines.append(f"Written to {out}; `hedge calibrate OTHER_RUN --check {out}` says whether it holds there.")
    return "\n".join(lines)


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
    only = policy.calibration.question_type
    to_type = f"to questions of the type {only} " if only else ""
    return (
        f"With {WHOLE_PERCENT(promise.confidence)} confidence at most {PERCENT(promise.risk)} of the answers {to_type}"
        f"that {policy.detector} lets through are called hallucinated by {_judge(policy)}; it lets "
        f"{PERCENT(promise.accepted)} through. It is about this model, prompt and decoding, and about questions like "
        f"these {promise.n} ({counted}); {tried}."
    )


def _judge(policy: Policy) -> str:
    judge = policy.calibration.judge
    return "this judge" if judge is None else f"this judge ({judge})"


def _check(arguments: argparse.Namespace, finished: Run) -> int:
    from hedge_tasks.guard.calibrate import check
    from hedge_tasks.guard.policy import load_policy

    policy = load_policy(arguments.check, trust=arguments.trust_policy)
    checked = check(policy, finished, _audit(finished) if arguments.audit else None)
    facts: dict[str, Any] = {"risk": checked.risk, "accepted": checked.accepted}
    facts |= {"held": checked.held, "refuted": checked.refuted, "shifted": checked.shifted}
    show(arguments, facts, _checked(finished, policy, checked))
    return PROBLEMS_FOUND if checked.held is False or checked.shifted else 0


def _risk_text(risk: Number) -> str:
    from hedge_tasks.statistics.experts import Audited

    if isinstance(risk, Audited):
        return f"accepted answers are hallucinated by {risk.n_labels} labels of experts"
    return f"{risk.n_positive} of {risk.n} accepted answers are hallucinated"


def _checked(finished: Run, policy: Policy, checked: PolicyCheck) -> str:
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
    return "\n".join(lines)
