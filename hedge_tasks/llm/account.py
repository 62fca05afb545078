"""The cost of asking: requests, tokens and seconds, and how many replies were there already."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, fields
from typing import Any

from hedge_tasks.llm.log import Reply
from hedge_tasks.numbers import Format


@dataclass
class Counts:
    """Of one stage, or of all together.

    Attributes:
        requests: Replies that were had now.
        cached: Replies that were kept from before.
        unreadable: Replies that were not of the form that was asked for, kept ones included.
        failed: Requests that came to nothing, retries included.
        prompt_tokens, completion_tokens: Of the requests of now, as far as models tell.
        seconds: That these requests took, one by one: of several under way at once the sum.
        all_prompt_tokens, all_completion_tokens: Of every reply that was used, by whichever process it was had.
    """

    requests: int = 0
    cached: int = 0
    unreadable: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    all_prompt_tokens: int = 0
    all_completion_tokens: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}

    def __str__(self) -> str:
        troubles = [
            f"{count} {what}" for what, count in (("unreadable", self.unreadable), ("failed", self.failed)) if count
        ]
        counts = ", ".join([f"{self.requests:,} requests", f"{self.cached:,} replies from before", *troubles])
        tokens = f"{self.prompt_tokens:,} prompt and {self.completion_tokens:,} completion tokens"
        return f"{counts}; {tokens}, as far as told; {Format(1)(self.seconds)} s"


class Account:
    """The counts of each stage of an asking. Threads may share it.

    Attributes:
        stages: Counts by stage, in the order in which the stages began.
    """

    def __init__(self) -> None:
        self.stages: dict[str, Counts] = {}
        self._lock = threading.Lock()

    def count(self, stage: str, reply: Reply, *, cached: bool, unreadable: bool = False) -> None:
        """Count a reply, of now or kept from before."""
        tokens = (reply.prompt_tokens or 0, reply.completion_tokens or 0)
        now = (0, 0, 0.0) if cached else (*tokens, reply.seconds or 0.0)
        self.add(stage, Counts(not cached, cached, unreadable, 0, *now, *tokens))

    @property
    def total(self) -> Counts:
        """All stages together."""
        return sum(self.stages.values(), Counts())

    def to_dict(self) -> dict[str, Any]:
        """The total and the stages, ready for JSON."""
        stages = {stage: counts.to_dict() for stage, counts in self.stages.items()}
        return {**self.total.to_dict(), "stages": stages}

    def add(self, stage: str, counts: Counts) -> None:
        """Count what is counted already, or a request that came to nothing."""
        with self._lock:
            self.stages[stage] = self.stages.get(stage, Counts()) + counts


def account_of(*askers: object) -> Account:
    """One account of all that some things have asked: their attribute `account`, and those of their `parts`."""
    whole = Account()
    for asker in askers:
        own = asker if isinstance(asker, Account) else getattr(asker, "account", None)
        of_parts = [account_of(part) for part in getattr(asker, "parts", ())]
        for account in [*([own] if isinstance(own, Account) else []), *of_parts]:
            for stage, counts in account.stages.items():
                whole.add(stage, counts)
    return whole


def asked(*askers: object) -> tuple[dict[str, Any], list[str]]:
    """A command's account of its asking: for JSON under `asked`, and as a line; nothing where nothing was asked.

    Args:
        askers: As for `account_of`.
    """
    account = account_of(*askers)
    return ({"asked": account.to_dict()}, [f"asked: {account.total}"]) if account.stages else ({}, [])
