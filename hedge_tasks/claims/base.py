"""A claim, its support, and everything that is known of the claims of one answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.floating[Any]]
Result = TypeVar("Result")

CONTRADICTION, NEUTRAL, ENTAILMENT = range(3)
"""Order of the probabilities in every support, that of `hedge_tasks.clustering.relations.LIKELIEST`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A part of a baseline answer that is true or false by itself.

    Attributes:
        id: `<id of the answer>#<number>`, from 0.
        answer: id of the answer.
        text: what is claimed, as it is shown to a model: the span itself, or a sentence made of it ("No mass" of
            "No effusion or mass").
        start, end: of its characters in the baseline answer, `0 <= start < end`.
        kind: name of the decomposition that found it.
    """

    id: str
    answer: str
    text: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Support:
    """Support of a claim by one draw.

    Attributes:
        claim: its id.
        draw: "clean 0", "noisy 3", ...
        entail, neutral, contradict: in [0, 1]. Of a draw in several windows the maximum of entailment and of
            contradiction and the minimum of neutral, so that they need not add up to 1.
        engine: who says so.
    """

    claim: str
    draw: str
    entail: float
    neutral: float
    contradict: float
    engine: str

    @property
    def verdict(self) -> str:
        """The likeliest: "supporting", "contradicting", or "silent" where neutral is as likely or nothing is known."""
        if self.entail > self.neutral and self.entail >= self.contradict:
            return "supporting"
        return "contradicting" if self.contradict > self.neutral else "silent"


@dataclass(frozen=True, eq=False)
class ClaimEvidence:
    """Evidence on the K claims of one answer. Labels are not part of it.

    Supports have the probabilities of contradiction, neutral and entailment of each claim (row) by each draw (column).

    Attributes:
        claims: of the baseline answer, in their order.
        answer: text of the baseline answer.
        clean: support by the clean draws, shape (K, n, 3).
        noisy: support by the noisy draws, shape (K, m, 3).
        contradicts: whether the engine tells what contradicts a claim from what is silent on it.
        elsewhere: support by the clean draws about another image, shape (K, n', 3); None where it was not asked for.
        rarity: 1 − share of other images' answers in which the claim's words stand, shape (K,); None for a single
            answer.
        graph: entailment of the different claims of all answers (rows) by all answers (columns; the first is the
            baseline answer), shape (U, 1 + n); None where it was not asked for.
        graph_rows: in which row of the graph each claim stands, shape (K,).
        logprobs: of each claim's tokens, in nats; None where they are not known.
        ccp: claim-conditioned probability of each claim, shape (K,); None where it was not asked for.
        engine: name of the one that gave the support.

    Raises:
        ValueError: a shape is not that of the claims.
    """

    claims: tuple[Claim, ...]
    answer: str
    clean: Matrix = field(default_factory=lambda: np.empty((0, 0, 3)))
    noisy: Matrix = field(default_factory=lambda: np.empty((0, 0, 3)))
    contradicts: bool = True
    elsewhere: Matrix | None = None
    rarity: FloatArray | None = None
    graph: Matrix | None = None
    graph_rows: tuple[int, ...] = ()
    logprobs: tuple[FloatArray, ...] | None = None
    engine: str = ""
    ccp: FloatArray | None = None

    def __post_init__(self) -> None:
        k = len(self.claims)
        for name in ("clean", "noisy", "elsewhere"):
            value = getattr(self, name)
            if value is None:
                continue
            if not value.size:
                object.__setattr__(self, name, np.empty((k, 0, 3)))
            elif value.ndim != 3 or value.shape[0] != k or value.shape[2] != 3:
                raise ValueError(f"{name} must have shape ({k}, draws, 3) for {k} claims, got {value.shape}")
        for name in ("rarity", "ccp"):
            if (values := getattr(self, name)) is not None and values.shape != (k,):
                raise ValueError(f"{name} must have shape ({k},), got {values.shape}")
        if self.graph is not None and (self.graph.ndim != 2 or len(self.graph_rows) != k):
            raise ValueError(f"a graph has two axes and a row for each of {k} claims, got shape {self.graph.shape}")
        if self.logprobs is not None and len(self.logprobs) != k:
            raise ValueError(f"there are log-probabilities of {len(self.logprobs)} claims, not of {k}")

    @property
    def n_clean(self) -> int:
        return int(self.clean.shape[1])

    @property
    def n_noisy(self) -> int:
        return int(self.noisy.shape[1])

    @cached_property
    def offers(self) -> frozenset[str]:
        """Which needs of a claim detector are met (`hedge_tasks.detectors.base.NEEDS`)."""
        met = {
            "claims": True,
            "clean_support": self.n_clean > 0,
            "noisy_support": self.n_noisy > 0,
            "contradictions": self.contradicts,
            "elsewhere": self.elsewhere is not None and self.elsewhere.shape[1] > 0,
            "rarity": self.rarity is not None,
            "claim_graph": self.graph is not None,
            "claim_logprobs": self.logprobs is not None,
            "claim_ccp": self.ccp is not None,
        }
        return frozenset(need for need, is_met in met.items() if is_met)

    def with_draws(self, n: int, m: int) -> ClaimEvidence:
        """The same with the first n clean and m noisy draws only."""
        if (n, m) == (self.n_clean, self.n_noisy):
            return self
        return replace(self, clean=self.clean[:, :n], noisy=self.noisy[:, :m], graph=None, graph_rows=())

    def supports(self, number: int) -> list[Support]:
        """Return what every draw says of one claim: the clean ones, then the noisy ones."""
        of_claim = []
        for condition in ("clean", "noisy"):
            for j, row in enumerate(getattr(self, condition)[number].tolist()):
                probabilities = (row[ENTAILMENT], row[NEUTRAL], row[CONTRADICTION])
                of_claim.append(Support(self.claims[number].id, f"{condition} {j}", *probabilities, self.engine))
        return of_claim

    def shared(self, function: Callable[[ClaimEvidence], Result]) -> Result:
        """Return what the function makes of this evidence, computed once."""
        if function not in self._made:
            self._made[function] = function(self)
        return cast(Result, self._made[function])

    @cached_property
    def _made(self) -> dict[Callable[[ClaimEvidence], Any], Any]:
        return {}
