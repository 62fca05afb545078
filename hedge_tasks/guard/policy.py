"""A policy: up to which score an answer is accepted, what that promises, and under which circumstances."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Strict, model_validator

from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.fitted import FittedState
from hedge_tasks.guard.seen import MOST_EPSILON
from hedge_tasks.guard.sentinels import Sentinel
from hedge_tasks.guard.trust import check_trust
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import AtLeastOne, Count, Items, Name, Objects, Pair, Record, Share
from hedge_tasks.numbers import PERCENT
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.statistics.base import wilson
from hedge_tasks.statistics.grouped_risk import grouped_p_value
from hedge_tasks.statistics.risk_control import binomial_p_value

FORMAT = 1
_HEADER, _DIGEST = "hedge_policy", "digest"
_LARGEST = 16 << 20  # of which the sentinels' pictures are nearly all


Bet = Annotated[tuple[AtLeastOne, Count], Strict(False)]


class Promise(Record):
    """The promise that holds for answers that a policy accepts.

    Attributes:
        risk: at most this share of them is hallucinated,
        confidence: with this probability over the choice of the calibration documents.
        accepted: share of the calibration's documents that is accepted, those without a label and declined ones, which
            never are, included: so it is comparable with what comes in later.
        accepted_interval: its 99 % interval, from which another run's share should not stray.
        n: labelled documents that were tested on.
        n_groups: groups (images) of them; None where each stood for itself.
        n_accepted, n_wrong: of them, those accepted, and those of these that were hallucinated.
        bets: where there are groups, (accepted, wrong) of each with any, in the order in which they were bet on.
        largest: documents of the largest group.
        p_value: for the hypothesis that the risk is higher; it follows from the counts above.
        level: the p-value may at most be this; the levels of all thresholds that could have been chosen, of all
            detectors that were tried, leave the confidence as it is (`hedge_tasks.statistics.risk_control`).
        n_detectors: detectors that were tried.
    """

    risk: Share
    confidence: Share
    accepted: Share
    accepted_interval: Pair[Share]
    n: Count
    n_groups: Count | None
    n_accepted: Count
    n_wrong: Count
    p_value: Share
    level: Share
    n_detectors: AtLeastOne
    bets: Items[Bet] = ()
    largest: AtLeastOne = 1

    @model_validator(mode="after")
    def _follows_from_its_counts(self) -> Self:
        for says_no in (_no_counts, _no_groups, _no_shares, _no_proof):
            if (reason := says_no(self)) is not None:
                raise ValueError(reason)
        return self


def _no_counts(p: Promise) -> str | None:
    for name in ("risk", "confidence"):
        if not 0 < getattr(p, name) < 1:
            return f"{name}: expected a number between 0 and 1, got {getattr(p, name):g}"
    if not 0 < p.n_accepted <= p.n:
        return f"n_accepted: {p.n_accepted} of {p.n} documents cannot be"
    return f"n_wrong: {p.n_wrong} of {p.n_accepted} accepted cannot be" if p.n_wrong > p.n_accepted else None


def _no_groups(p: Promise) -> str | None:
    if p.n_groups is None:
        return "bets: there are no groups to bet on" if p.bets or p.largest != 1 else None
    if not p.n_groups <= p.n <= p.n_groups * p.largest or p.largest + p.n_groups - 1 > p.n:
        return f"n_groups: {p.n} documents are not {p.n_groups} groups, the largest one of {p.largest}"
    accepted, wrong = (sum(counts) for counts in zip(*p.bets, strict=True)) if p.bets else (0, 0)
    if (accepted, wrong) != (p.n_accepted, p.n_wrong) or len(p.bets) > p.n_groups:
        return f"bets: {wrong} of {accepted} are wrong in {len(p.bets)} groups, which are not the counts beside them"
    if any(w > a or a > p.largest for a, w in p.bets):
        return "bets: in some groups more is accepted than they have, or more wrong than accepted"
    return None


def _no_shares(p: Promise) -> str | None:
    interval = sure_interval(p.accepted, p.n_groups or p.n)
    if not np.allclose(interval, p.accepted_interval, rtol=_SAME, atol=_SAME):
        return "accepted_interval: it does not follow from the counts"
    return None


def _no_proof(p: Promise) -> str | None:
    if p.n_groups is None:
        p_value = binomial_p_value(p.n_accepted, p.n_wrong, p.risk)
    elif 0 < p.level < 1:
        p_value = grouped_p_value(p.bets, largest=p.largest, risk=p.risk, level=p.level)
    else:
        return f"level: expected a number between 0 and 1, got {p.level:g}"
    if not math.isclose(p_value, p.p_value, rel_tol=_SAME, abs_tol=1e-300):
        return f"p_value: from the counts follows {p_value:.4g}, not {p.p_value:.4g}"
    if p.level > (1 - p.confidence) / p.n_detectors * (1 + _SAME):
        return f"level: {p.level:g} is more than {p.n_detectors} detectors may have at this confidence"
    if p.p_value > p.level:
        return f"p_value: {p.p_value:g} is above the level {p.level:g}, so that nothing is promised"
    return None


_SAME = 1e-6
"""Relative difference of two numbers that are the same, computed by two versions of a library."""

SURE = 0.99


def sure_interval(share: float, n: int) -> tuple[float, float]:
    """The 99 % interval of a share of n that is accepted."""
    return wilson(share, n, SURE)


class Policy(Record):
    """When to accept an answer.

    Attributes:
        detector: whose score decides.
        threshold: a score of at most this is accepted.
        clustering: settings of the clustering, as a run records them.
        promise: what holds for the accepted.
        circumstances: what the promise is bound to: model, sampling, prompt, pictures' columns; see `circumstances_of`.
        calibration: where it comes from: task, time, documents, judge, and a digest of ids, labels and scores;
            `question_type` where the promise is about one alone;
            `attempts` that led to it (`hedge_tasks.guard.ledger`); `scores`, 100 quantiles of the scores of all
            documents (None where there is none);
            `weighting` where the score depends on log-probabilities ("logprob" or "uniform"), `answered_as` where the
            server said which model it was.
        epsilon: of the predicted end of the draws; 0 for none. See `hedge_tasks.guard.curtailment`.
        looks: numbers of draws at the interim analyses; none without an epsilon.
        sentinels: questions with the calibrated answers, by which the server is checked; none where nothing is watched.
        fitted: state of a fitted detector, which `detector` is then called after.
    """

    detector: Name
    threshold: float
    clustering: Objects[Any]
    promise: Promise
    circumstances: Objects[Any]
    calibration: Objects[Any]
    epsilon: Share = 0.0
    looks: Items[AtLeastOne] = ()
    sentinels: Items[Sentinel] = ()
    fitted: FittedState | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        for says_no in (_no_looks, _no_circumstances, _no_calibration, _no_fitted):
            if (reason := says_no(self)) is not None:
                raise ValueError(reason)
        return self

    def scorer(self) -> Scorer:
        """Settings that score answers as the calibration did.

        Raises:
            ConfigError: the settings make no clustering here, or the detector is not installed.
        """
        if self.fitted is not None:
            self.fitted.admit()
        return Scorer.from_settings("policy", self.clustering).with_detectors([self.detector])

    def scorer_of(self, run: Run) -> Scorer:
        """As `scorer`, with what a run keeps from inside the model."""
        return self.scorer().with_inside(inside_source(run))


def _no_fitted(p: Policy) -> str | None:
    matches = p.fitted is None or p.fitted.name == p.detector
    return None if matches else f"fitted: it is the state of {p.fitted and p.fitted.name}, not of {p.detector}"


def _no_looks(p: Policy) -> str | None:
    if p.epsilon > MOST_EPSILON:
        return f"epsilon: expected a number from 0 to {MOST_EPSILON:g}, got {p.epsilon:g}"
    if bool(p.looks) != (p.epsilon > 0):
        return "looks: there are some with an epsilon, and none without"
    if any(a >= b for a, b in pairwise(p.looks)):
        return "looks: expected growing numbers"
    n = (p.circumstances.get("sampling") or {}).get("n", 0) if p.looks else 0
    return f"looks: the last one is at {p.looks[-1]} of {n} draws" if p.looks and p.looks[-1] != n else None


def _no_circumstances(p: Policy) -> str | None:
    for name in ("sampling", "prompt"):
        if not isinstance(p.circumstances.get(name, {}), dict):
            return f"circumstances.{name}: expected an object, got {outside.shown(p.circumstances[name])}"
    if not isinstance(p.circumstances.get("model"), str):
        return f"circumstances.model: expected a text, got {outside.shown(p.circumstances.get('model'))}"
    if foreign := p.circumstances.keys() - {"model", "sampling", "prompt"}:
        return f"circumstances: {min(foreign)!r} is none"
    # What is perturbed, and by whose code, is a question of trust.
    sampling = {k: v for k, v in p.circumstances.get("sampling", {}).items() if k not in ("perturbation", "strength")}
    try:
        plan = SamplingPlan.from_generation_kwargs(sampling)
    except (ConfigError, TypeError, ValueError) as error:
        return f"circumstances.sampling: {error}"
    cold = sampling and plan.temperature <= 0
    return "circumstances.sampling.temperature: at 0 all draws are the same" if cold else None


def _no_calibration(p: Policy) -> str | None:
    calibration = p.calibration
    counts = [calibration.get(name, p.promise.n) for name in ("labelled", "documents")]
    if any(isinstance(c, bool) or not isinstance(c, int) for c in counts) or not p.promise.n <= counts[0] <= counts[1]:
        return f"calibration: {p.promise.n} tested, {counts[0]} labelled, {counts[1]} documents in all cannot be"
    if calibration.get("weighting") not in (None, "logprob", "uniform"):
        return f"calibration.weighting: expected logprob or uniform, got {outside.shown(calibration['weighting'])}"
    names = calibration.get("answered_as", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return "calibration.answered_as: expected a list of names"
    if not isinstance(calibration.get("question_type", ""), str):
        return "calibration.question_type: expected a text"
    attempts = calibration.get("attempts", [])
    if not isinstance(attempts, list) or not all(isinstance(attempt, dict) for attempt in attempts):
        return "calibration.attempts: expected a list of objects"
    return _no_scores(p)


def _no_scores(p: Policy) -> str | None:
    scores = p.calibration.get("scores")
    if not isinstance(scores, list) or len(scores) != QUANTILES or not all(_is_score(score) for score in scores):
        return f"calibration.scores: expected {QUANTILES} scores, or null where there is none"
    finite = [score for score in scores if score is not None]
    if finite != sorted(finite) or finite != scores[: len(finite)]:
        return "calibration.scores: expected growing numbers"
    share, (low, high) = sum(score <= p.threshold for score in finite) / QUANTILES, p.promise.accepted_interval
    if not low - 1 / QUANTILES <= share <= high + 1 / QUANTILES:
        then = PERCENT(p.promise.accepted)
        return f"threshold: {p.threshold:g} accepts {PERCENT(share)} of the calibration's scores, not {then}"
    return None


def _is_score(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value))


QUANTILES = 100
"""Of the scores of all documents, which a policy keeps."""


def circumstances_of(run: Run) -> dict[str, Any]:
    """Conditions of a promise: with another model, decoding, prompt or number of draws it says nothing."""
    sampling = {k: v for k, v in (run.settings.get("sampling") or {}).items() if k not in _NOT_OF_THE_PROMISE}
    return {"model": run.model, "sampling": sampling, "prompt": run.settings.get("prompt") or {}}


_NOT_OF_THE_PROMISE = frozenset({"seed", "max_failed", "image_check", "probe"})
"""Settings of sampling that change no distribution of answers."""


def differences(policy: Policy, run: Run) -> list[str]:
    """In what a run differs from the circumstances of a policy, one line a setting."""
    ours, theirs = _flat(policy.circumstances), _flat(circumstances_of(run))
    return [
        f"{key}: {outside.shown(ours.get(key))} when calibrated, {outside.shown(theirs.get(key))} here"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key)
    ]


def save_policy(policy: Policy, path: Path) -> None:
    """Write a policy as JSON with a digest of itself.

    Raises:
        DataError: it cannot be written.
    """
    content = {_HEADER: FORMAT, **policy.model_dump(mode="json")}
    write_whole(path, json.dumps({**content, _DIGEST: digest_of(content)}, indent=2, ensure_ascii=False) + "\n")


def load_policy(path: Path, *, trust: bool = False) -> Policy:
    """Read a policy, which proves itself: its promise is computed again from its counts.

    Args:
        trust: whether models, functions and packages that it names, and no installed task, may be loaded.

    Raises:
        DataError: it is none, not what was written, does not follow from its counts, or names what is not trusted.
    """
    content = outside.read_json(path, largest=_LARGEST)
    if not isinstance(content, dict) or content.get(_HEADER) != FORMAT:
        raise DataError(f"{path}: no policy of format {FORMAT} (`hedge calibrate` writes one)")
    digest = content.pop(_DIGEST, None)
    if digest != digest_of(content):
        raise DataError(f"{path}: its digest does not fit: it is damaged, or was changed by hand")
    content.pop(_HEADER)
    policy = Policy.read(content, str(path))
    if not trust:
        check_trust(policy.clustering, policy.circumstances.get("sampling", {}).get("perturbation"), str(path))
    try:
        policy.scorer()
        get(policy.detector)
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from None
    return policy


def digest_of(content: Mapping[str, Any]) -> str:
    """Digest of a policy's content, against damage. Anybody can compute it: it proves nothing of who wrote it."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            flat |= _flat(inner, f"{name}.")
        else:
            flat[name] = list(inner) if isinstance(inner, tuple) else inner
    return flat
