"""Whether a draw supports a claim: one engine a file, chosen by name.

Another package adds its own under the entry-point group `hedge_tasks.entailments`: a class or function that makes one
from options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.base import ENTAILMENT, NEUTRAL
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registry

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SupportQuery:
    """Claims of one answer, and the draws that may support them."""

    claims: tuple[str, ...]
    draws: tuple[str, ...]


class Entailment:
    """Tells how far draws support claims.

    Attributes:
        name: in results.
        contradicts: whether it tells a draw that contradicts a claim from one that is silent on it.
        priced: what `price` counts, such as "NLI pairs"; empty where it costs nothing worth telling.
    """

    name: str
    contradicts: bool = False
    priced: str = ""

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        """Of every claim by every draw, shape (claims, draws, 3): contradiction, neutral, entailment, in [0, 1].

        NaN where it cannot be told; an empty draw is silent.
        """
        raise NotImplementedError

    def price(self, queries: Sequence[SupportQuery]) -> int:
        """How many pairs, calls, ... `support` takes at most, before it is called; asks no model."""
        return 0

    def check(self) -> None:
        """Raise where it is known that the engine cannot be used.

        Raises:
            HedgeError: its model cannot be had, ...
        """
        return None

    def settings(self) -> dict[str, Any]:
        """Everything that decides the support, ready for JSON."""
        return {"support": self.name}


ENTAILMENTS: Registry[Entailment] = Registry(
    "support",
    "hedge_tasks.entailments",
    {
        "judge": "hedge_tasks.claims.entailment.judge:JudgeEntailment",
        "nli": "hedge_tasks.claims.entailment.nli:NliEntailment",
        "words": "hedge_tasks.claims.entailment.words:WordsEntailment",
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


def support_of(query: SupportQuery, cell: Callable[[str, str], npt.ArrayLike | None]) -> FloatArray:
    """The support of every claim of a query by every draw, shape (claims, draws, 3).

    Args:
        cell: from a claim and a draw to the three probabilities; None where they are not known (NaN). Blank claims and
            draws are silent, and are not looked up.
    """
    support = np.full((len(query.claims), len(query.draws), 3), np.nan)
    for i, claim in enumerate(query.claims):
        for j, draw in enumerate(query.draws):
            row = cell(claim, draw) if claim.strip() and draw.strip() else np.eye(3)[NEUTRAL]
            if row is not None:
                support[i, j] = row
    return support


def silent_or_entailed(entailed: npt.ArrayLike) -> FloatArray:
    """Support of an engine that knows no contradiction, shape (..., 3), from entailment in [0, 1], shape (...)."""
    shares = np.asarray(entailed, dtype=np.float64)
    support = np.zeros((*shares.shape, 3))
    support[..., ENTAILMENT], support[..., NEUTRAL] = shares, 1.0 - shares
    return support
