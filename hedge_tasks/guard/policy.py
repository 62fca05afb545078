"""A policy: up to which score an answer is accepted, what that promises, and under which circumstances."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.trust import check_trust
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import AtLeastOne, Count, Items, Name, Objects, Record, Share
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.base import wilson
from hedge_tasks.statistics.risk_control import binomial_p_value

FORMAT = 2
_HEADER, _DIGEST = "hedge_policy", "digest"
_LARGEST = 4 << 20

SURE = 0.99
"""Confidence of the interval of the share that is accepted."""


class Promise(Record):
    """The promise that holds for answers that a policy accepts.

    Attributes:
        risk: at most this share of them is hallucinated,
        confidence: with this probability over the choice of the calibration documents.
        accepted: share of the calibration's documents that is accepted, those without a label and declined ones, which
            never are, included: so it is comparable with what comes in later.
        n: documents that were tested on.
        n_groups: groups (images) of them; None where each stood for itself.
        n_accepted, n_wrong: of them, those accepted, and those of these that were hallucinated.
        n_detectors: detectors that were tried.
    """

    risk: Annotated[float, Field(gt=0, lt=1)]
    confidence: Annotated[float, Field(gt=0, lt=1)]
    accepted: Share
    n: AtLeastOne
    n_groups: AtLeastOne | None
    n_accepted: AtLeastOne
    n_wrong: Count
    n_detectors: AtLeastOne

    @property
    def accepted_interval(self) -> tuple[float, float]:
        """The 99 % interval of the share accepted, from which another run's should not stray.

        The images are what is independent: that they are fewer than the documents widens it.
        """
        return wilson(self.accepted, self.n_groups or self.n, SURE)


class Circumstances(Record):
    """Conditions of a promise: with another model, decoding, prompt or number of draws it says nothing.

    Attributes:
        model: with its adapter, as a run calls it.
        pictured: whether its questions are about pictures.
        sampling, prompt: settings, as a run records them; empty where it does not.
    """

    model: str
    pictured: bool
    sampling: Objects[Any] = Field(default_factory=dict)
    prompt: Objects[Any] = Field(default_factory=dict)


class CalibratedOn(Record):
    """Where a policy comes from.

    Attributes:
        task, created: of the run.
        coverage: how many of its documents have a label. Declined ones are never accepted; where more than 5 % are
            missing, these were tested as hallucinated.
        judge: who gave the labels.
        digest: of the documents.
        weighting: where the score depends on log-probabilities.
        answered_as: names that the server gave the model, where it gave any.
        question_type: of all questions, where the promise is about one type alone.
    """

    task: str
    created: str
    coverage: Coverage
    judge: str
    digest: str
    weighting: Literal["logprob", "uniform"] | None = None
    answered_as: Items[str] = ()
    question_type: str | None = None


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

    def scorer(self) -> Scorer:
        """Settings that score answers as the calibration did.

        Raises:
            ConfigError: the settings make no clustering here, or the detector is not installed.
        """
        return Scorer.from_settings("policy", self.clustering).with_detectors([self.detector])


def circumstances_of(run: Run) -> Circumstances:
    """The circumstances of a run."""
    sampling = {k: v for k, v in (run.settings.get("sampling") or {}).items() if k not in _NOT_OF_THE_PROMISE}
    pictured = bool((run.settings.get("documents") or {}).get("images"))
    return Circumstances(model=run.model, pictured=pictured, sampling=sampling, prompt=run.settings.get("prompt") or {})


_NOT_OF_THE_PROMISE = frozenset({"seed", "max_failed", "image_check", "probe"})
"""Settings of sampling that change no distribution of answers."""


def differences(policy: Policy, run: Run) -> list[str]:
    """In what a run differs from the circumstances of a policy, one line a setting."""
    ours, theirs = (_flat(about.model_dump(mode="json")) for about in (policy.circumstances, circumstances_of(run)))
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
    """Read a policy. Whoever calibrated it is believed; what it promises is checked by `hedge calibrate --check`.

    Args:
        trust: whether models, functions and packages that it names, and no installed task, may be loaded.

    Raises:
        DataError: it is none, not what was written, or names what is not trusted.
    """
    content = outside.read_json(path, largest=_LARGEST)
    if not isinstance(content, dict) or content.get(_HEADER) != FORMAT:
        raise DataError(f"{path}: no policy of format {FORMAT} (`hedge calibrate` writes one)")
    if content.pop(_DIGEST, None) != digest_of(content):
        raise DataError(f"{path}: its digest does not fit: it is damaged, or was changed by hand")
    content.pop(_HEADER)
    policy = Policy.read(content, str(path))
    promise = policy.promise
    chance = 0.0 if promise.n_groups else binomial_p_value(promise.n_accepted, promise.n_wrong, promise.risk)
    if promise.n_wrong > promise.n_accepted or chance > (1 - promise.confidence) / promise.n_detectors:
        raise DataError(f"{path}: promise: its counts do not allow it")
    if not trust:
        check_trust(policy.clustering, policy.circumstances.sampling.get("perturbation"), str(path))
    try:
        policy.scorer()
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from None
    return policy


def digest_of(content: Mapping[str, Any]) -> str:
    """Digest of a policy's content, against damage. Anybody can compute it: it proves nothing of who wrote it."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            flat |= _flat(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = inner
    return flat
