"""A fitted detector: `fit` turns labelled states into arrays, `score` turns these and other states into numbers.

The arrays are the detector's whole state: they can be kept as numbers, hashed, and used on another run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.inside import ARRAYS, HEADS, PLACES, SENTENCE_PLACES

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int64]

Arrays = Mapping[str, FloatArray]
"""The state that a detector has learnt."""


@dataclass(frozen=True)
class FittedDetector:
    """A detector with a state.

    Attributes:
        name, title: as of every detector.
        place: that it looks at: of `states` one of `hedge_tasks.data.inside.PLACES`, of `sentence_states` one of
            `SENTENCE_PLACES`, of `heads` one of `HEADS`.
        target: `labels` of documents, or `entropy`: the semantic entropy of their draws, which needs no label.
        fit: from states of shape (n, layers, width), targets 0 or 1 of shape (n,) and groups of shape (n,) to arrays.
        score: from these arrays and states of shape (m, layers, width) to numbers of shape (m,), the higher the more
            likely the answer is hallucinated.
        source: paper, and equation where it has one.
        array: that it looks at, one of `hedge_tasks.data.inside.ARRAYS`: `states`, `sentence_states`, or `heads`, which
            are one layer as wide as there are heads in all.
    """

    name: str
    title: str
    place: str
    target: str = "labels"
    fit: Callable[[FloatArray, IntArray, IntArray], Arrays] = field(repr=False, kw_only=True)
    score: Callable[[Arrays, FloatArray], FloatArray] = field(repr=False, kw_only=True)
    source: str = ""
    array: str = "states"

    @property
    def level(self) -> str:
        """The unit that it scores: "answer" or "claim"."""
        return "claim" if self.array == "sentence_states" else "answer"

    @property
    def part(self) -> str:
        """The part of the model that has to be kept for it, one of `hedge_tasks.data.inside.PARTS`."""
        [part] = [part for part, arrays in ARRAYS.items() if self.array in arrays]
        return part


def at_place(detector: FittedDetector, array: FloatArray) -> FloatArray:
    """Return the place of an array that a detector looks at, shape (n, layers, width)."""
    places = {"states": PLACES, "sentence_states": SENTENCE_PLACES}
    if detector.array in places:
        return array[:, :, places[detector.array].index(detector.place)]
    return array[..., HEADS.index(detector.place)].reshape(len(array), 1, -1)


def settled(values: FloatArray) -> FloatArray:
    """Return scores between 0 and 1 in their order, to nine digits: equal states get equal scores wherever they stand.

    The last digits of a product of matrices depend on the row, and would decide who is before whom.
    """
    spread = float(np.ptp(values)) if len(values) else 0.0
    scores: FloatArray = np.round((values - values.min()) / spread, 9) if spread > 0 else np.zeros(len(values))
    return scores
