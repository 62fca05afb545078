"""A policy: up to which score an answer is accepted, what that promises, and under which circumstances."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, Strict, model_validator

from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.trust import check_trust
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import AtLeastOne, Count, Items, Name, Objects, Pair, Record, Share
from hedge_tasks.numbers import PERCENT
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.statistics.base import wilson
from hedge_tasks.statistics.grouped_risk import grouped_p_value
from hedge_tasks.statistics.risk_control import binomial_p_value

FORMAT = 1
QUANTILES = 100
"""Of the scores of all documents, which a policy keeps."""

_HEADER, _DIGEST = "hedge_policy", "digest"
_LARGEST = 4 << 20


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
        accepted, wrong = (sum(counts) for counts in zip(*self.bets, strict=True)) if self.bets else (0, 0)
        groups, largest = self.n_groups or self.n, self.largest
        sound = {
            "risk": 0 < self.risk < 1,
            "confidence": 0 < self.confidence < 1,
            "level": 0 < self.level <= (1 - self.confidence) / self.n_detectors * (1 + _SAME),
            "n_wrong": self.n_wrong <= self.n_accepted,
            "n_accepted": 0 < self.n_accepted <= self.n,
            "n_groups": groups <= self.n <= groups * largest and largest + groups - 1 <= self.n,
            "bets": (
                (accepted, wrong) == (self.n_accepted, self.n_wrong)
                and len(self.bets) <= groups
                and all(w <= a <= largest for a, w in self.bets)
            )
            if self.n_groups is not None
            else not self.bets and largest == 1,
            "accepted_interval": np.allclose(
                sure_interval(self.accepted, groups), self.accepted_interval, rtol=_SAME, atol=_SAME
            ),
        }
        if wrong_keys := [name for name, holds in sound.items() if not holds]:
            raise ValueError(f"{wrong_keys[0]}: it does not follow from the counts beside it, or is none")
        if self.n_groups is None:
            p_value = binomial_p_value(self.n_accepted, self.n_wrong, self.risk)
        else:
            p_value = grouped_p_value(self.bets, largest=largest, risk=self.risk, level=self.level)
        if not math.isclose(p_value, self.p_value, rel_tol=_SAME, abs_tol=1e-300):
            raise ValueError(f"p_value: from the counts follows {p_value:.4g}, not {self.p_value:.4g}")
        if self.p_value > self.level:
            raise ValueError(f"p_value: {self.p_value:g} is above the level {self.level:g}: nothing is promised")
        return self


_SAME = 1e-6
"""Relative difference of two numbers that are the same, computed by two versions of a library."""

SURE = 0.99


def sure_interval(share: float, n: int) -> tuple[float, float]:
    """The 99 % interval of a share of n that is accepted."""
    return wilson(share, n, SURE)


class Circumstances(Record):
    """Conditions of a promise: with another model, decoding, prompt or number of draws it says nothing.

    Attributes:
        model: with its adapter, as a run calls it.
        sampling, prompt: settings, as a run records them; empty where it does not.
    """

    model: str
    sampling: Objects[Any] = Field(default_factory=dict)
    prompt: Objects[Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _can_be_sampled(self) -> Self:
        # What is perturbed, and by whose code, is a question of trust.
        sampling = {k: v for k, v in self.sampling.items() if k not in ("perturbation", "strength")}
        try:
            plan = SamplingPlan.from_generation_kwargs(sampling)
        except (ConfigError, TypeError, ValueError) as error:
            raise ValueError(f"sampling: {error}") from None
        if sampling and plan.temperature <= 0:
            raise ValueError("sampling.temperature: at 0 all draws are the same")
        return self


class CalibratedOn(Record):
    """Where a policy comes from.

    Attributes:
        task, created: of the run.
        documents, labelled: how many; the promise rests on those labels that are tested.
        judge: who gave the labels.
        digest: of ids, labels and scores.
        scores: 100 quantiles of the scores of all documents, ascending; None where there is none.
        weighting: where the score depends on log-probabilities.
        answered_as: names that the server gave the model, where it gave any.
        question_type: of all questions, where the promise is about one type alone.
    """

    task: str
    created: str
    documents: Count
    labelled: Count
    judge: str | None = None
    digest: str
    scores: Annotated[Items[float | None], Field(min_length=QUANTILES, max_length=QUANTILES)]
    weighting: Literal["logprob", "uniform"] | None = None
    answered_as: Items[str] = ()
    question_type: str | None = None

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        finite = tuple(score for score in self.scores if score is not None)
        if finite != tuple(sorted(finite)) or finite != self.scores[: len(finite)]:
            raise ValueError("scores: expected growing numbers")
        return self


class Policy(Record):
    """When to accept an answer.

    Attributes:
        detector: whose score decides.
        threshold: a score of at most this is accepted.
        clustering: settings of the clustering, as a run records them.
        promise: what holds for the accepted.
        circumstances: what the promise is bound to.
        calibration: where it comes from.
    """

    detector: Name
    threshold: float
    clustering: Objects[Any]
    promise: Promise
    circumstances: Circumstances
    calibration: CalibratedOn

    @model_validator(mode="after")
    def _follows(self) -> Self:
        """The counts fit together, and the threshold accepts the share of the scores that is promised."""
        promise, about = self.promise, self.calibration
        if not promise.n <= about.labelled <= about.documents:
            counts = f"{promise.n} tested, {about.labelled} labelled, {about.documents} documents in all"
            raise ValueError(f"calibration: {counts} cannot be")
        share = sum(score is not None and score <= self.threshold for score in about.scores) / QUANTILES
        low, high = promise.accepted_interval
        if not low - 1 / QUANTILES <= share <= high + 1 / QUANTILES:
            accepts = f"accepts {PERCENT(share)} of the calibration's scores, not {PERCENT(promise.accepted)}"
            raise ValueError(f"threshold: {self.threshold:g} {accepts}")
        return self

    def scorer(self) -> Scorer:
        """Settings that score answers as the calibration did.

        Raises:
            ConfigError: the settings make no clustering here, or the detector is not installed.
        """
        return Scorer.from_settings("policy", self.clustering).with_detectors([self.detector])


def circumstances_of(run: Run) -> Circumstances:
    """The circumstances of a run."""
    sampling = {k: v for k, v in (run.settings.get("sampling") or {}).items() if k not in _NOT_OF_THE_PROMISE}
    return Circumstances(model=run.model, sampling=sampling, prompt=dict(run.settings.get("prompt") or {}))


_NOT_OF_THE_PROMISE = frozenset({"seed", "max_failed", "image_check", "probe"})
"""Settings of sampling that change no distribution of answers."""


def differences(policy: Policy, run: Run) -> list[str]:
    """In what a run differs from the circumstances of a policy, one line a setting."""
    ours, theirs = (_flat(about.model_dump()) for about in (policy.circumstances, circumstances_of(run)))
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
        check_trust(policy.clustering, policy.circumstances.sampling.get("perturbation"), str(path))
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
