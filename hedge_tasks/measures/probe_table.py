"""Fitted detectors on one run: cross-fitted by image, with controls, beside what sees neither picture nor draws."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.inside import ARRAYS, HEADS, Inside
from hedge_tasks.detectors.pipeline import Scores, detection_auroc
from hedge_tasks.detectors.probes.base import FittedDetector, FloatArray, IntArray, at_place, settled
from hedge_tasks.detectors.probes.builtin import linear
from hedge_tasks.detectors.probes.crossfit import Shuffled, cross_fitted, shuffled
from hedge_tasks.detectors.units import NOT_FITTED, Inflation, Labelled, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.measures.blind import AgainstBlind, against_blind
from hedge_tasks.measures.folds import group_names
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import auroc

LABEL_PRICES = (25, 50, 100, 200, 400)
"""Numbers of labelled documents at which the label price is measured, where a run has more."""

SEMANTIC_ENTROPY = "se"
"""The detector that entropy probes are fitted to."""

LOOKED_AT = frozenset({"states", "heads"})
"""Arrays that fitted detectors look at."""

_TYPE_ALONE = FittedDetector(
    "question_type",
    "Kind of question alone",
    place="image",
    array="heads",
    target="labels",
    fit=linear.fit,
    score=linear.score,
    source="control",
)
"""The kind of question by itself: a probe has to know more."""

CONTROLS = 10
"""Draws of another image's states."""


@dataclass(frozen=True)
class ProbeRow:
    """A fitted detector, or an ordinary one beside it.

    Attributes:
        name, title: of the detector.
        draws: answers a question besides the baseline answer that its score costs.
        labels: documents it was fitted on, the mean over folds; 0 where it needs none.
        estimate: ROC-AUC.
        shuffled: ROC-AUC when fitted to shuffled labels, the mean over shuffles: 0.5 where nothing leaks. None where
            the control was switched off or does not apply.
        foreign: ROC-AUC with the states of another image's document: what is left has nothing to do with the document.
        prices: number of labels -> ROC-AUC.
        passes: prompts that the model read once more for it.
        seconds: that fitting took, with the shuffles which the interval rests on; None where nothing is fitted.
    """

    name: str
    title: str
    draws: int
    labels: int
    estimate: Number
    shuffled: float | None = None
    foreign: float | None = None
    prices: Mapping[int, float] = field(default_factory=dict)
    passes: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class ProbeTable:
    """Fitted detectors of a run.

    Attributes:
        rows: the highest first.
        blind: beside what sees neither picture nor draws; None where that cannot be measured.
        left_out: detector -> why it has no number.
        n: documents with a label and states.
        missing: labelled documents without states.
        bytes: that the arrays of a document take.
        fitted_on: the run it was fitted on, where that is another one.
    """

    rows: tuple[ProbeRow, ...]
    blind: AgainstBlind | None
    left_out: Mapping[str, str]
    n: int
    missing: int
    bytes: int
    fitted_on: str = ""


