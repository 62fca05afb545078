"""Fitted detectors on one run: every answer, or sentence, is scored by what other images have fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedge_tasks.data.inside import ARRAYS, Inside
from hedge_tasks.detectors.probes.base import FittedDetector, FloatArray, IntArray, at_place
from hedge_tasks.detectors.probes.crossfit import INFLATION, cross_fitted
from hedge_tasks.detectors.probes.folds import group_names
from hedge_tasks.detectors.units import Labelled, Unit, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.runs.claims import ScoredAnswer

SEMANTIC_ENTROPY = "se"
"""The detector that entropy probes are fitted to."""

LOOKED_AT = frozenset({"states", "heads"})
"""Arrays of answers that fitted detectors look at."""

SENTENCES = frozenset({"sentence_states", "sentence_spans"})
"""Arrays of answers by which sentences are found that fitted detectors look at."""


@dataclass(frozen=True)
class ProbeData:
    """Labelled units with their states.

    Attributes:
        units: in one order.
        arrays: that fitted detectors look at, by name, each of the units' along its first axis.
        missing: labelled units without an array that others have; they are neither fitted on nor scored.
    """

    units: tuple[Unit, ...]
    arrays: Mapping[str, FloatArray]
    missing: int

    @classmethod
    def of(
        cls,
        units: Iterable[Unit],
        inside: Mapping[str, Inside],
        arrays: frozenset[str] = LOOKED_AT,
    ) -> ProbeData:
        """Join what is known of labelled units.

        Args:
            units: answers, whose `se` is what entropy probes are fitted to, or claims.
            inside: by the id of the unit.
            arrays: those of them that are looked at.

        Raises:
            DataError: no unit has a label, none of these has arrays, or they are of different shapes.
        """
        counted = [unit for unit in units if unit.reported_label is not None]
        if not counted:
            raise DataError("no answer has a label that a detector could be fitted to or measured against")
        names = sorted(name for name in arrays if any(name in inside.get(unit.id, {}) for unit in counted))
        known = [unit for unit in counted if names and inside.get(unit.id, {}).keys() >= set(names)]
        if not known:
            parts = "+".join(part for part, of_part in ARRAYS.items() if arrays & set(of_part))
            raise DataError(
                f"nothing that fitted detectors look at was kept with the run; `--gen_kwargs inside={parts}` keeps it"
            )
        for name in names:
            if len({inside[unit.id][name].shape for unit in known}) > 1:
                raise DataError(f"{name} of different shapes: not all of them are of one model")
        stacked = {name: np.stack([inside[unit.id][name] for unit in known]).astype(np.float32) for name in names}
        return cls(tuple(known), stacked, len(counted) - len(known))

    @property
    def labels(self) -> IntArray:
        """0 or 1, shape (n,)."""
        return np.array([unit.reported_label for unit in self.units], dtype=np.int64)

    @property
    def groups(self) -> list[str]:
        """The image of each unit."""
        return group_names((unit.group, unit.id) for unit in self.units)

    def at(self, detector: FittedDetector) -> FloatArray:
        """Return the numbers that a detector looks at, shape (n, layers, width).

        Raises:
            DataError: they were not kept, or a unit has none there.
        """
        if detector.array not in self.arrays:
            raise DataError(f"the run keeps no {detector.array}; `--gen_kwargs inside={detector.part}` does")
        numbers = at_place(detector, self.arrays[detector.array])
        if np.isnan(numbers).any():
            raise DataError(f"some documents have no {detector.array} of the {detector.place}")
        return numbers

    def targets(self, detector: FittedDetector) -> IntArray:
        """Return the target that a detector is fitted to.

        Raises:
            DataError: it is the semantic entropy, and a document has none, or all have the same.
        """
        if detector.target == "labels":
            return self.labels
        entropies = np.array([unit.numbers.get(SEMANTIC_ENTROPY) for unit in self.units], dtype=np.float64)
        if np.isnan(entropies).any():
            raise DataError("some documents have no semantic entropy to be fitted to")
        return (entropies > best_split(entropies)).astype(np.int64)

    def scores(self, detector: FittedDetector, *, seed: int = 0) -> FloatArray:
        """Return the score of each unit, cross-fitted by image, shape (n,).

        Raises:
            DataError: the detector cannot be fitted.
        """
        parts = (self.at(detector), self.targets(detector), self.labels, self.groups)
        return cross_fitted(detector, *parts, seed=seed)

    def columns(self, detectors: Sequence[FittedDetector]) -> tuple[dict[str, Labelled], dict[str, str]]:
        """Return the columns of detectors that every labelled unit has a score of, and why the others have none."""
        columns: dict[str, Labelled] = {}
        left_out: dict[str, str] = {}
        for detector in detectors:
            try:
                values = self.scores(detector).tolist()
            except DataError as error:
                left_out[detector.name] = str(error)
                continue
            scored = [replace(u, numbers={detector.name: v}) for u, v in zip(self.units, values, strict=True)]
            column = replace(labelled(scored, detector.name), inflation=INFLATION)
            if (fault := column.fault(self.units[0].level, len(self.units) + self.missing)) is not None:
                left_out[detector.name] = fault
            else:
                columns[detector.name] = column
        return columns, left_out


def best_split(values: FloatArray) -> float:
    """Return the cut with the least squares within both sides (Kossen et al. 2024, 2406.15927, section 4).

    Raises:
        DataError: all values are equal.

    Example:
        >>> best_split(np.array([0.0, 0.1, 2.0, 2.2]))
        0.1
    """
    levels = np.unique(values)
    if len(levels) < 2:
        raise DataError("all documents have the same semantic entropy")
    within = [
        ((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum()
        for cut in levels[:-1]
        for low, high in [(values[values <= cut], values[values > cut])]
    ]
    return float(levels[int(np.argmin(within))])


def inside_of_claims(answers: Sequence[ScoredAnswer], inside: Mapping[str, Inside]) -> dict[str, Inside]:
    """Return the states of the claims that are sentences whose states were kept, by the claim's id.

    Args:
        inside: the arrays `SENTENCES` by the answer's id.
    """
    return dict(pair for answer in answers for pair in _of_answer(answer, inside.get(answer.answers.id, {})))


def _of_answer(answer: ScoredAnswer, inside: Inside) -> Iterator[tuple[str, Inside]]:
    if not inside.keys() >= SENTENCES:
        return
    spans = [(int(start), int(end)) for start, end in inside["sentence_spans"]]
    by_span = dict(zip(spans, inside["sentence_states"], strict=True))
    for claim in answer.claims:
        if (span := (claim.start, claim.end)) in by_span:
            yield claim.id, {"sentence_states": by_span[span]}
