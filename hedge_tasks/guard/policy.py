"""A policy: up to which score an answer is accepted, what that promises, and under which circumstances."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Strict

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import AtLeastOne, Count, Items, Name, Objects, Pair, Record, Share
from hedge_tasks.runs.run_files import Run

FORMAT = 1
_HEADER, _DIGEST = "hedge_policy", "digest"
_LARGEST = 1 << 20


Kind = Annotated[tuple[Count, Count, AtLeastOne], Strict(False)]


class Promise(Record):
    """What holds for answers that a policy accepts.

    Attributes:
        risk: at most this share of them is hallucinated,
        confidence: with this probability over the choice of the calibration documents.
        accepted: share of the calibration documents that was accepted.
        accepted_interval: its 99 % interval, from which another run's share should not stray.
        n: labelled documents that were tested on.
        n_groups: groups (images) of them; None where each stood for itself.
        n_accepted, n_wrong: of them, those accepted, and those of these that were hallucinated.
        kinds: where there are groups, (accepted, wrong, groups that have so many).
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
    kinds: Items[Kind] = ()
    largest: AtLeastOne = 1


class Policy(Record):
    """When to accept an answer.

    Attributes:
        detector: whose score decides.
        threshold: a score of at most this is accepted.
        clustering: settings of the clustering, as a run records them.
        promise: what holds for the accepted.
        circumstances: what the promise is bound to: model, sampling, prompt, pictures' columns; see `circumstances_of`.
        calibration: where it comes from: task, time, documents, judge, and a digest of ids, labels and scores;
            `weighting` where the score depends on log-probabilities ("logprob" or "uniform"), `answered_as` where the
            server said which model it was.
        epsilon: of the predicted end of the draws; 0 for none. See `hedge_tasks.guard.curtailment`.
        looks: numbers of draws at which that is looked for; none without an epsilon.
    """

    detector: Name
    threshold: float
    clustering: Objects[Any]
    promise: Promise
    circumstances: Objects[Any]
    calibration: Objects[Any]
    epsilon: Share = 0.0
    looks: Items[AtLeastOne] = ()

    def scorer(self) -> Scorer:
        """What scores answers as the calibration did.

        Raises:
            ConfigError: the settings make no clustering here, or the detector is not installed.
        """
        return Scorer.from_settings("policy", self.clustering).with_detectors([self.detector])


def circumstances_of(run: Run) -> dict[str, Any]:
    """What a promise is bound to: with another model, decoding, prompt or number of draws it says nothing."""
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
    write_whole(path, json.dumps({**content, _DIGEST: _digest(content)}, indent=2, ensure_ascii=False) + "\n")


def load_policy(path: Path) -> Policy:
    """Read a policy.

    Raises:
        DataError: it is none, or not what was written.
    """
    content = outside.read_json(path, largest=_LARGEST)
    if not isinstance(content, dict) or content.get(_HEADER) != FORMAT:
        raise DataError(f"{path}: no policy of format {FORMAT} (`hedge calibrate` writes one)")
    digest = content.pop(_DIGEST, None)
    if digest != _digest(content):
        raise DataError(f"{path}: its digest does not fit: it is damaged, or was changed by hand")
    content.pop(_HEADER)
    return Policy.read(content, str(path))


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping):
            found |= _flat(inner, f"{name}.")
        else:
            found[name] = list(inner) if isinstance(inner, tuple) else inner
    return found
