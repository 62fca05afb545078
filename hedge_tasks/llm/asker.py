"""A question until its reply can be read: what is kept first, then requests, each reply kept as it comes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Generic, TypeVar

from hedge_tasks.errors import HedgeError
from hedge_tasks.io.progress import progress
from hedge_tasks.llm.account import Account, Counts
from hedge_tasks.llm.failures import RequestFailed
from hedge_tasks.llm.log import Reply, ReplyLog, digest
from hedge_tasks.llm.models import Model, ReplyOrFailure, Request
from hedge_tasks.llm.reading import Unreadable
from hedge_tasks.llm.template import Template

T = TypeVar("T")

DEFAULT_TOKENS = 512

_OF_THE_REQUEST = frozenset({"refused", "unsent"})
"""Failures that say nothing about other requests."""


@dataclass(frozen=True)
class Query(Generic[T]):
    """One kind of question: how it is put, and how its reply is read.

    Attributes:
        prompt: The template.
        values: What it shows, by the `case` of its fields.
        read: The reading of a reply. Raises Unreadable for one that is not of the form.
        images: Loads the pictures that are shown.
        image_keys: Digests of what they show; None where nothing tells them from others, so that no reply is kept.
        schema: In place of the prompt's.
        max_tokens: In place of the prompt's; asked again, a model may use twice as many.
        sampling: `temperature` (0 is greedy), `top_p`, ...
        place: Tells apart questions that are put in the same words to get other replies, and makes their seed.
    """

    prompt: Template
    values: Mapping[str, Any]
    read: Callable[[Reply], T]
    images: Callable[[], Sequence[Any]] = tuple
    image_keys: Sequence[str] | None = ()
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    sampling: Mapping[str, float] = field(default_factory=dict)
    place: str | None = None

    def key(self, model: Model, attempt: int) -> str | None:
        """A digest of all that shapes the reply; None where that is not known."""
        if self.image_keys is None:
            return None
        return digest(
            {
                "model": dict(model.identity),
                "prompt": self.prompt.digest,
                "values": dict(self.values),
                "images": list(self.image_keys),
                "schema": None if self.schema is None else dict(self.schema),
                "max_tokens": self.max_tokens,
                "sampling": dict(self.sampling),
                "seed": self._seed(attempt),
                "attempt": attempt,
            }
        )

    def request(self, attempt: int) -> Request:
        """The request of an attempt, from 0."""
        tokens = self.max_tokens or int(self.prompt.decoding.get("max_tokens", DEFAULT_TOKENS))
        settings = {"temperature": 0.0, **self.sampling, "max_tokens": tokens * (2 if attempt else 1)}
        if (seed := self._seed(attempt)) is not None:
            settings["seed"] = seed
        return Request(
            lambda: self.prompt.conversation(self.values, self.images(), again=attempt > 0),
            settings,
            self.prompt.reply_schema if self.schema is None else self.schema,
        )

    def _seed(self, attempt: int) -> int | None:
        """31 bits that the place of the question decides: every engine takes them."""
        if self.place is None:
            return None
        return int.from_bytes(hashlib.sha256(f"{self.place}\0{attempt}".encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True)
class QueryResult(Generic[T]):
    """The outcome of a question.

    Attributes:
        value: What was read; None where nothing could be.
        reply: The last reply; None where none came.
        problem: Why nothing was read.
        failure: Of a request that came to nothing, which says nothing about the question: the next run asks again.
        key: Under which the reply is kept; None where it is not.
        attempts: How many replies there have been.
    """

    value: T | None = None
    reply: Reply | None = None
    problem: str = ""
    failure: RequestFailed | None = None
    key: str | None = None
    attempts: int = 0


class Asker:
    """Asks one model, and keeps account.

    Args:
        model: Whom to ask.
        account: What is counted.
        log: Where replies are kept; None keeps none.
        asks: How often a question is asked in all, where the reply cannot be read.
        stage: What the questions are for; they are counted by it.
    """

    def __init__(
        self,
        model: Model,
        account: Account,
        log: ReplyLog | None = None,
        *,
        asks: int = 2,
        stage: str = "asked",
    ) -> None:
        self.model, self.account, self.log = model, account, log
        self.asks, self.stage = asks, stage

    def ask(self, query: Query[T], stop: threading.Event) -> QueryResult[T]:
        """One question, now. Threads may call it.

        Raises:
            HedgeError: Every other question would fail the same way.
        """
        result = self._cached(query)
        while self._unresolved(result):
            outcome = self.model.reply(query.request(result.attempts), stop)
            result = self._recorded(query, outcome, result.attempts)
        return result

    def ask_all(self, queries: Sequence[Query[T]]) -> list[QueryResult[T]]:
        """Many questions, as many at once as the model takes; equal ones once.

        Raises:
            HedgeError: The model is gone, refuses everything, or answered nothing at all.
        """
        first: dict[str, int] = {}
        places = [first.setdefault(q.key(self.model, 0) or f"place {i}", i) for i, q in enumerate(queries)]
        results = {i: self._cached(queries[i]) for i in first.values()}
        while left := [i for i, result in results.items() if self._unresolved(result)]:
            requests = [queries[i].request(results[i].attempts) for i in left]
            bar = progress(total=len(left), name=f"Asking {self.model.name}", unit="question")
            with bar, closing(self.model.replies(requests)) as batches:
                for at, outcome in chain.from_iterable(batches):
                    results[left[at]] = self._recorded(queries[left[at]], outcome, results[left[at]].attempts)
                    bar.update()
        failed = [result.failure.kind for result in results.values() if result.failure is not None]
        if len(failed) == len(results) and (len(failed) > 1 or not _OF_THE_REQUEST.issuperset(failed)):
            problem = next(iter(results.values())).problem
            raise HedgeError(f"{self.model.who} answered none of {len(failed)} requests; one: {problem}")
        return [results[i] for i in places]

    def _unresolved(self, result: QueryResult[T]) -> bool:
        return result.value is None and result.failure is None and result.attempts < self.asks

    def _cached(self, query: Query[T]) -> QueryResult[T]:
        """As far as kept replies go."""
        result = QueryResult[T]()
        while self.log is not None and self._unresolved(result):
            key = query.key(self.model, result.attempts)
            cached = None if key is None else self.log.get(key)
            if cached is None:
                break
            result = self._read(query, cached, result.attempts, cached=True)
        return result

    def _recorded(self, query: Query[T], outcome: ReplyOrFailure, attempt: int) -> QueryResult[T]:
        """A reply of now, read, counted and kept."""
        if isinstance(outcome, RequestFailed):
            self.account.add(self.stage, Counts(failed=1))
            refused = "the server refused: " if outcome.kind == "refused" else ""
            return QueryResult(problem=f"{refused}{outcome}", failure=outcome, attempts=attempt)
        result = self._read(query, outcome, attempt, cached=False)
        if self.log is not None and result.key is not None:
            reply = replace(outcome, unread=result.value is None)
            self.log.add(result.key, reply, stage=self.stage, model=self.model.name, prompt=query.prompt.id)
        return result

    def _read(self, query: Query[T], reply: Reply, attempt: int, *, cached: bool) -> QueryResult[T]:
        value, problem = None, ""
        try:
            value = query.read(reply)
        except Unreadable as error:
            problem = reply.problem or str(error)
        self.account.count(self.stage, reply, cached=cached, unreadable=value is None)
        key = None if self.log is None else query.key(self.model, attempt)
        return QueryResult(value, reply, problem, None, key, attempt + 1)