@dataclass(frozen=True)
class ProbeData:
    """Labelled documents with their states.

    Attributes:
        answer_sets, scores: of the documents, in one order.
        arrays: that fitted detectors look at, by name, each of the documents' along its first axis.
        labels: 0 or 1, shape (n,).
        entropies: semantic entropy of the draws, shape (n,); NaN where there is none.
        groups: of the documents.
        missing: labelled documents without an array that others have.
    """

    answer_sets: tuple[AnswerSet, ...]
    scores: tuple[Scores, ...]
    arrays: Mapping[str, FloatArray]
    labels: IntArray
    entropies: FloatArray
    groups: tuple[str, ...]
    missing: int

    @classmethod
    def of(cls, answer_sets: Sequence[AnswerSet], scores: Sequence[Scores], inside: Mapping[str, Inside]) -> ProbeData:
        """Join what is known of labelled documents.

        Args:
            scores: of the documents, in their order; `se` is what entropy probes are fitted to.
            inside: by id.

        Raises:
            DataError: no document has a label, none of these has arrays, or they are of different shapes.
        """
        labelled_pairs = [(a, s) for a, s in zip(answer_sets, scores, strict=True) if s.reported_label is not None]
        if not labelled_pairs:
            raise DataError("no answer has a label that a detector could be fitted to or measured against")
        names = [name for name in LOOKED_AT if any(name in inside.get(a.id, {}) for a, _ in labelled_pairs)]
        pairs = [(a, s) for a, s in labelled_pairs if names and inside.get(a.id, {}).keys() >= set(names)]
        if not pairs:
            parts = "+".join(part for part, arrays in ARRAYS.items() if LOOKED_AT & set(arrays))
            raise DataError(
                f"nothing that fitted detectors look at was kept with the run; `--gen_kwargs inside={parts}` keeps it"
            )
        sets, labelled_scores = zip(*pairs, strict=True)
        entropies = [s.numbers.get(SEMANTIC_ENTROPY) for s in labelled_scores]
        for name in names:
            if len({inside[a.id][name].shape for a in sets}) > 1:
                raise DataError(f"{name} of different shapes: not all of them are of one model")
        return cls(
            sets,
            labelled_scores,
            {name: np.stack([inside[a.id][name] for a in sets]).astype(np.float32) for name in names},
            np.array([s.reported_label for s in labelled_scores], dtype=np.int64),
            np.array([np.nan if e is None else e for e in entropies], dtype=np.float64),
            tuple(group_names((s.group, s.id) for s in labelled_scores)),
            len(labelled_pairs) - len(pairs),
        )

    def at(self, detector: FittedDetector) -> FloatArray:
        """Return the numbers that a detector looks at, shape (n, layers, width).

        Raises:
            DataError: they were not kept, or a document has none there.
        """
        if detector.array not in self.arrays:
            raise DataError(f"the run keeps no {detector.array}; `--gen_kwargs inside={detector.part}` does")
        numbers = at_place(detector, self.arrays[detector.array])
        if np.isnan(numbers).any():
            raise DataError(f"some documents have no {detector.array} of the {detector.place}")
        return numbers

    @property
    def group_numbers(self) -> IntArray:
        """A number for each document's group, shape (n,)."""
        return group_numbers(self.groups)

    def with_types_alone(self, types: Sequence[str]) -> ProbeData:
        """Return the same documents, of which nothing is known but the kind of question."""
        flags = np.array([[s.question_type == kind for kind in types] for s in self.scores], dtype=np.float32)
        # As wide as the attention of one layer: what `_TYPE_ALONE` looks at.
        whole = np.zeros((len(flags), len(types), 1, len(HEADS)), dtype=np.float32)
        whole[..., 0, HEADS.index(_TYPE_ALONE.place)] = flags
        return replace(self, arrays={_TYPE_ALONE.array: whole})

    def targets(self, detector: FittedDetector) -> IntArray:
        """Return the target that a detector is fitted to.

        Raises:
            DataError: it is the semantic entropy, and a document has none, or all have the same.
        """
        if detector.target == "labels":
            return self.labels
        if np.isnan(self.entropies).any():
            raise DataError("some documents have no semantic entropy to be fitted to")
        cut = best_split(self.entropies)
        return (self.entropies > cut).astype(np.int64)


def group_numbers(groups: Sequence[str]) -> IntArray:
    """Return a number for each group's name, shape (n,)."""
    numbers: IntArray = np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1].astype(np.int64)
    return numbers


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


