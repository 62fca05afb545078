"""Several detectors as one score: a logistic regression on what they say, whose weights a policy keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedge_tasks.detectors import registry
from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.probes.base import Arrays
from hedge_tasks.errors import ConfigError, DataError

FUSED = "fused"
"""Name of the fitted detector; `fused:se+msp` names what it is made of."""

_LARGEST = 1e6
"""Scores beyond, such as of an answer that the model calls impossible, count as this."""


def members_of(name: str) -> tuple[str, ...]:
    """The detectors that `fused:A+B+...` is made of; none for another name.

    Raises:
        ConfigError: there are less than two, or one is unknown or looks inside the model.
    """
    kind, colon, listed = name.partition(":")
    if kind.strip() != FUSED or not colon:
        return ()
    members = tuple(dict.fromkeys(registry.get(member.strip()).name for member in listed.split("+") if member.strip()))
    if len(members) < 2:
        raise ConfigError(f"{name}: name two detectors or more, such as fused:se+msp")
    if inner := [member for member in members if registry.get(member).parts or registry.get(member).level != "answer"]:
        raise ConfigError(f"{name}: {inner[0]!r} cannot be fused; detectors of answers and their draws can")
    return members


def fit_fused(members: Sequence[str], scores: Sequence[Scores]) -> Arrays:
    """Weights of detectors, from documents with labels.

    Args:
        members: names of the detectors.
        scores: of the documents; those without a label or without a number of each detector are left out.

    Returns:
        `mean` and `scale` of each detector's numbers, `weights`, and the `intercept`, of shapes (k,), (k,), (k,), (1,).

    Raises:
        DataError: less than two documents of each class are left.
    """
    from sklearn.linear_model import LogisticRegression

    labelled = [s for s in scores if s.label is not None and all(s.get(name) is not None for name in members)]
    labels = np.array([s.label for s in labelled], dtype=np.int64)
    if min(np.bincount(labels, minlength=2)) < 2:
        raise DataError(f"{FUSED}: {len(labelled)} labelled documents with every score, and fewer than two of a class")
    table = np.array([[_finite(s[name]) for name in members] for s in labelled])
    mean, scale = table.mean(axis=0), table.std(axis=0)
    scale[scale == 0] = 1.0
    fitted = LogisticRegression(max_iter=1000).fit((table - mean) / scale, labels)
    return {"mean": mean, "scale": scale, "weights": fitted.coef_[0], "intercept": fitted.intercept_}


def fused_detector(name: str, members: Sequence[str], arrays: Arrays) -> Detector:
    """The detector with these weights, which needs and costs what its members do.

    Raises:
        ConfigError: a member is unknown here.
    """
    detectors = [registry.get(detector) for detector in members]

    def score(evidence: Evidence) -> float | None:
        member_scores = [detector.score(evidence) for detector in detectors]
        if any(value is None for value in member_scores):
            return None
        values = np.array([_finite(value) for value in member_scores])
        z = (values - arrays["mean"]) / arrays["scale"]
        return float(z @ arrays["weights"] + arrays["intercept"][0])

    needs = frozenset[str]().union(*(d.needs for d in detectors))
    return Detector(name, " + ".join(d.label for d in detectors), score, needs)


def _finite(value: float | None) -> float:
    return float(np.clip(np.nan_to_num(value or 0.0, nan=0.0), -_LARGEST, _LARGEST))
