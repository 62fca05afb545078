"""A policy out of a labelled run, and what became of its promise on another one."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.guard.policy import SURE, CalibratedOn, Policy, Promise, circumstances_of, differences
from hedge_tasks.guard.seen import UNASKED, SeenScores, columns
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.judging.outcomes import DECLINED
from hedge_tasks.measures.coverage import MISSING, coverage_of, parts_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import estimate_rate
from hedge_tasks.statistics.base import BoolArray, FloatArray
from hedge_tasks.statistics.risk_control import Candidate, RiskControl, control_risk

_UNASKED = "it needs forced passes or looks inside the model, which a guard does not ask for"


@dataclass(frozen=True)
class PolicySearch:
    """The promise that a run allows.

    Attributes:
        policy: the one that accepts most; None where nothing can be promised.
        tried: by detector.
        left_out: detector -> why it could not be tried.
    """

    policy: Policy | None
    tried: Mapping[str, RiskControl]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class PolicyCheck:
    """A promise on other documents.

    Attributes:
        risk: share of hallucinated answers among the accepted that have a label, with its 95 % interval.
        accepted: share of all documents that is accepted, with its 99 % interval.
        judge: whose labels these are.
        outcome: "held" where the whole interval of the risk is at most the one promised, "broken" where all of it is
            above and few labels are missing; else "not contradicted: too few answers".
        enough: accepted answers with a label at which it would have held, if as many of them are wrong; None where it
            has, or where more would not do.
        shifted: whether the share accepted is another one than in calibration, beyond both intervals.
    """

    risk: Number
    accepted: Number
    judge: str
    outcome: Literal["held", "not contradicted: too few answers", "broken"]
    enough: int | None
    shifted: bool


def calibrate(
    run: Run,
    scorer: Scorer,
    detectors: Sequence[str],
    *,
    risk: float,
    confidence: float = 0.9,
    seed: int = 0,
    question_type: str | None = None,
) -> PolicySearch:
    """Find the threshold that accepts most while its promise holds; see `hedge_tasks.statistics.risk_control`.

    Args:
        run: with labels.
        scorer: clusters as the policy will.
        detectors: names; several are corrected for having been tried.
        risk: largest share of hallucinated answers among the accepted, in (0, 1).
        confidence: that this holds, in (0, 1).
        seed: of the documents that place the starts.
        question_type: only questions of this type, which the promise is about then; None takes all.

    Raises:
        ConfigError: a detector or type of question is unknown, risk or confidence makes no sense, or the clustering's
            threshold is chosen on the documents themselves.
        DataError: no document has a label.
    """
    _check_shares(risk=risk, confidence=confidence)
    run = run if question_type is None else of_type(run, question_type)
    names = [get(name).name for name in dict.fromkeys(detectors)]
    if scorer.choice is not None and any("clusters" in get(name).needs for name in names):
        raise ConfigError(
            f"{scorer.name}: its threshold is chosen on the run's own labels, and a policy needs a fixed one: "
            "--clustering embed:threshold=0.9, or one such as nli"
        )
    if not any(a.label is not None for a in run.answer_sets):
        raise DataError(f"{run.title}: no document has a label")
    left_out = {name: _UNASKED for name in names if get(name).needs & UNASKED}
    scores = columns(run.answer_sets, scorer, [name for name in names if name not in left_out])
    left_out |= {name: _why_none(c.scores, name) for name, c in scores.items() if np.isnan(c.values).all()}
    labels, answered, groups = labels_of(run), ~declined(run), groups_of(run.answer_sets)
    usable = {
        name: replace(c, values=np.where(answered, c.values, math.nan))
        for name, c in scores.items()
        if name not in left_out
    }
    options: dict[str, Any] = {"risk": risk, "confidence": confidence, "groups": groups, "seed": seed}
    tried = {name: control_risk(c.values, labels, n_detectors=len(usable), **options) for name, c in usable.items()}
    held = {name: control.chosen for name, control in tried.items() if control.chosen is not None}
    if not held:
        return PolicySearch(None, tried, left_out)
    best = max(held, key=lambda name: (held[name].share, -get(name).draws(*_draws(run)), name))
    policy = _policy(run, scorer, best, tried[best], held[best], usable[best], labels, question_type)
    return PolicySearch(policy, tried, left_out)


def _check_shares(**shares: float) -> None:
    for name, value in shares.items():
        if not 0 < value < 1:
            raise ConfigError(f"{name}: expected a number between 0 and 1, got {value:g}")


def of_type(run: Run, question_type: str) -> Run:
    """The run's questions of a type alone.

    Raises:
        ConfigError: there are none.
    """
    sets = tuple(a for a in run.answer_sets if a.question_type == question_type)
    if not sets:
        types = sorted({a.question_type for a in run.answer_sets if a.question_type})
        raise (
            unknown("type of question", question_type, types) if types else ConfigError(f"{run.title}: none has a type")
        )
    return replace(run, answer_sets=sets)


def accepted(policy: Policy, run: Run) -> BoolArray:
    """Return which documents a policy lets through."""
    values = columns(run.answer_sets, policy.scorer(), [policy.detector])[policy.detector].values
    return np.asarray((values <= policy.threshold) & ~declined(run))


def risk_of(run: Run, accepted: BoolArray, audit: ExpertAudit | None = None) -> Number:
    """Return the share of hallucinated among accepted answers that have a label.

    Args:
        accepted: by document.
        audit: of the run: the labels are those of experts.
    """
    sets, groups = run.answer_sets, groups_of(run.answer_sets)
    labels = labels_of(run)
    if audit is not None:
        experts = audit.on([a.id for a in sets])
        labels = np.array([experts.label(i) for i in range(len(sets))], dtype=np.float64)
    chosen = np.flatnonzero(accepted & ~np.isnan(labels))
    return estimate_rate(labels[chosen], groups=None if groups is None else [groups[i] for i in chosen])


def _enough(risk: Number, promised: float) -> int | None:
    """At how many answers the interval would end at the promise, if as many of them are wrong.

    Wilson's upper bound u of a share p of n answers solves n (u - p)^2 = z^2 u (1 - u).
    """
    p, high = risk.value, risk.high
    if p is None or high is None or not p < promised < high:
        return None
    return math.ceil(risk.n * ((high - p) / (promised - p)) ** 2 * (promised - promised**2) / (high - high**2))


def check(policy: Policy, run: Run, audit: ExpertAudit | None = None) -> PolicyCheck:
    """The outcome of a promise on a run it was not calibrated on.

    Args:
        audit: of the run: the risk is then against experts.

    Raises:
        ConfigError: the run has another model, decoding, prompt or number of draws: the promise is not about it.
        DataError: there are no answers, or they are those of the calibration.
    """
    if (question_type := policy.calibration.question_type) is not None:
        run = of_type(run, question_type)
    if mismatches := differences(policy, run):
        raise ConfigError(f"{run.title}: the promise is not about it. {'; '.join(mismatches)}")
    if not run.answer_sets:
        raise DataError(f"{run.title}: there are no answers")
    taken = accepted(policy, run)
    if _digest(run) == policy.calibration.digest:
        raise DataError(f"{run.title}: these are the documents it was calibrated on, where the promise proves nothing")
    share = estimate_rate(taken.astype(float), groups=groups_of(run.answer_sets), confidence=SURE)
    risk = risk_of(run, taken, audit)
    promised, (low, high) = policy.promise.risk, risk.interval or (0.0, 1.0)
    unknown = audit is None and coverage_of(run).partial  # counted as hallucinated: only what holds then is known
    few: Literal["not contradicted: too few answers"] = "not contradicted: too few answers"
    outcome = "held" if high <= promised else "broken" if low > promised and not unknown else few
    judge, shifted = "experts" if audit else judge_of(run), apart(share.interval, policy.promise.accepted_interval)
    return PolicyCheck(risk, share, judge, outcome, _enough(risk, promised), shifted)


def _policy(
    run: Run,
    scorer: Scorer,
    detector: str,
    control: RiskControl,
    chosen: Candidate,
    scores: SeenScores,
    labels: FloatArray,
    question_type: str | None,
) -> Policy:
    promise = Promise(
        risk=control.risk,
        confidence=control.confidence,
        accepted=float(np.mean(scores.values <= chosen.threshold)),
        n=control.n,
        n_groups=control.n_groups,
        n_accepted=chosen.n_accepted,
        n_wrong=chosen.n_wrong,
        n_detectors=control.n_detectors,
    )
    names = ((run.settings.get("sampled") or {}).get("server") or {}).get("answered_as")
    calibration = CalibratedOn(
        task=run.task,
        created=run.created,
        coverage=coverage_of(run),
        judge=judge_of(run),
        digest=_digest(run),
        weighting=scores.weighting,
        answered_as=tuple(map(str, names)) if isinstance(names, list) else (),
        question_type=question_type,
    )
    return Policy(
        detector=detector,
        threshold=chosen.threshold,
        clustering=dict(scorer.settings()),
        promise=promise,
        circumstances=circumstances_of(run),
        calibration=calibration,
    )


def judge_of(run: Run) -> str:
    judges = sorted({str(verdict["judge"]) for verdict in run.verdicts.values() if verdict.get("judge")})
    return ", ".join(judges) or "labels that came along"


def labels_of(run: Run) -> FloatArray:
    """Return 1 (hallucinated), 0 or nan (not known) by document.

    What is missing is not like the rest: where more than 5 % are, every missing one counts as hallucinated, so that a
    promise holds whatever they are.
    """
    parts, missing = parts_of(run), 1.0 if coverage_of(run).partial else math.nan
    unknown = {part: missing if part in MISSING else math.nan for part in (*MISSING, DECLINED)}
    return np.array([unknown[parts[a.id]] if a.label is None else a.label for a in run.answer_sets], dtype=np.float64)


def declined(run: Run) -> BoolArray:
    """Return which documents' answers claim nothing: there is nothing to let through, whatever they score."""
    parts = parts_of(run)
    return np.array([parts[a.id] == DECLINED for a in run.answer_sets], dtype=bool)


def groups_of(answers: Sequence[AnswerSet]) -> list[str] | None:
    """Documents without a group stand for themselves."""
    if all(a.group is None for a in answers):
        return None
    return [f"group {a.group}" if a.group is not None else f"document {i}" for i, a in enumerate(answers)]


def _draws(run: Run) -> tuple[int, int]:
    first = run.answer_sets[0]
    return len(first.clean), len(first.noisy)


def _why_none(scores: Sequence[Scores], name: str) -> str:
    return next((s.left_out[name] for s in scores if name in s.left_out), "it has no score for any document")


def _digest(run: Run) -> str:
    """Of the documents, whatever was answered: other draws of the same ones prove nothing either.

    Numbers of rows name no document, and go with the answer.
    """
    rows = sorted([a.id, a.question, a.reference, a.id.isdigit() and a.baseline.text] for a in run.answer_sets)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def apart(first: tuple[float, float] | None, second: tuple[float, float]) -> bool:
    """Whether two intervals have nothing in common."""
    return first is not None and (first[0] > second[1] or first[1] < second[0])
