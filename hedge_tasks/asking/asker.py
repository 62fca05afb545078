"""A question until its reply can be read: what is kept first, then requests, each reply kept as it comes."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from hedge_tasks.asking.account import Account
from hedge_tasks.asking.log import Reply, ReplyLog, digest
from hedge_tasks.asking.models import Model, ReplyOrFailure, Request
from hedge_tasks.asking.reading import Unreadable
from hedge_tasks.asking.template import Template
from hedge_tasks.errors import HedgeError
from hedge_tasks.serving.failures import RequestFailed

T = TypeVar("T")

DEFAULT_TOKENS = 512


@dataclass(frozen=True)
class Query(Generic[T]):
    """What is asked, and how its reply is read.

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
        about: Further fields of the log's line, for people; given what was read, None where nothing could be.
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
    about: Callable[[T | None], Mapping[str, Any]] = lambda read: {}

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
                "sampling": dict(self.sampling),
                "seed": self._seed(attempt),
                "attempt": attempt,
            }
        )

    def request(self, attempt: int) -> Request:
        """The request of an attempt, from 0. Raises OSError or ValueError where a picture cannot be read."""
        limits = dict(self.sampling)
        tokens = self.max_tokens or int(self.prompt.decoding.get("max_tokens", DEFAULT_TOKENS))
        return Request(
            self.prompt.conversation(self.values, self.images(), again=attempt > 0),
            tokens * (2 if attempt else 1),
            limits.pop("temperature", 0.0),
            self.prompt.schema if self.schema is None else self.schema,
            limits,
            self._seed(attempt),
        )

    def _seed(self, attempt: int) -> int | None:
        """31 bits that the place of the question decides: every engine takes them."""
        if self.place is None:
            return None
        return int.from_bytes(hashlib.sha256(f"{self.place}\0{attempt}".encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True)
class QueryResult(Generic[T]):
    """What came of a question.

    Attributes:
        value: What was read; None where nothing could be.
        reply: The last reply; None where none came.
        problem: Why nothing was read.
        failure: Of a request that came to nothing, which says nothing about the question: the next run asks again.
        key: Under which the reply is kept; None where it is not.
    """

    value: T | None
    reply: Reply | None
    problem: str = ""
    failure: RequestFailed | None = None
    key: str | None = None


class Asker:
    """Asks one model, and keeps account.

    Args:
        model: Whom to ask.
        account: What is counted.
        log: Where replies are kept; None keeps none.
        asks: How often a question is asked in all, where the reply cannot be read or the request fails.
        fresh: Ask again what is kept and could not be read.
        stage: What the questions are for; they are counted by it.
    """

    def __init__(
        self,
        model: Model,
        account: Account,
        log: ReplyLog | None = None,
        *,
        asks: int = 2,
        fresh: bool = False,
        stage: str = "asked",
    ) -> None:
        self.model, self.account, self.log = model, account, log
        self.asks, self.fresh, self.stage = asks, fresh, stage

    def ask(self, question: Query[T], stop: threading.Event) -> QueryResult[T]:
        """One question, now. Threads may call it.

        Raises:
            HedgeError: Every other question would fail the same way.
        """
        found, attempt = self._cached(question)
        while found is None or (found.value is None and attempt < self.asks):
            outcome = self.model.reply(partial(question.request, attempt), stop)
            found = self._taken(question, attempt, outcome)
            if found.failure is not None:
                return found
            attempt += 1
        return found

    def ask_all(self, questions: Sequence[Query[T]]) -> list[QueryResult[T]]:
        """Many questions, as many at once as the model takes; equal ones once. A request that failed is made again.

        Raises:
            HedgeError: The model is gone, refuses everything, or answered nothing at all.
        """
        places: dict[str, list[int]] = {}
        for i, question in enumerate(questions):
            places.setdefault(question.key(self.model, 0) or f"place {i}", []).append(i)
        distinct = [questions[of[0]] for of in places.values()]
        found: dict[int, QueryResult[T]] = {}
        attempts: dict[int, int] = {}
        for i, question in enumerate(distinct):
            cached, attempts[i] = self._cached(question)
            if cached is not None:
                found[i] = cached
        for _ in range(self.asks):
            left = [i for i in attempts if attempts[i] < self.asks and (i not in found or found[i].value is None)]
            for i, answered in self._round(distinct, left, attempts):
                found[i] = answered
                attempts[i] += answered.failure is None
        failed = [one for one in found.values() if one.failure is not None]
        if failed and len(failed) == len(distinct):
            raise HedgeError(f"{self.model.who} answered none of {len(failed)} requests; one: {failed[0].problem}")
        of_place = {i: found[number] for number, of in enumerate(places.values()) for i in of}
        return [of_place[i] for i in range(len(questions))]

    def _round(
        self, questions: Sequence[Query[T]], left: Sequence[int], attempts: Mapping[int, int]
    ) -> Iterator[tuple[int, QueryResult[T]]]:
        if not left:
            return
        prepared = [partial(questions[i].request, attempts[i]) for i in left]
        with closing(self.model.replies(prepared)) as batches:
            for batch in batches:
                for at, outcome in batch:
                    i = left[at]
                    yield i, self._taken(questions[i], attempts[i], outcome)

    def _cached(self, question: Query[T]) -> tuple[QueryResult[T] | None, int]:
        """What is kept of a question, and the attempt to go on with."""
        found = None
        for attempt in range(self.asks if self.log is not None else 0):
            key = question.key(self.model, attempt)
            kept = self.log.get(key) if self.log is not None and key is not None else None
            if kept is None:
                return found, attempt
            read = self._read(question, kept.reply, key)
            if read.value is None and self.fresh:
                return None, attempt
            self._count(read, kept.reply, cached=True)
            found = read
            if read.value is not None:
                return read, attempt
        return found, self.asks if found is not None else 0

    def _taken(self, question: Query[T], attempt: int, outcome: ReplyOrFailure) -> QueryResult[T]:
        """A reply of now, read, counted and kept."""
        if isinstance(outcome, RequestFailed):
            self.account.count_failed(self.stage)
            refused = "the server refused: " if outcome.kind == "refused" else ""
            return QueryResult(None, None, f"{refused}{outcome}", outcome)
        key = question.key(self.model, attempt) if self.log is not None else None
        read = self._read(question, outcome, key)
        self._count(read, outcome, cached=False)
        if self.log is not None and key is not None:
            unread = {"unread": True} if read.value is None else {}
            told = {"stage": self.stage, "model": self.model.name, "prompt": question.prompt.id, **unread}
            told |= question.about(read.value)
            self.log.add([(key, outcome, told)])
        return read

    def _read(self, question: Query[T], reply: Reply, key: str | None) -> QueryResult[T]:
        try:
            return QueryResult(question.read(reply), reply, key=key)
        except Unreadable as error:
            return QueryResult(None, reply, reply.problem or str(error), key=key)

    def _count(self, read: QueryResult[T], reply: Reply, *, cached: bool) -> None:
        self.account.count(self.stage, reply, cached=cached)
        if read.value is None:
            self.account.count_unreadable(self.stage)
