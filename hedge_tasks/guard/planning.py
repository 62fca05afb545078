"""Plan labels: what may be hoped for with so many, before they are paid for, from a pilot that has some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import DataError
from hedge_tasks.guard.calibrate import groups_of, labels_of
from hedge_tasks.guard.seen import columns
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.risk_control import control_risk

_REPEATS = 60
_FEWEST = 20
"""Labels of a pilot."""


@dataclass(frozen=True)
class Hope:
    """The result that a number of labels would give, if the documents to come are like the pilot's.

    Attributes:
        labels: their number.
        chance: share of the repetitions in which anything could be promised.
        accepted: share of the answers that the promise lets through, in the middle of the repetitions (0 without one).
        low, high: between these it is in four of five repetitions.
    """

    labels: int
    chance: float
    accepted: float
    low: float
    high: float


def plan(
    run: Run,
    scorer: Scorer,
    detector: str,
    sizes: Sequence[int],
    *,
    risk: float,
    confidence: float = 0.9,
    seed: int = 0,
) -> list[Hope]:
    """Calibrate on documents drawn from a pilot with replacement, whole groups at a time, as many as there would be.

    Args:
        run: the pilot: some of its documents have labels.
        sizes: numbers of labels.

    Raises:
        DataError: the pilot has fewer than 20 labels.
    """
    labels, groups = labels_of(run.answer_sets), groups_of(run.answer_sets)
    labelled = np.flatnonzero(~np.isnan(labels))
    if len(labelled) < _FEWEST:
        raise DataError(f"{run.title}: {len(labelled)} documents have labels; a plan needs a pilot of {_FEWEST}")
    name = get(detector).name
    values = columns(run.answer_sets, scorer, [name])[name].values
    places: dict[object, list[int]] = {}
    for i in labelled:
        places.setdefault(i if groups is None else groups[i], []).append(int(i))
    members = list(places.values())
    chance = np.random.default_rng(seed)
    return [
        _hope(size, [_drawn(members, size, chance) for _ in range(_REPEATS)], values, labels, risk, confidence)
        for size in sizes
    ]


def _drawn(members: Sequence[Sequence[int]], size: int, chance: np.random.Generator) -> list[tuple[int, int]]:
    """(document, number of its group) of as many documents as there would be labels."""
    mean = sum(map(len, members)) / len(members)
    picked = chance.integers(len(members), size=math.ceil(size / mean * 1.5) + 5)
    pairs = [(document, number) for number, place in enumerate(picked) for document in members[place]]
    return pairs[:size]


def _hope(
    size: int,
    samples: Sequence[Sequence[tuple[int, int]]],
    values: np.ndarray,
    labels: np.ndarray,
    risk: float,
    confidence: float,
) -> Hope:
    shares = []
    for sample in samples:
        rows, groups = [i for i, _ in sample], [group for _, group in sample]
        options = {"risk": risk, "confidence": confidence}
        control = control_risk(values[rows], labels[rows], groups=groups, **options)  # type: ignore[arg-type]
        shares.append(control.chosen.share if control.chosen is not None else 0.0)
    low, middle, high = np.quantile(shares, [0.1, 0.5, 0.9])
    return Hope(size, sum(share > 0 for share in shares) / len(shares), float(middle), float(low), float(high))
