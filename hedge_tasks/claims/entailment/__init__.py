"""Whether a draw supports a claim: one engine a file, chosen by name.

Another package adds its own under the entry-point group `hedge_tasks.entailments`: a class or function that makes one
from options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.base import ENTAILMENT, NEUTRAL
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registry

__all__ = ["ENTAILMENTS", "SupportQuery", "Entailment", "build_entailment", "silent_or_entailed"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SupportQuery:
    """Claims of one answer, and the draws that may support them."""

    claims: tuple[str, ...]
    draws: tuple[str, ...]


class Entailment(Protocol):
    """Tells how far draws support claims.

    Attributes:
        name: in results.
        contradicts: whether it tells a draw that contradicts a claim from one that is silent on it.
        priced: what `price` counts, such as "NLI pairs"; empty where it costs nothing worth telling.
    """

    name: str
    contradicts: bool
    priced: str

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        """Of every claim by every draw, shape (claims, draws, 3): contradiction, neutral, entailment, in [0, 1].

        NaN where it cannot be told; an empty draw is silent.
        """

    def price(self, queries: Sequence[SupportQuery]) -> int:
        """How many pairs, calls, ... `support` takes at most, before it is called; asks no model."""

    def check(self) -> None:
        """Raise where it is known that the engine cannot be used.

        Raises:
            HedgeError: its model cannot be had, ...
        """

    def settings(self) -> dict[str, Any]:
        """Everything that decides the support, ready for JSON."""


ENTAILMENTS: Registry[Entailment] = Registry(
    "support",
    "hedge_tasks.entailments",
    {
        "judge": "hedge_tasks.claims.entailment.judge:JudgeEntailment",
        "nli": "hedge_tasks.claims.entailment.nli:NliEntailment",
        "words": "hedge_tasks.claims.entailment.words:WordsEntailment",
        "cosine": "hedge_tasks.claims.entailment.cosine:CosineEntailment",
    },
    also=from_evaluations("entailments"),
)
"""Every engine, our own and those of evaluations and other packages."""


def build_entailment(name: str, **options: Any) -> Entailment:
    """An engine by name.

    Raises:
        ConfigError: the name or an option is unknown; names the nearest one.
    """
    return ENTAILMENTS.build(name, **options)


def silent_or_entailed(entailed: npt.ArrayLike) -> FloatArray:
    """Support of an engine that knows no contradiction, shape (..., 3), from entailment in [0, 1], shape (...)."""
    shares = np.asarray(entailed, dtype=np.float64)
    support = np.zeros((*shares.shape, 3))
    support[..., ENTAILMENT], support[..., NEUTRAL] = shares, 1.0 - shares
    return support
