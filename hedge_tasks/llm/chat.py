"""The client for every server with OpenAI's chat API: adapters, judges and whatever else asks a model rest on it."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urljoin

from loguru import logger

from hedge_tasks.errors import HedgeError, unknown
from hedge_tasks.io.outside import parse_json
from hedge_tasks.llm.border import HttpClient, HttpReply
from hedge_tasks.llm.completion import Completion, read_choices
from hedge_tasks.llm.dialect import Dialect, spell
from hedge_tasks.llm.event_loop import run
from hedge_tasks.llm.failures import (
    LONGEST_RETRY_AFTER_S,
    PASSING,
    Kind,
    RequestFailed,
    ServerRefuses,
    kind_of,
    reason_in,
    retry_after_s,
)
from hedge_tasks.llm.secrets import NO_KEY, Redactor

OPENAI = "https://api.openai.com/v1"

T = TypeVar("T")

Messages = Sequence[Mapping[str, Any]] | bytes
"""As `to_openai` makes them, or the same as JSON (`encoded`), for several requests."""

_LONGEST_PAUSE_S, _MOST_DOUBLINGS = 60.0, 30
_MOST_THROTTLED = 10
"""Times as many attempts as retries, for which a server may say that it is asked too fast: an hour, by default."""
_LOOK_S = 0.1
"""Between two looks, within a pause, at whether the caller has stopped."""


class ChatClient:
    """Asks one model on one server, on the event loop of this process; its coroutines run there (`event_loop.run`).
    Threads may share it.

    A setting that the server refuses is found out by asking, said once, and spelled differently or left out from then
    on (see `Dialect`). What may pass is asked again after growing pauses. The key stands in no error and no log line,
    even where the server quotes it.

    Args:
        model: Name under which the server knows the model.
        url: Such as `http://localhost:8000/v1`.
        key: As `check_key` returns it.
        name: What errors call the server; its address by default.
        timeout: Seconds to wait for an answer.
        max_retries: How often a request that failed is made again.
        backoff_s: Pause before the first retry; every further one doubles, up to a minute.
        retry_empty: Whether a completion without an answer is a failure that may pass.
        wait_s: Seconds for which a server that is away (no connection, or a gateway that says so) is waited for,
            however many retries that takes: a large model takes long to load.

    Attributes:
        refused: Settings that the server has refused in every form that they have, each with the server's reason.
    """

    def __init__(
        self,
        model: str,
        url: str = OPENAI,
        key: str = NO_KEY,
        *,
        name: str | None = None,
        timeout: float = 300.0,
        max_retries: int = 6,
        backoff_s: float = 1.0,
        retry_empty: bool = True,
        wait_s: float = 0.0,
    ) -> None:
        self.model, self.url, self.name = model, url, name or url
        self.timeout, self.max_retries, self.backoff_s, self.wait_s = timeout, max_retries, backoff_s, wait_s
        self.redact = Redactor(key)
        self._passing = PASSING | ({"empty"} if retry_empty else set())
        self._http = HttpClient(url, {"Authorization": f"Bearer {key}"}, timeout)
        self._logged_topics: set[str] = set()
        self._n_replies = 0  # of any status but those that say that nobody is there
        self._dialect = Dialect(self.name, self.say_once)
        self.refused = self._dialect.refused

    async def ask_async(
        self,
        messages: Messages,
        settings: Mapping[str, Any],
        n: int = 1,
        *,
        optional: Collection[str] = (),
        stop: threading.Event | None = None,
    ) -> list[Completion | RequestFailed]:
        """Ask in one request until there are answers, or the retries are used up.

        Args:
            messages: See there.
            settings: All other fields of the request's body, such as `temperature`, `max_tokens`, `seed`; texts in
                `stop` cut the answer when it is there.
            n: Number of answers. A server that does not know of that sends one.
            optional: Settings that are left out where the server refuses them; a refusal of others is one of the
                request.
            stop: Ends the pauses once it is set.

        Returns:
            The answers in the order of their seeds, or why they are none; `n` times the same where the request failed.

        Raises:
            ServerRefuses: Every other request would fail the same way.
        """
        conversation = messages if isinstance(messages, bytes) else encoded(messages)
        if n > 1:
            settings, optional = {**settings, "n": n}, (*optional, "n")
        stop = stop or threading.Event()
        try:
            return await self._persistently(
                lambda: self._ask_once(conversation, settings, optional), stop, self.max_retries
            )
        except RequestFailed as failure:
            return [failure] * n

    async def _persistently(self, once: Callable[[], Awaitable[T]], stop: threading.Event, retries: int) -> T:
        """Make a request, and again after a pause while its failure may pass: the one rule of retries.

        A server that is away is waited for, and one that asks for fewer requests is asked for long. A server that has
        replied to anybody since the request began is not away. An answer that is late twice will be so again: each
        time the server does its work for nothing.

        Raises:
            RequestFailed: The last failure, without secrets.
        """
        began, n_replies, times = time.monotonic(), self._n_replies, Counter[Kind]()
        for attempt in count(1):
            try:
                return await once()
            except RequestFailed as error:
                failure = self._redacted(error)
            is_away = failure.kind == "away" and self._n_replies == n_replies
            waits = is_away and time.monotonic() - began < self.wait_s
            times[failure.kind] += not waits
            n_throttled = times["throttled"]
            is_over = times["late"] > 1 or times.total() - n_throttled > retries
            is_over = is_over or n_throttled > _MOST_THROTTLED * retries
            if is_over or stop.is_set() or failure.kind not in self._passing:
                raise failure
            if waits:
                self.say_once("away", f"{self.name} is away: waiting for at most {self.wait_s:g} s (wait_for_server)")
            else:
                self.say_once("retries", f"{self.name}: {failure}; failed requests are made again after a pause")
            await _pause(self.pause_s(failure, attempt), stop)
        raise AssertionError("unreachable")

    def _redacted(self, failure: RequestFailed) -> RequestFailed:
        failure.args = (self.redact.shown(failure),)
        return failure

    def served(self) -> list[Mapping[str, Any]]:
        """Models that the server lists, once it is there; nothing where it does not.

        Raises:
            HedgeError: It has been away for `wait_s` by then.
        """
        try:
            return run(self._persistently(self._served, threading.Event(), 0))
        except RequestFailed as failure:
            if self.wait_s and failure.kind == "away":
                raise ServerRefuses(f"{self.name}: nobody answered for {self.wait_s:g} s (wait_for_server)") from None
            return []

    async def _served(self) -> list[Mapping[str, Any]]:
        reply = await self._http.request("/models")
        if kind_of(reply.status) == "away":
            raise RequestFailed(f"status {reply.status}", "away")
        try:
            body = parse_json(reply.content, "the models")
        except ValueError:  # listing is a courtesy
            body = None
        listed = body.get("data") if isinstance(body, Mapping) else None
        return [model for model in listed if isinstance(model, Mapping)] if isinstance(listed, list) else []

    def say_once(self, topic: str, message: str, level: str = "WARNING") -> None:
        """Log a message, unless one on the same topic was logged before."""
        if topic not in self._logged_topics:
            self._logged_topics.add(topic)
            logger.log(level, "{}", message)

    def pause_s(self, failure: RequestFailed, attempt: int) -> float:
        """Seconds before a failed request is made again: what the server wants, or ever longer; and some jitter.

        Args:
            attempt: The one that failed, from 1.
        """
        growing = min(self.backoff_s * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS), _LONGEST_PAUSE_S)
        jitter = random.uniform(0, self.backoff_s)  # or all requests would come back at the same moment
        return jitter + (growing if failure.retry_after_s is None else failure.retry_after_s)

    async def _ask_once(
        self, conversation: bytes, settings: Mapping[str, Any], optional: Collection[str]
    ) -> list[Completion | RequestFailed]:
        # A text that ends the answer would end a thought as well, so that it is not sent: what is written is cut here.
        sent = {name: value for name, value in settings.items() if name != "stop"}
        body = await self._body(conversation, sent, optional)
        outcomes = read_choices(body, settings.get("stop") or ())[: settings.get("n", 1)]
        if isinstance(outcomes[0], RequestFailed) and "n" not in settings:  # with several, the others are answers
            raise outcomes[0]
        return [self._redacted(o) if isinstance(o, RequestFailed) else o for o in outcomes]

    async def _body(self, conversation: bytes, settings: Mapping[str, Any], optional: Collection[str]) -> Any:
        """The parsed body of an answer."""
        while True:
            levels = self._dialect.levels
            fields = encoded({"model": self.model, **spell(settings, levels, optional)})
            reply = await self._http.request("/chat/completions", b'%s,"messages":%s}' % (fields[:-1], conversation))
            self._n_replies += kind_of(reply.status) != "away"
            if 200 <= reply.status < 300:
                try:
                    body = parse_json(reply.content, "the answer")
                except ValueError as error:
                    raise RequestFailed(str(error), "garbled") from None
                self._dialect.answered = True
                return body
            code, reason = self._refusal(reply)
            # Each turn of the loop changes one setting, so there are few.
            if not self._dialect.learn(reply.status, reason, settings, optional, levels):
                raise await self._explained(reply, code, reason)

    def _refusal(self, reply: HttpReply) -> tuple[Any, str]:
        """The code of an error as OpenAI names it, and the server's words behind the field that they are about, without
        secrets and not at length.
        """
        try:
            body = parse_json(reply.content, "the answer")
        except ValueError:
            body = reply.content.decode("utf-8", "replace")
        body = body.get("error", body) if isinstance(body, Mapping) else body
        code, param = (body.get(name) if isinstance(body, Mapping) else None for name in ("code", "param"))
        named, reason = self.redact.shown(param or ""), self.redact.shown(reason_in(body) or "no reason given")
        return code, reason if named in reason else f"{named}: {reason}"

    async def _explained(self, reply: HttpReply, code: Any, reason: str) -> RequestFailed | HedgeError:
        """The failure of one request, or what is wrong with all of them."""
        status, kind, elsewhere = reply.status, kind_of(reply.status), reply.headers.get("location")
        served: list[str] = []
        pause_s = retry_after_s(reply.headers)
        if code == "insufficient_quota":
            what = f": the account has no credit left ({reason})"
        elif elsewhere and 300 <= status < 400:
            address = self.redact.shown(urljoin(self.url, elsewhere).partition("?")[0])
            what = (
                f": the server redirects to another address ({address}), which would be told the questions and the "
                "pictures; give that address itself if it is meant"
            )
        elif kind != "refused" and (pause_s or 0.0) > LONGEST_RETRY_AFTER_S:
            what = (
                f" asks for nothing more within {pause_s:g} s ({(pause_s or 0.0) / 3600:g} h, Retry-After; {status}: "
                f"{reason}): run the same command again after that"
            )
        elif status in (401, 403):
            what = f" refuses the API key ({status}: {reason}). Set OPENAI_API_KEY to one that may use {self.model!r}"
        elif status == 404:
            with suppress(RequestFailed):
                served = [self.redact.shown(model.get("id")) for model in await self._served()]
            if served and self.model not in served:
                return unknown(f"model of {self.name}", self.model, served)
            base = "its address is no base URL, which usually ends in /v1"
            what = f" knows no model {self.model!r}, or {base} (404: {reason})"
        else:
            return RequestFailed(f"{'' if kind == 'refused' else 'status '}{status}: {reason}", kind, pause_s)
        return ServerRefuses(f"{self.name}{what}")


def encoded(value: object) -> bytes:
    """Return a value as JSON, without blanks. Everything but ASCII is escaped: half a character would be no UTF-8."""
    return json.dumps(value, separators=(",", ":")).encode()


async def _pause(seconds: float, stop: threading.Event) -> None:
    end = time.monotonic() + seconds
    while not stop.is_set() and (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(left, _LOOK_S))
