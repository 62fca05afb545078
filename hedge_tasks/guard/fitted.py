"""A guard that rests on a fitted detector: fitted on some images, calibrated on others, its state in the policy."""

from __future__ import annotations

import base64
import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.inside import Inside
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.probes.base import Arrays, FittedDetector, at_place, digest
from hedge_tasks.detectors.probes.registry import fitted, fitted_detectors
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.fused import FUSED, fit_fused, fused_detector
from hedge_tasks.io.records import Count, Items, Name, Record
from hedge_tasks.measures.fitted import LOOKED_AT, SEMANTIC_ENTROPY, ProbeData
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run

_NEEDS: Mapping[str, str] = {"states": "hidden_states", "heads": "attention"}
_SHOWN = 8


class StateArray(Record):
    """Numbers of a state: little endian double precision in base 64."""

    shape: Annotated[Items[Count], Field(max_length=3)]
    data: str

    @model_validator(mode="after")
    def _as_long_as_its_shape(self) -> Self:
        try:
            n = len(base64.b64decode(self.data, validate=True))
        except ValueError as error:
            raise ValueError(f"data: no base 64: {error}") from error
        if n != 8 * math.prod(self.shape):
            raise ValueError(f"data: {n} bytes are no {list(self.shape)} numbers")
        return self


class FittedState(Record):
    """The state of a fitted detector, as a policy keeps it: plain numbers, with their digest.

    Attributes:
        detector: its name among the fitted ones.
        sha256: of the arrays, and of the detectors that are fused.
        arrays: by name.
        documents: labelled ones that it was fitted on.
        fitted_on: task and time of the run that they are of.
        of: the detectors that are fused; none of a probe.
    """

    detector: Name
    sha256: str
    arrays: dict[str, StateArray]
    documents: Count
    fitted_on: str
    of: Annotated[Items[Name], Field(max_length=20)] = ()

    @model_validator(mode="after")
    def _is_what_was_fitted(self) -> Self:
        if _digest(self.numbers(), self.of) != self.sha256:
            raise ValueError("sha256: not that of the arrays")
        if self.of:
            if self.detector != FUSED or any(array.shape != (len(self.of),) for array in self._by_member()):
                raise ValueError("of: not the detectors that the arrays are of")
        elif self.detector not in fitted_detectors():
            raise ValueError(f"detector: there is no fitted detector {self.detector!r} here")
        return self

    def _by_member(self) -> list[np.ndarray]:
        return [self.numbers().get(name, np.empty(0)) for name in ("mean", "scale", "weights")]

    def numbers(self) -> Arrays:
        """The arrays as they were fitted."""
        return {
            name: np.frombuffer(base64.b64decode(array.data), dtype="<f8").reshape(array.shape)
            for name, array in self.arrays.items()
        }

    @property
    def name(self) -> str:
        """The name of the detector with this state, which scores like any other."""
        return f"{self.detector}_{self.sha256[:_SHOWN]}"

    def admit(self) -> Detector:
        """Let this process know the detector by its name."""
        if self.of:
            fused = fused_detector(self.name, self.of, self.numbers())
            registry.admit(fused)
            return fused
        detector, arrays = fitted(self.detector), self.numbers()

        def score(evidence: Evidence) -> float:
            array = np.asarray(evidence.inside[detector.array], dtype=np.float32)[None]
            return float(detector.score(arrays, at_place(detector, array))[0])

        needs = frozenset({_NEEDS[detector.array]})
        admitted = Detector(self.name, f"{detector.title}, fitted", score, needs, source=detector.source)
        registry.admit(admitted)
        return admitted


@dataclass(frozen=True)
class FittedApart:
    """Detectors that are fitted, and the documents that they have not seen.

    Attributes:
        states: by the name under which each scores.
        run: the documents that are left to calibrate on.
    """

    states: Mapping[str, FittedState]
    run: Run


def fit_apart(
    run: Run,
    scorer: Scorer,
    detectors: Sequence[FittedDetector],
    *,
    fused: Sequence[Sequence[str]] = (),
    fit_on: Run | None = None,
    seed: int = 0,
) -> FittedApart:
    """Fit detectors on half of a run's images, or on another run, and leave the rest to calibrate on.

    Args:
        scorer: clusters, for detectors that are fitted to the semantic entropy or are fused.
        fused: names of detectors that are made one, each several.
        fit_on: another run of the same model; all of this one is then left.
        seed: of the images that are drawn.

    Raises:
        ConfigError: the other run has the same images, or is of another model.
        DataError: nothing was kept from inside the model, or a detector cannot be fitted.
    """
    if fit_on is not None:
        if fit_on.model != run.model:
            raise ConfigError(f"--fit-on: {fit_on.model!r} is not {run.model!r}")
        groups, fit_groups = ({a.group if a.group is not None else a.id for a in r.answer_sets} for r in (run, fit_on))
        if fit_on.task == run.task and groups & fit_groups:
            raise ConfigError("--fit-on: images of RUN are in it, on which the promise would prove nothing")
        to_fit, left = fit_on, run
    else:
        units = [a.group if a.group is not None else f"\0{a.id}" for a in run.answer_sets]
        names = sorted(set(units))
        fitting = set(random.Random(seed).sample(names, len(names) // 2))
        to_fit, left = (
            replace(
                run, answer_sets=tuple(a for a, u in zip(run.answer_sets, units, strict=True) if (u in fitting) is side)
            )
            for side in (True, False)
        )
    named = tuple(dict.fromkeys([SEMANTIC_ENTROPY, *(name for members in fused for name in members)]))
    scores = replace(scorer, detectors=named).score(to_fit.answer_sets)
    fitted_on, states = f"{to_fit.task} {to_fit.created}", list[FittedState]()
    if detectors:
        data = ProbeData.of(scores, inside_source(to_fit)(LOOKED_AT))
    for detector in detectors:
        arrays = detector.fit(data.at(detector), data.targets(detector), data.group_numbers)
        states.append(_state(detector.name, arrays, len(data.units), fitted_on))
    n_labels = sum(s.label is not None for s in scores)
    states += [_state(FUSED, fit_fused(members, scores), n_labels, fitted_on, members) for members in fused]
    for state in states:
        state.admit()
    return FittedApart({state.name: state for state in states}, left)


def _state(name: str, arrays: Arrays, documents: int, fitted_on: str, members: Sequence[str] = ()) -> FittedState:
    stored = {key: np.ascontiguousarray(array, dtype="<f8") for key, array in arrays.items()}
    record = {
        key: {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode()}
        for key, array in stored.items()
    }
    rest = {
        "detector": name,
        "sha256": _digest(arrays, members),
        "documents": documents,
        "fitted_on": fitted_on,
        "of": list(members),
    }
    return FittedState.read({**rest, "arrays": record}, "a fitted state")


def _digest(arrays: Arrays, members: Sequence[str]) -> str:
    """SHA-256 of a state: of its arrays, and the detectors that are fused."""
    plain = digest(arrays)
    return hashlib.sha256(f"{plain} {'+'.join(members)}".encode()).hexdigest() if members else plain


def looked_at_once(model: object, state: FittedState, answers: AnswerSet, messages: list[dict[str, object]]) -> Inside:
    """The arrays that a fitted detector looks at, of one answer.

    Raises:
        DataError: the model tells none.
    """
    part = frozenset({fitted(state.detector).part})
    [inside] = model.inside([messages], [answers.baseline.text], part)  # type: ignore[attr-defined]
    if isinstance(inside, str):
        raise DataError(f"{state.name} has no score: {inside}")
    states: Inside = inside
    return states
