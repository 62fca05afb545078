"""Support of a run's claims by its draws, as it is computed once and kept in the run file.

The header of a run file has the settings and the price under `support`; each document's line has its claims and their
support there, matrices as base64 of their numbers.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from hedge_tasks.claims.decomposition import Decomposed
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.io.records import Count, Objects, Record, checked


def _encoded(matrix: Any) -> dict[str, Any] | None:
    if matrix is None:
        return None
    data = base64.b64encode(np.ascontiguousarray(matrix).tobytes()).decode()
    return {"shape": list(matrix.shape), "type": matrix.dtype.str, "data": data}


def _decoded(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    try:
        return np.frombuffer(base64.b64decode(value["data"], validate=True), value["type"]).reshape(value["shape"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"no matrix ({error!r})") from None


Matrix = Annotated[Any, BeforeValidator(_decoded), PlainSerializer(_encoded)]
"""Probabilities; None where they were not asked for."""


class Supported(Record):
    """Support of the claims of one answer.

    Attributes:
        decomposed: the claims.
        clean, noisy: support by the draws, shapes (K, n, 3) and (K, m, 3).
        elsewhere: support by the clean draws about another image; None where that was not asked for.
    """

    decomposed: Annotated[Decomposed, BeforeValidator(partial(checked, Decomposed))]
    clean: Matrix
    noisy: Matrix
    elsewhere: Matrix = None

    def fits(self, answers: AnswerSet) -> bool:
        """Whether it is of that many claims within this answer, and of so many draws."""
        claims, end = self.decomposed.claims, len(answers.baseline.text)
        shapes = [(len(claims), len(draws), 3) for draws in (answers.clean, answers.noisy)]
        within = all(0 <= claim.start <= claim.end <= end for claim in claims)
        return within and [np.shape(matrix) for matrix in (self.clean, self.noisy)] == shapes


class SupportPrice(Record):
    """Price of asking an engine, before it is asked.

    Attributes:
        answers, claims: how many there are.
        draws: fewest draws an answer, clean and noisy.
        amount: of `unit`: NLI pairs, judge calls, ...; equal ones once.
        unit: what is counted; empty where nothing is worth telling.
    """

    answers: Count
    claims: Count
    draws: Count
    amount: Count
    unit: str

    @classmethod
    def of_all(cls, prices: Sequence[SupportPrice]) -> SupportPrice:
        """Return the price of processes that ask about answers of their own; what two of them ask counts twice."""
        answers, claims, amount = (sum(getattr(p, name) for p in prices) for name in ("answers", "claims", "amount"))
        # A process without answers has no draws.
        draws = min((price.draws for price in prices if price.answers), default=0)
        return cls(answers=answers, claims=claims, draws=draws, amount=amount, unit=prices[0].unit)

    def __str__(self) -> str:
        cost = f": at most {self.amount} {self.unit}" if self.unit else ", no model"
        return f"{self.claims} claims of {self.answers} answers x {self.draws} draws{cost}"


class SupportSource(Record):
    """The origin of a support.

    Attributes:
        settings: of decomposition and engine.
        engine: its name.
        contradicts: see `hedge_tasks.claims.entailment.Entailment`.
        price: of all of it.
    """

    settings: Objects[Any]
    engine: str
    contradicts: bool
    price: SupportPrice

    @property
    def title(self) -> str:
        """Decomposition, engine and its model in words."""
        model = self.settings.get("model")
        return f"{self.settings.get('decomposition')} by {self.engine}" + (f" ({model})" if model else "")


class Support(Record):
    """Support of the claims of a run.

    Attributes:
        source: what computed it.
        answers: by the answer's id.
    """

    source: SupportSource
    answers: Objects[Supported]

    def of(self, answer_sets: Sequence[AnswerSet]) -> list[Supported] | None:
        """Return the support of some answers, in their order; None where it is of other answers or draws."""
        sound = [s for a in answer_sets if (s := self.answers.get(a.id)) is not None and s.fits(a)]
        return sound if len(sound) == len(answer_sets) else None
