"""A policy out of a labelled run, and what became of its promise on another one."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.policy import Policy, Promise, circumstances_of, differences
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Estimate, estimate_rate
from hedge_tasks.statistics.risk_control import Candidate, RiskControl, control_risk

_SURE = 0.99


@dataclass(frozen=True)
class Calibration:
    """What a run lets one promise.

    Attributes:
        policy: the one that accepts most; None where nothing can be promised.
        tried: by detector.
        left_out: detector -> why it could not be tried.
    """

    policy: Policy | None
    tried: Mapping[str, RiskControl]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Check:
    """A promise on other documents.

    Attributes:
        risk: share of hallucinated answers among the accepted that have a label, with its 95 % interval.
        accepted: share of all documents that is accepted, with its 99 % interval.
        held: whether the share seen is at most the risk promised; None where nothing accepted has a label.
        refuted: whether it is so far above that chance alone does not explain it (the whole interval is above).
        shifted: whether the share accepted is another one than in calibration, beyond both intervals.
    """

    risk: Estimate
    accepted: Estimate
    held: bool | None
    refuted: bool
    shifted: bool


def calibrate(
    run: Run, scorer: Scorer, detectors: Sequence[str], *, risk: float, confidence: float = 0.9, seed: int = 0
) -> Calibration:
    """Find the threshold that accepts most while its promise holds; see `hedge_tasks.statistics.risk_control`.

    Args:
        run: with labels.
        scorer: clusters as the policy will.
        detectors: names; several are corrected for having been tried.
        risk: largest share of hallucinated answers among the accepted, in (0, 1).
        confidence: that this holds, in (0, 1).
        seed: of the documents that place the candidates.

    Raises:
        ConfigError: a detector is unknown, risk or confidence makes no sense, or the clustering's threshold is chosen
            on the documents themselves.
        DataError: no document has a label.
    """
    for name, value in (("risk", risk), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ConfigError(f"{name}: expected a number between 0 and 1, got {value:g}")
    asked = [get(name).name for name in dict.fromkeys(detectors)]
    if scorer.choice is not None and any("clusters" in get(name).needs for name in asked):
        raise ConfigError(
            f"{scorer.name}: its threshold is chosen on the run's own labels, and a policy needs a fixed one: "
            "--clustering embed --threshold 0.9, or a filter such as nli"
        )
    if not any(a.label is not None for a in run.answer_sets):
        raise DataError(f"{run.title}: no document has a label")
    scores = scorer.with_detectors(asked).score(run.answer_sets)
    left_out = {name: _why_none(scores, name) for name in asked if all(s[name] is None for s in scores)}
    columns = {name: [s[name] for s in scores] for name in asked if name not in left_out}
    labels, groups = _labels(scores), _groups(scores)
    options: dict[str, Any] = {
        "risk": risk,
        "confidence": confidence,
        "groups": groups,
        "n_detectors": len(columns),
        "seed": seed,
    }
    tried = {name: control_risk(_floats(values), labels, **options) for name, values in columns.items()}
    held = {name: found.chosen for name, found in tried.items() if found.chosen is not None}
    if not held:
        return Calibration(None, tried, left_out)
    best = max(held, key=lambda name: (held[name].share, -get(name).draws(*_draws(run)), name))
    policy = _policy(run, scorer, best, tried[best], held[best], [s.id for s in scores], columns[best], labels)
    return Calibration(policy, tried, left_out)


def check(policy: Policy, run: Run) -> Check:
    """What became of a promise on a run it was not calibrated on.

    Raises:
        ConfigError: the run has another model, decoding, prompt or number of draws: the promise is not about it.
        DataError: there are no answers, or they are those of the calibration.
    """
    if found := differences(policy, run):
        raise ConfigError(f"{run.title}: the promise is not about it. {'; '.join(found)}")
    if not run.answer_sets:
        raise DataError(f"{run.title}: there are no answers")
    scores = policy.scorer().score(run.answer_sets)
    values, labels = [s[policy.detector] for s in scores], _labels(scores)
    if _digest([s.id for s in scores], values, labels) == policy.calibration.get("digest"):
        raise DataError(f"{run.title}: these are the documents it was calibrated on, where the promise proves nothing")
    groups = _groups(scores)
    taken = _floats(values) <= policy.threshold
    accepted = estimate_rate(taken.astype(float), groups=groups, confidence=_SURE)
    known = taken & ~np.isnan(labels)
    of_known = [g for g, k in zip(groups, known, strict=True) if k] if groups is not None else None
    risk = estimate_rate(labels[known], groups=of_known)
    held = None if risk.value is None else risk.value <= policy.promise.risk
    refuted = risk.interval is not None and risk.interval[0] > policy.promise.risk
    return Check(risk, accepted, held, refuted, _apart(accepted.interval, policy.promise.accepted_interval))


def _policy(
    run: Run,
    scorer: Scorer,
    detector: str,
    control: RiskControl,
    chosen: Candidate,
    ids: Sequence[str],
    values: Sequence[float | None],
    labels: np.ndarray,
) -> Policy:
    # The images are what is independent; that they are fewer than the documents widens the interval.
    effective = control.n_groups or control.n
    promise = Promise(
        risk=control.risk,
        confidence=control.confidence,
        accepted=chosen.share,
        accepted_interval=_wilson(chosen.share, effective),
        n=control.n,
        n_groups=control.n_groups,
        n_accepted=chosen.n_accepted,
        n_wrong=chosen.n_wrong,
        p_value=chosen.p_value,
        n_hypotheses=control.n_hypotheses,
    )
    calibration = {
        "task": run.task,
        "created": run.created,
        "documents": len(ids),
        "labelled": int((~np.isnan(labels)).sum()),
        "judge": (run.settings.get("documents") or {}).get("judge"),
        "digest": _digest(ids, values, labels),
    }
    return Policy(detector, chosen.threshold, scorer.settings(), promise, circumstances_of(run), calibration)


def _labels(scores: Sequence[Scores]) -> np.ndarray:
    return _floats([s.label for s in scores])


def _groups(scores: Sequence[Scores]) -> list[str] | None:
    """Documents without a group stand for themselves."""
    if all(s.group is None for s in scores):
        return None
    return [f"group {s.group}" if s.group is not None else f"document {i}" for i, s in enumerate(scores)]


def _floats(values: Sequence[float | int | None]) -> np.ndarray:
    return np.array([math.nan if v is None else v for v in values], dtype=np.float64)


def _draws(run: Run) -> tuple[int, int]:
    first = run.answer_sets[0]
    return len(first.clean), len(first.noisy)


def _why_none(scores: Sequence[Scores], name: str) -> str:
    return next((s.left_out[name] for s in scores if name in s.left_out), "it has no score for any document")


def _digest(ids: Sequence[str], values: Sequence[float | None], labels: np.ndarray) -> str:
    rows = sorted(zip(map(str, ids), map(repr, values), map(repr, labels.tolist()), strict=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _wilson(share: float, n: int) -> tuple[float, float]:
    from hedge_tasks.statistics.base import wilson

    return wilson(share, n, _SURE)


def _apart(one: tuple[float, float] | None, other: tuple[float, float]) -> bool:
    return one is not None and (one[0] > other[1] or one[1] < other[0])
