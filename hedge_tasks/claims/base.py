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
        logprobs: of each claim's tokens, in nats; None where they are not known.
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
    logprobs: tuple[FloatArray, ...] | None = None
    engine: str = ""

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
        if self.rarity is not None and self.rarity.shape != (k,):
            raise ValueError(f"rarity must have shape ({k},), got {self.rarity.shape}")

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
            "claim_logprobs": self.logprobs is not None,
        }
        return frozenset(need for need, is_met in met.items() if is_met)

    def with_draws(self, n: int, m: int) -> ClaimEvidence:
        """The same with the first n clean and m noisy draws only."""
        if (n, m) == (self.n_clean, self.n_noisy):
            return self
        return replace(self, clean=self.clean[:, :n], noisy=self.noisy[:, :m])

    def verdicts(self, number: int) -> list[tuple[str, str, float]]:
        """The verdict of every draw on one claim: its name ("clean 0"), the likeliest verdict, and the entailment.

        The verdict is "supporting", "contradicting", or "silent" where neutral is as likely or nothing is known.
        """
        of_draws = []
        for condition in ("clean", "noisy"):
            for j, (contradicted, neutral, entailed) in enumerate(getattr(self, condition)[number].tolist()):
                supports = entailed > neutral and entailed >= contradicted
                verdict = "supporting" if supports else "contradicting" if contradicted > neutral else "silent"
                of_draws.append((f"{condition} {j}", verdict, entailed))
        return of_draws

    def shared(self, function: Callable[[ClaimEvidence], Result]) -> Result:
        """Return what the function makes of this evidence, computed once."""
        if function not in self._made:
            self._made[function] = function(self)
        return cast(Result, self._made[function])

    @cached_property
    def _made(self) -> dict[Callable[[ClaimEvidence], Any], Any]:
        return {}