def probe_table(
    data: ProbeData,
    detectors: Sequence[FittedDetector],
    *,
    beside: Mapping[str, tuple[str, int, int]],
    controls: bool = True,
    prices: bool = False,
    fit_on: ProbeData | None = None,
    fitted_on: str = "",
    seed: int = 0,
) -> ProbeTable:
    """Measure fitted detectors on a run.

    Args:
        data: of the run.
        detectors: that are fitted.
        beside: ordinary detectors that `data.scores` have -> title, draws and passes.
        controls: whether shuffled labels and another image's states are tried, too.
        prices: whether the ROC-AUC is also measured with fewer labels.
        fit_on: another run to be fitted on; None cross-fits within this one.
        fitted_on: what it is called.
        seed: of partitions and shuffles.

    Raises:
        DataError: the states of the other run have another shape.
    """
    for name in data.arrays.keys() & (fit_on.arrays.keys() if fit_on is not None else ()):
        shapes = [run_data.arrays[name].shape[1:] for run_data in (fit_on, data) if run_data is not None]
        if len(set(shapes)) > 1:
            raise DataError(f"a probe of one model cannot read another's {name}: shapes {shapes[0]} and {shapes[1]}")
    rows, left_out, columns = [], dict[str, str](), dict[str, Labelled]()
    for detector in detectors:
        try:
            row, column = _fitted_row(data, detector, fit_on, controls=controls, prices=prices, seed=seed)
        except DataError as error:
            left_out[detector.name] = str(error)
            continue
        rows.append(row)
        columns[detector.name] = column
    for name, (title, draws, passes) in beside.items():
        estimate = detection_auroc(data.scores, name)
        rows.append(ProbeRow(name, title, draws, 0, estimate, passes=passes))
        columns[name] = labelled(data.scores, name)
    types = sorted({s.question_type for s in data.scores if s.question_type is not None})
    if len(types) > 1 and fit_on is None:
        try:
            type_scores = fitted_scores(data.with_types_alone(types), _TYPE_ALONE, seed=seed)
        except DataError as error:
            left_out[_TYPE_ALONE.name] = str(error)
        else:
            name = _TYPE_ALONE.name
            columns[name] = type_scores.column(name)
            rows.append(ProbeRow(name, _TYPE_ALONE.title, 0, type_scores.labels, columns[name].auroc()))
    defined = [row for row in rows if row.estimate.value is not None]
    left_out |= {row.name: str(row.estimate.reason) for row in rows if row.estimate.value is None}
    compared = {row.name: columns[row.name] for row in defined}
    blind = against_blind(data.answer_sets, compared, data.scores) if compared else None
    ordered = tuple(sorted(defined, key=lambda row: (-(row.estimate.value or 0.0), row.name)))
    # States are kept in half precision.
    size = sum(math.prod(array.shape[1:]) * (2 if name == "states" else 4) for name, array in data.arrays.items())
    return ProbeTable(ordered, blind, left_out, len(data.labels), data.missing, size, fitted_on)


@dataclass(frozen=True)
class FittedScores:
    """The scores of a fitted detector.

    Attributes:
        scores: of the documents of the data.
        labels: documents with a label that it was fitted on; 0 where it needs none.
        shuffled: the control by shuffled labels; None where it was fitted on another run.
    """

    scores: tuple[Scores, ...]
    labels: int
    shuffled: Shuffled | None

    def column(self, name: str) -> Labelled:
        """The scores and labels as columns, whose intervals and comparisons have the error of fitting in them."""
        return replace(labelled(self.scores, name), inflation=self.inflation)

    @property
    def inflation(self) -> Inflation:
        """Of the variance of a ROC-AUC by the fitting; none where it was fitted on another run."""
        return Inflation(self.shuffled.inflation) if self.shuffled else NOT_FITTED


