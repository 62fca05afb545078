"""Fitted detectors of sentences, cross-fitted by image or fitted on another run, as scores of a run's claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.inside import Inside
from hedge_tasks.detectors.probes.base import FittedDetector, FloatArray, IntArray, at_place, settled
from hedge_tasks.detectors.probes.crossfit import Shuffled, cross_fitted, shuffled
from hedge_tasks.detectors.units import NOT_FITTED, Inflation, Unit
from hedge_tasks.errors import DataError
from hedge_tasks.measures.probe_table import foreign_auroc, group_numbers, label_prices
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims, claim_units

SENTENCES = frozenset({"sentence_states", "sentence_spans"})
"""Arrays that are looked at."""


@dataclass(frozen=True)
class SentenceData:
    """The labelled sentences of a run with their states.

    Attributes:
        units: all claims of the run.
        chosen: places of the labelled sentences among them, shape (n,).
        states: shape (n, layers, sentence places, width).
        labels: 0 or 1, shape (n,).
        groups, answers: of each of them its image, and its answer.
        missing: labelled claims that are no sentence whose states were kept; they are neither fitted on nor scored.
    """

    units: tuple[Unit, ...]
    chosen: IntArray
    states: FloatArray
    labels: IntArray
    groups: tuple[str, ...]
    answers: tuple[str, ...]
    missing: int

    @classmethod
    def of(
        cls, scored: ScoredClaims, inside: Mapping[str, Inside], *, silent: str = "unlabelled", errors: str = "all"
    ) -> SentenceData:
        """Join the claims of a run with what was kept of its sentences.

        Args:
            inside: the arrays `SENTENCES` by the answer's id.
            silent, errors: see `hedge_tasks.claims.labels.label_of`.

        Raises:
            DataError: the states of no labelled claim were kept, or they are of different shapes.
        """
        units = claim_units(scored, silent=silent, errors=errors).units
        states = [state for answer in scored.answers for state in _states(answer, inside.get(answer.answers.id, {}))]
        labelled = [i for i, unit in enumerate(units) if unit.label is not None]
        by_place = {i: state for i in labelled if (state := states[i]) is not None}
        if not by_place:
            raise DataError("the states of no labelled claim were kept; `--gen_kwargs inside=sentences` keeps them")
        if len({state.shape for state in by_place.values()}) > 1:
            raise DataError("sentence_states of different shapes: not all of them are of one model")
        return cls(
            units,
            np.array([*by_place], dtype=np.int64),
            np.stack([*by_place.values()]).astype(np.float32),
            np.array([units[i].label for i in by_place], dtype=np.int64),
            tuple(str(units[i].group) for i in by_place),
            tuple(units[i].parent for i in by_place),
            len(labelled) - len(by_place),
        )

    @property
    def group_numbers(self) -> IntArray:
        """A number for each sentence's image, shape (n,)."""
        return group_numbers(self.groups)


@dataclass(frozen=True)
class ClaimProbes:
    """A run's claims with the scores of fitted detectors beside the others.

    Attributes:
        scored: the claims.
        shuffled, foreign: controls by detector: shuffled labels, and the ROC-AUC with another image's states; none
            where it was fitted on another run.
        left_out: detector -> why it has no scores.
        missing: see `SentenceData`.
        prices: detector -> number of labels -> ROC-AUC.
        fitted_on: the run that detectors were fitted on, where that is another one.
    """

    scored: ScoredClaims
    shuffled: Mapping[str, Shuffled]
    foreign: Mapping[str, float]
    left_out: Mapping[str, str]
    missing: int
    prices: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    fitted_on: str = ""


def with_probes(
    scored: ScoredClaims,
    data: SentenceData,
    detectors: Sequence[FittedDetector],
    *,
    prices: bool = False,
    fit_on: SentenceData | None = None,
    fitted_on: str = "",
    seed: int = 0,
) -> ClaimProbes:
    """Fit detectors on the labelled sentences of other images, and score every labelled sentence of a run.

    Args:
        data: of `scored`.
        prices: whether the ROC-AUC is also measured with fewer labels.
        fit_on: another run to be fitted on; None cross-fits within this one.
        fitted_on: what it is called.

    Raises:
        DataError: the states of the other run have another shape.
    """
    if fit_on is not None and fit_on.states.shape[1:] != data.states.shape[1:]:
        shapes = f"{fit_on.states.shape[1:]} and {data.states.shape[1:]}"
        raise DataError(f"a probe of one model cannot read another's sentence_states: shapes {shapes}")
    labels, groups = data.labels, data.groups
    scores, controls, foreign = dict[str, npt.NDArray[np.float64]](), dict[str, Shuffled](), dict[str, float]()
    left_out, bought = dict[str, str](), dict[str, Mapping[int, float]]()
    for detector in detectors:
        name, states = detector.name, at_place(detector, data.states)
        try:
            if fit_on is not None:
                arrays = detector.fit(at_place(detector, fit_on.states), fit_on.labels, fit_on.group_numbers)
                values = settled(detector.score(arrays, states))
            else:
                values = cross_fitted(detector, states, labels, labels, groups, seed=seed)
                strata = data.answers
                controls[name] = shuffled(detector, states, labels, labels, groups, strata=strata, seed=seed)
                foreign[name] = foreign_auroc(detector, states, labels, labels, groups, seed=seed)
        except DataError as error:
            left_out[name] = str(error)
            continue
        if prices and fit_on is None:
            bought[name] = label_prices(detector, states, labels, groups, seed=seed)
        all_values = np.full(len(data.units), np.nan)
        all_values[data.chosen] = values
        scores[name] = all_values
    counts = np.cumsum([0, *(len(answer.claims) for answer in scored.answers)])
    answers = tuple(
        replace(answer, scores={**answer.scores, **{name: values[start:end] for name, values in scores.items()}})
        for answer, start, end in zip(scored.answers, counts[:-1], counts[1:], strict=True)
    )
    fitting = dict.fromkeys(scores, NOT_FITTED)
    fitting |= {name: Inflation(control.inflation, control.within) for name, control in controls.items()}
    n_labels = len(fit_on.labels) if fit_on is not None else round(len(labels) * 0.8)
    with_scores = replace(scored, answers=answers, fitted=fitting, fitted_on=n_labels)
    return ClaimProbes(with_scores, controls, foreign, left_out, data.missing, bought, fitted_on)


def _states(answer: ScoredAnswer, inside: Inside) -> list[npt.NDArray[np.float16] | None]:
    """States of each claim of an answer, shape (layers, sentence places, width); None of one that is no sentence."""
    if not inside.keys() >= SENTENCES:
        return [None] * len(answer.claims)
    spans = [(int(start), int(end)) for start, end in inside["sentence_spans"]]
    by_span = dict(zip(spans, inside["sentence_states"], strict=True))
    return [by_span.get((claim.start, claim.end)) for claim in answer.claims]
