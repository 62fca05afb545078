"""A model on a server reads a draw and says of each claim: yes, no, or contradicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from loguru import logger

from hedge_tasks.claims.asking import ClaimAsker
from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL
from hedge_tasks.claims.entailment import FloatArray, SupportQuery
from hedge_tasks.io import options
from hedge_tasks.llm.asker import Query
from hedge_tasks.llm.reading import Unreadable, read_object

VERDICTS = {"yes": ENTAILMENT, "no": NEUTRAL, "contradicts": CONTRADICTION}

LONGEST = 20_000
"""Characters of a text that a judge is shown; of a longer one nothing is known."""

_TOKENS_A_CLAIM = 12


@dataclass(frozen=True, slots=True)
class Call:
    """One question: a draw and some claims."""

    draw: str
    claims: tuple[str, ...]


class JudgeEntailment(ClaimAsker):
    """Asks a model behind OpenAI's chat API about all claims of an answer in one call a draw.

    A reply that cannot be read is asked for again, then each claim by itself; what is still not read has no support
    (NaN), and a warning counts these. What was said is kept in the cache on disk (`HEDGE_CACHE`): nothing is asked
    twice.

    Args:
        model: Name under which the server knows the model.
        url: See `ClaimAsker`, as the further options.
        claims_a_call: Most claims in one call; 1 asks about each by itself.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "judge"
    prompt_name = "support"
    contradicts = True
    priced = "judge calls"

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        provider: str | None = None,
        account: bool = False,
        claims_a_call: int = 40,
        thinking: bool = False,
        concurrency: int = 16,
        timeout: float = 120.0,
        max_retries: int = 8,
        cache: bool = True,
    ) -> None:
        asking: dict[str, Any] = {"provider": provider, "account": account, "thinking": thinking, "cache": cache}
        waiting: dict[str, Any] = {"concurrency": concurrency, "timeout": timeout, "max_retries": max_retries}
        super().__init__(model, url=url, **asking, **waiting)
        self.claims_a_call = options.count("claims_a_call", claims_a_call, at_least=1)

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        calls = list(dict.fromkeys(call for query in queries for call in self._calls(query)))
        verdicts_by_call = self._verdicts(calls)
        unread = [call for call in calls if call not in verdicts_by_call and len(call.claims) > 1]
        singles = dict.fromkeys(Call(call.draw, (claim,)) for call in unread for claim in call.claims)
        verdicts_by_call |= self._verdicts([call for call in singles if call not in verdicts_by_call])
        verdicts = {
            (call.draw, claim): column
            for call, columns in verdicts_by_call.items()
            for claim, column in zip(call.claims, columns, strict=True)
        }
        supports = [_support(query, verdicts) for query in queries]
        if unknown := sum(int(np.isnan(support[..., 0]).sum()) for support in supports):
            logger.warning("{} verdicts of judge {} could not be had or read: unknown", unknown, self.model.name)
        return supports

    def price(self, queries: Sequence[SupportQuery]) -> int:
        return len({call for query in queries for call in self._calls(query)})

    def settings(self) -> dict[str, Any]:
        return {"support": self.name, **super().settings(), "claims_a_call": self.claims_a_call}

    def _calls(self, query: SupportQuery) -> Iterator[Call]:
        claims = tuple(dict.fromkeys(claim for claim in query.claims if claim.strip()))
        for draw in dict.fromkeys(draw for draw in query.draws if draw.strip() and len(draw) <= LONGEST):
            for start in range(0, len(claims), self.claims_a_call):
                yield Call(draw, claims[start : start + self.claims_a_call])

    def _verdicts(self, calls: Sequence[Call]) -> dict[Call, tuple[int, ...]]:
        """By call the verdicts on its claims; a call whose reply could not be had or read is missing."""
        results = self._answers([self._question(call) for call in calls]) if calls else []
        return {call: result.value for call, result in zip(calls, results, strict=True) if result.value is not None}

    def _question(self, call: Call) -> Query[tuple[int, ...]]:
        return Query(
            self.prompt,
            {"text": call.draw, "claims": _numbered(call.claims)},
            lambda reply: read_verdicts(reply.text, len(call.claims)),
            schema=_schema(call),
            max_tokens=self._tokens(64 + _TOKENS_A_CLAIM * len(call.claims)),
        )


def read_verdicts(reply: str, n: int) -> tuple[int, ...]:
    """The verdicts of a reply, as columns of a support.

    Raises:
        Unreadable: it has not one for each of n claims.

    Example:
        >>> read_verdicts('Here: {"1": "yes", "2": "Contradicts"}', 2)
        (2, 0)
    """

    def accept(fields: dict[str, Any]) -> tuple[int, ...]:
        names = [str(i + 1) for i in range(n)]
        if set(fields) != set(names):
            raise Unreadable(f"expected a verdict on each of {n} claims")
        spoken = [str(fields[name]).strip().lower() for name in names]
        if strange := set(spoken) - set(VERDICTS):
            raise Unreadable(f"no verdict: {sorted(strange)[0][:80]}")
        return tuple(VERDICTS[word] for word in spoken)

    return read_object(reply, accept)


def _numbered(values: Sequence[str]) -> dict[str, str]:
    return {str(i): value for i, value in enumerate(values, start=1)}


def _schema(call: Call) -> dict[str, Any]:
    names = list(_numbered(call.claims))
    properties = {name: {"type": "string", "enum": list(VERDICTS)} for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def _support(query: SupportQuery, verdicts: Mapping[tuple[str, str], int]) -> FloatArray:
    support = np.zeros((len(query.claims), len(query.draws), 3))
    for i, claim in enumerate(query.claims):
        for j, draw in enumerate(query.draws):
            if not draw.strip() or not claim.strip():
                support[i, j, NEUTRAL] = 1.0
            elif (verdict := verdicts.get((draw, claim))) is None:
                support[i, j] = np.nan
            else:
                support[i, j, verdict] = 1.0
    return support
