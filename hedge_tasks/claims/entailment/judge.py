"""A model on a server reads a draw and says of each claim: yes, no, or contradicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from loguru import logger

from hedge_tasks.claims.asking import ClaimAsker
from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL
from hedge_tasks.claims.entailment import FloatArray, SupportQuery, support_of
from hedge_tasks.llm.asker import Query
from hedge_tasks.llm.reading import Unreadable, read_object

VERDICTS = {"yes": ENTAILMENT, "no": NEUTRAL, "contradicts": CONTRADICTION}

LONGEST = 20_000
"""Characters of a text that a judge is shown; of a longer one nothing is known."""

CLAIMS_A_CALL = 40
"""Most claims that one call asks about."""

_TOKENS_A_CLAIM = 12


Call = tuple[str, tuple[str, ...]]
"""One question: a draw and some claims."""


class JudgeEntailment(ClaimAsker):
    """Asks a model behind OpenAI's chat API about all claims of an answer in one call a draw.

    A reply that cannot be read is asked for again; what is still not read has no support (NaN), and a warning counts
    these. What was said is kept in the cache on disk (`HEDGE_CACHE`): nothing is asked
    twice.

    Args:
        model, url, ...: See `ClaimAsker`.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "judge"
    prompt_name = "support"
    contradicts = True
    priced = "judge calls"

    def support(self, queries: Sequence[SupportQuery]) -> list[FloatArray]:
        calls = list(dict.fromkeys(call for query in queries for call in _calls(query)))
        results = self._answers([self._question(*call) for call in calls])
        verdicts = {
            (draw, claim): column
            for (draw, claims), result in zip(calls, results, strict=True)
            for claim, column in zip(claims, result.value or (), strict=False)
        }
        known = np.eye(3)

        def cell(claim: str, draw: str) -> FloatArray | None:
            return None if (verdict := verdicts.get((draw, claim))) is None else known[verdict]

        supports = [support_of(query, cell) for query in queries]
        if unknown := sum(int(np.isnan(support[..., 0]).sum()) for support in supports):
            logger.warning("{} verdicts of judge {} could not be had or read: unknown", unknown, self.model.name)
        return supports

    def price(self, queries: Sequence[SupportQuery]) -> int:
        return len({call for query in queries for call in _calls(query)})

    def settings(self) -> dict[str, Any]:
        return {"support": self.name, **super().settings()}

    def _question(self, draw: str, claims: tuple[str, ...]) -> Query[tuple[int, ...]]:
        return Query(
            self.prompt,
            {"text": draw, "claims": {str(i): claim for i, claim in enumerate(claims, start=1)}},
            lambda reply: read_verdicts(reply.text, len(claims)),
            schema=_schema(len(claims)),
            max_tokens=self._tokens(64 + _TOKENS_A_CLAIM * len(claims)),
        )


def _calls(query: SupportQuery) -> Iterator[Call]:
    claims = tuple(dict.fromkeys(claim for claim in query.claims if claim.strip()))
    for draw in dict.fromkeys(draw for draw in query.draws if draw.strip() and len(draw) <= LONGEST):
        for start in range(0, len(claims), CLAIMS_A_CALL):
            yield draw, claims[start : start + CLAIMS_A_CALL]


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


def _schema(n: int) -> dict[str, Any]:
    names = [str(i + 1) for i in range(n)]
    properties = {name: {"type": "string", "enum": list(VERDICTS)} for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}
