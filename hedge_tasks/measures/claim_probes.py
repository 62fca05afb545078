"""Fitted detectors of sentences, cross-fitted by image, as further scores of a run's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.inside import Inside
from hedge_tasks.errors import DataError
from hedge_tasks.measures.probe_table import foreign_auroc
from hedge_tasks.probes.base import FittedDetector, looked_at
from hedge_tasks.probes.crossfit import Shuffled, cross_fitted, shuffled
from hedge_tasks.scoring.claims import ScoredAnswer, ScoredClaims, claim_units

SENTENCES = frozenset({"sentence_states", "sentence_spans"})
"""Arrays that are looked at."""


@dataclass(frozen=True)
class ClaimProbes:
    """A run's claims with the scores of fitted detectors beside the others.

    Attributes:
        scored: the claims.
        shuffled, foreign: controls by detector: shuffled labels, and the ROC-AUC with another image's states.
        left_out: detector -> why it has no scores.
        missing: labelled claims that are no sentence whose states were kept; they are neither fitted on nor scored.
    """

    scored: ScoredClaims
    shuffled: Mapping[str, Shuffled]
    foreign: Mapping[str, float]
    left_out: Mapping[str, str]
    missing: int


def with_probes(
    scored: ScoredClaims,
    inside: Mapping[str, Inside],
    detectors: Sequence[FittedDetector],
    *,
    silent: str = "unlabelled",
    errors: str = "all",
    seed: int = 0,
) -> ClaimProbes:
    """Fit detectors on the labelled sentences of other images, and score every sentence of a run.

    Args:
        inside: the arrays `SENTENCES` by the answer's id.
        silent, errors: see `hedge_tasks.claims.labels.label_of`.

    Raises:
        DataError: the states of no labelled claim were kept, or they are of different shapes.
    """
    units = claim_units(scored, silent=silent, errors=errors).units
    states = [state for one in scored.answers for state in _states(one, inside.get(one.answers.id, {}))]
    labelled = [i for i, unit in enumerate(units) if unit.label is not None]
    kept = {i: state for i in labelled if (state := states[i]) is not None}
    chosen = [*kept]
    if not chosen:
        raise DataError("the states of no labelled claim were kept; `--gen_kwargs inside=sentences` keeps them")
    if len({state.shape for state in kept.values()}) > 1:
        raise DataError("sentence_states of different shapes: not all of them are of one model")
    whole = np.stack([*kept.values()]).astype(np.float32)
    labels = np.array([units[i].label for i in chosen], dtype=np.int64)
    groups = [str(units[i].group) for i in chosen]
    scores, controls, foreign, left_out = {}, dict[str, Shuffled](), dict[str, float](), dict[str, str]()
    for one in detectors:
        seen = looked_at(one, whole)
        try:
            values = cross_fitted(one, seen, labels, labels, groups, seed=seed)
            controls[one.name] = shuffled(one, seen, labels, labels, groups, seed=seed)
            foreign[one.name] = foreign_auroc(one, seen, labels, labels, groups, seed=seed)
        except DataError as error:
            left_out[one.name] = str(error)
            continue
        of_all = np.full(len(units), np.nan)
        of_all[chosen] = values
        scores[one.name] = of_all
    counts = np.cumsum([0, *(len(one.claims) for one in scored.answers)])
    answers = tuple(
        replace(one, scores={**one.scores, **{name: of[start:end] for name, of in scores.items()}})
        for one, start, end in zip(scored.answers, counts[:-1], counts[1:], strict=True)
    )
    fitting = {name: controls[name].error for name in scores}
    found = replace(scored, answers=answers, fitting_errors=fitting, fitted_on=round(len(chosen) * 0.8))
    return ClaimProbes(found, controls, foreign, left_out, len(labelled) - len(chosen))


def _states(answer: ScoredAnswer, inside: Inside) -> list[npt.NDArray[np.float16] | None]:
    """States of each claim of an answer, shape (layers, sentence places, width); None of one that is no sentence."""
    if not inside.keys() >= SENTENCES:
        return [None] * len(answer.claims)
    spans = [(int(start), int(end)) for start, end in inside["sentence_spans"]]
    by_span = dict(zip(spans, inside["sentence_states"], strict=True))
    return [by_span.get((claim.start, claim.end)) for claim in answer.claims]