def fitted_scores(
    data: ProbeData, detector: FittedDetector, fit_on: ProbeData | None = None, *, seed: int = 0
) -> FittedScores:
    """Score the documents of a run by a detector that is cross-fitted on it, or fitted on another.

    Raises:
        DataError: it cannot be fitted.
    """
    states, targets = data.at(detector), data.targets(detector)
    shared = (data.labels, data.groups)
    if fit_on is not None:
        arrays = detector.fit(fit_on.at(detector), fit_on.targets(detector), fit_on.group_numbers)
        values, n_labels, control = settled(detector.score(arrays, states)), len(fit_on.labels), None
    else:
        values, n_labels = cross_fitted(detector, states, targets, *shared, seed=seed), round(len(data.labels) * 0.8)
        control = shuffled(detector, states, targets, *shared, seed=seed)
    scores = tuple(
        replace(s, numbers={detector.name: float(v)}, choice_errors={})
        for s, v in zip(data.scores, values, strict=True)
    )
    return FittedScores(scores, n_labels if detector.target == "labels" else 0, control)


def _fitted_row(
    data: ProbeData, detector: FittedDetector, fit_on: ProbeData | None, *, controls: bool, prices: bool, seed: int
) -> tuple[ProbeRow, Labelled]:
    states, targets = data.at(detector), data.targets(detector)
    start = time.perf_counter()
    fitted = fitted_scores(data, detector, fit_on, seed=seed)
    seconds = time.perf_counter() - start
    column = fitted.column(detector.name)
    row = ProbeRow(detector.name, detector.title, 0, fitted.labels, column.auroc(), passes=1, seconds=seconds)
    if fitted.shuffled is not None:
        row = replace(row, shuffled=fitted.shuffled.mean)
    if controls and fit_on is None:
        foreign = foreign_auroc(detector, states, targets, data.labels, data.groups, seed=seed)
        row = replace(row, foreign=foreign)
    if prices and fit_on is None:
        row = replace(row, prices=_prices(data, detector, states, seed))
    return row, column


def foreign_auroc(
    detector: FittedDetector,
    states: FloatArray,
    targets: IntArray,
    labels: IntArray,
    groups: Sequence[str],
    *,
    seed: int = 0,
) -> float:
    """ROC-AUC with the states of another image's document, the mean over draws of these.

    Arguments as of `hedge_tasks.detectors.probes.crossfit.cross_fitted`.
    """
    rng, areas = np.random.default_rng([seed, 2]), []
    for _ in range(CONTROLS):
        elsewhere, folds = states[_places_elsewhere(groups, rng)], int(rng.integers(1 << 30))
        values = cross_fitted(detector, elsewhere, targets, labels, groups, repeats=1, seed=folds)
        areas.append(_area(values, labels))
    return float(np.mean(areas))


def _places_elsewhere(groups: Sequence[str], rng: np.random.Generator) -> IntArray:
    """For each document one of another group; every document is taken once, where that is possible."""
    own_groups = np.asarray(groups, dtype=object)
    n = len(own_groups)
    order = rng.permutation(n)
    for _ in range(100):
        unmoved = np.flatnonzero(own_groups[order] == own_groups)
        if not len(unmoved):
            break
        for i in unmoved:
            j = int(rng.integers(n))
            order[i], order[j] = order[j], order[i]
    places: IntArray = order
    return places


def _prices(data: ProbeData, detector: FittedDetector, states: FloatArray, seed: int) -> dict[int, float]:
    return label_prices(detector, states, data.labels, data.groups, seed=seed) if detector.target == "labels" else {}


def label_prices(
    detector: FittedDetector, states: FloatArray, labels: IntArray, groups: Sequence[str], *, seed: int = 0
) -> dict[int, float]:
    """Number of labels -> ROC-AUC, for those of `LABEL_PRICES` that the run can pay.

    Arguments as of `hedge_tasks.detectors.probes.crossfit.cross_fitted`.
    """
    prices: dict[int, float] = {}
    for n in LABEL_PRICES:
        if n >= len(labels) * 0.8:
            break
        try:
            values = cross_fitted(detector, states, labels, labels, groups, n_labels=n, seed=seed)
        except DataError:  # so few documents that the method has nothing to stand on: no number at this price
            continue
        prices[n] = _area(values, labels)
    return prices


def _area(values: FloatArray, labels: IntArray) -> float:
    return auroc(values.tolist(), labels.tolist())
