"""The evidence of a policy: of a finished run the answers that would be sampled for it, and their scores.

A question that is asked under a policy gets only the draws that its detector pays for. Clusters are components, so that
other draws can join two of them: a promise must be made about the same answers that will be there when it is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.evidence import INSIDE_ARRAYS
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer, score_all
from hedge_tasks.replies.declining import unanswered

UNASKED = {*INSIDE_ARRAYS, "forced_blank", "forced_reworded", "forced_truth", "forced_options", "forced_noisy"}
"""Evidence that a detector may need and a guard does not ask for."""

_LOOKED_AT = 64
"""Documents that show whether a score depends on log-probabilities."""


@dataclass(frozen=True)
class SeenScores:
    """Scores of one detector for the documents of a run.

    Attributes:
        values: its scores, `nan` where there is none or nothing was answered, which no threshold accepts; shape
            (documents,).
        scores: the same with all else that is known of each document.
        weighting: "logprob" or "uniform" where that decides the scores, else None.
    """

    values: npt.NDArray[np.float64]
    scores: Sequence[Scores]
    weighting: Literal["logprob", "uniform"] | None


def pays_for(detector: str) -> tuple[bool, bool]:
    """Whether the detector looks at clean, and at noisy draws."""
    price = get(detector).draws
    return price(1, 0) > price(0, 0), price(0, 1) > price(0, 0)


def columns(answers: Sequence[AnswerSet], scorer: Scorer, detectors: Sequence[str]) -> dict[str, SeenScores]:
    """Score the documents as a guard would.

    Args:
        answers: of all documents, with all their draws.
        scorer: clusters.
        detectors: names.

    Returns:
        By detector, in the order asked.
    """
    by_name: dict[str, SeenScores] = {}
    without = np.array([unanswered(a.baseline.text) is not None for a in answers], dtype=bool)
    for clean, noisy in dict.fromkeys(map(pays_for, detectors)):
        names = [name for name in detectors if pays_for(name) == (clean, noisy)]
        seen = [replace(a, clean=a.clean if clean else (), noisy=a.noisy if noisy else ()) for a in answers]
        clustered = scorer.cluster(seen)
        scores = _scores(clustered, scorer, names)
        bare = _scores([_without_logprobs(a) for a in clustered[:_LOOKED_AT]], scorer, names)
        for name in names:
            values = np.array([math.nan if s[name] is None else s[name] for s in scores], dtype=np.float64)
            values[without] = math.nan
            by_name[name] = SeenScores(values, scores, _weighting(scores, bare, name))
    return {name: by_name[name] for name in detectors}


def _scores(clustered: Sequence[AnswerSet], scorer: Scorer, detectors: Sequence[str]) -> list[Scores]:
    return score_all(clustered, scorer.backend, detectors, alpha=scorer.alpha, inside=scorer.inside)


def _weighting(scores: Sequence[Scores], bare: Sequence[Scores], detector: str) -> Literal["logprob"] | None:
    """The weights of the answers, if others give another score and all documents had the same.

    Args:
        bare: of the first documents, without log-probabilities.
    """
    if {s.weighting for s in scores} != {"logprob"}:
        return None
    return None if all(a[detector] == b[detector] for a, b in zip(scores, bare, strict=False)) else "logprob"


def _without_logprobs(answers: AnswerSet) -> AnswerSet:
    clean, noisy = (tuple(replace(a, mean_logprob=None) for a in s) for s in (answers.clean, answers.noisy))
    return replace(answers, baseline=replace(answers.baseline, mean_logprob=None), clean=clean, noisy=noisy)
