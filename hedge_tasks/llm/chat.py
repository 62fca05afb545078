"""The client for every server with OpenAI's chat API: adapters, judges and whatever else asks a model rest on it."""

from __future__ import annotations

import asyncio
import difflib
import json
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

from loguru import logger

from hedge_tasks.errors import HedgeError, unknown
from hedge_tasks.io.outside import parse_json
from hedge_tasks.llm.border import HttpClient, HttpReply, RedirectedAway
from hedge_tasks.llm.completion import Completion, read_choices, shows_thought
from hedge_tasks.llm.dialect import Dialect, spell
from hedge_tasks.llm.event_loop import run
from hedge_tasks.llm.failures import (
    LONGEST_RETRY_AFTER_S,
    Kind,
    RequestFailed,
    ServerRefuses,
    reason_in,
    retry_after_s,
)
from hedge_tasks.llm.secrets import NO_KEY, Redactor

OPENAI = "https://api.openai.com/v1"

Messages = Sequence[Mapping[str, Any]] | bytes
"""As `to_openai` makes them, or the same as JSON (`encoded`), for several requests."""

_AWAY = (502, 503, 504)
"""Replies of gateways for a server that is not there, and of servers that load a model."""

_SHORTEST_PAUSE_S, _LONGEST_WAIT_S = 0.05, 10.0
"""Between two looks for a server that is not there yet."""

_TOO_MANY = 429
_BUSY = (408, 409, 425, _TOO_MANY)
_LONGEST_PAUSE_S, _MOST_DOUBLINGS = 60.0, 30
_MOST_THROTTLED = 10
"""Times as many attempts as retries, for which a server may say that it is asked too fast: an hour, by default."""
_LOOK_S = 0.1
"""Between two looks, within a pause, at whether the caller has stopped."""

_LISTED_MODELS = 20


class _Refusal:
    """A reply with a status other than 2xx.

    Attributes:
        reason: The server's words, without secrets and not at length, behind the field that OpenAI says it is about.
        code: As OpenAI names it, None where it is not told.
    """

    def __init__(self, reply: HttpReply, redact: Redactor) -> None:
        self.status, self.retry_after_s = reply.status, retry_after_s(reply.headers)
        try:
            body = parse_json(reply.content, "the answer")
        except ValueError:
            body = reply.content.decode("utf-8", "replace")
        body = body.get("error", body) if isinstance(body, Mapping) else body
        self.code, param = (body.get(name) if isinstance(body, Mapping) else None for name in ("code", "param"))
        named, reason = redact.shown(param or ""), redact.shown(reason_in(body) or f"Error code: {reply.status}")
        self.reason = reason if named in reason else f"{named}: {reason}"


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
        self._retried: set[Kind] = {"unreachable", "late", "busy", "garbled", *(("empty",) if retry_empty else ())}
        self._http = HttpClient(url, {"Authorization": f"Bearer {key}"}, timeout)
        self._logged_topics: set[str] = set()
        self._lock = threading.Lock()
        self._n_replies = 0  # of any status but those that say that nobody is there
        self._dialect = Dialect(self.name, self.say_once)
        self._thinks: bool | None = None

    async def ask_async(
        self,
        messages: Messages,
        settings: Mapping[str, Any],
        *,
        optional: Collection[str] = (),
        stop: threading.Event | None = None,
    ) -> Completion | RequestFailed:
        """Ask for one answer; see `ask_several_async`."""
        outcome = await self.ask_several_async(messages, settings, 1, optional=optional, stop=stop)
        return outcome if isinstance(outcome, RequestFailed) else outcome[0]

    async def ask_several_async(
        self,
        messages: Messages,
        settings: Mapping[str, Any],
        n: int,
        *,
        optional: Collection[str] = (),
        stop: threading.Event | None = None,
    ) -> list[Completion | RequestFailed] | RequestFailed:
        """Ask in one request until there are answers, or the retries are used up.

        Args:
            messages: See there.
            settings: All other fields of the request's body, such as `temperature`, `max_tokens`, `stop`, `seed`.
            n: Number of answers. A server that does not know of that sends one.
            optional: Settings that are left out where the server refuses them; a refusal of others is one of the
                request.
            stop: Ends the pauses once it is set.

        Returns:
            The answers in the order of their seeds, each perhaps a reason why it is none; or why there is none at all.

        Raises:
            ServerRefuses: Every other request would fail the same way.
        """
        conversation = messages if isinstance(messages, bytes) else encoded(messages)
        if n > 1:
            settings, optional = {**settings, "n": n}, (*optional, "n")
        stop = stop or threading.Event()
        gives_up = self._patience()
        for attempt in count(1):
            try:
                return await self._ask_once(conversation, settings, optional)
            except RequestFailed as failure:
                if failure.kind not in self._retried or stop.is_set() or gives_up(failure, attempt):
                    return failure
                warning = f"{self.name}: {failure}; failed requests are made again after a pause"
                self.say_once("retries", warning)
                pause = self.pause_s(failure, attempt)
            await _pause(pause, stop)
        raise AssertionError("unreachable")

    def wait(self) -> None:
        """Wait until the server is there, at most `wait_s`; 0 does not even look.

        Raises:
            HedgeError: It is not there by then.
        """
        began = time.monotonic()
        for n in count():
            if self.wait_s <= 0 or self._is_reached():
                return
            self._say_away()
            if time.monotonic() - began >= self.wait_s:
                raise ServerRefuses(f"{self.name}: nobody answered for {self.wait_s:g} s (wait_for_server)")
            time.sleep(min(_SHORTEST_PAUSE_S * 2**n, _LONGEST_WAIT_S))

    def _is_reached(self) -> bool:
        """Whether the server answers, whatever it says."""
        try:
            return run(self._http.request("/models")).status not in _AWAY
        except RequestFailed as failure:
            return not failure.away
        except RedirectedAway:
            return True

    def _patience(self) -> Callable[[RequestFailed, int], bool]:
        """Whether a request is given up after its failure in an attempt: the one rule of retries.

        A server that is away is waited for, and one that asks for fewer requests is asked for long. A server that has
        replied to anybody since the request began is not away. An answer that is late twice will be so again: each
        time the server does its work for nothing.
        """
        began, n_replies, n_failures, n_late = time.monotonic(), self._n_replies, 0, 0

        def gives_up(failure: RequestFailed, attempt: int) -> bool:
            nonlocal n_failures, n_late
            if failure.throttled:
                return attempt > _MOST_THROTTLED * self.max_retries
            if failure.away and self._n_replies == n_replies and time.monotonic() - began < self.wait_s:
                self._say_away()
                return False
            n_failures, n_late = n_failures + 1, n_late + (failure.kind == "late")
            return n_late > 1 or n_failures > self.max_retries

        return gives_up

    def _say_away(self) -> None:
        self.say_once("away", f"{self.name} is away: waiting for at most {self.wait_s:g} s (wait_for_server)")

    @property
    def refused(self) -> Mapping[str, str]:
        """Settings that the server has refused in every form that they have, each with the server's reason."""
        return {name: reason for name, reason in self._dialect.reasons.items() if not self._dialect.takes(name)}

    def served(self) -> list[Mapping[str, Any]]:
        """Models that the server lists; nothing where it does not."""
        return run(self._served())

    async def _served(self) -> list[Mapping[str, Any]]:
        try:
            body = parse_json((await self._http.request("/models")).content, "the models")
        except (RequestFailed, RedirectedAway, ValueError):  # listing is a courtesy
            return []
        listed = body.get("data") if isinstance(body, Mapping) else None
        return [model for model in listed if isinstance(model, Mapping)] if isinstance(listed, list) else []

    def takes(self, setting: str) -> bool:
        """Whether the server has not refused a setting so far."""
        return self._dialect.takes(setting)

    def say_once(self, topic: str, message: str, level: str = "WARNING") -> None:
        """Log a message, unless one on the same topic was logged before."""
        with self._lock:
            if topic in self._logged_topics:
                return
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
        # A text that is to end the answer would end a thought: what is written is cut here, until it is known that the
        # model does not think.
        sent = settings if self._thinks is False else {k: v for k, v in settings.items() if k != "stop"}
        body = await self._body(conversation, sent, optional)
        try:
            if "stop" in settings and not self._thinks and (thinks := shows_thought(body)) is not None:
                self._thinks = thinks
            if not (self._thinks and "stop" in sent):
                return self._read(body, settings)
        except RequestFailed as failure:
            raise self._redacted(failure) from None
        return await self._ask_once(conversation, settings, optional)

    def _read(self, body: Any, settings: Mapping[str, Any]) -> list[Completion | RequestFailed]:
        n = settings.get("n", 1)
        choices = read_choices(body, settings.get("stop") or ())[:n]
        if n == 1 and isinstance(choices[0], RequestFailed):
            raise choices[0]  # it may pass
        return [self._redacted(choice) if isinstance(choice, RequestFailed) else choice for choice in choices]

    def _redacted(self, failure: RequestFailed) -> RequestFailed:
        return RequestFailed(self.redact.shown(failure), failure.kind, away=failure.away)

    async def _body(self, conversation: bytes, settings: Mapping[str, Any], optional: Collection[str]) -> Any:
        """The parsed body of an answer."""
        while True:
            levels = self._dialect.levels
            fields = encoded({"model": self.model, **spell(settings, levels, optional)})
            try:
                whole = b'%s,"messages":%s}' % (fields[:-1], conversation)
                reply = await self._http.request("/chat/completions", whole)
                if 200 <= reply.status < 300:
                    body = parse_json(reply.content, "the answer")
                    break
            except RequestFailed as failure:
                raise self._redacted(failure) from None
            except RedirectedAway as error:
                raise ServerRefuses(f"{self.name}: {self.redact.shown(error)}") from None
            except ValueError as error:
                raise RequestFailed(self.redact.shown(error), "garbled") from None
            if reply.status not in _AWAY:
                self._n_replies += 1
            refusal = _Refusal(reply, self.redact)
            # Each turn of the loop changes one setting, so there are few.
            if not self._dialect.learn(reply.status, refusal.reason, settings, optional, levels):
                raise await self._explain(refusal)
        self._n_replies += 1
        self._dialect.has_answered()
        return body

    # --- what went wrong ----------------------------------------------------------------------------------------------

    async def _explain(self, refusal: _Refusal) -> RequestFailed | HedgeError:
        """The failure of one request, or what is wrong with all of them."""
        reason, status = refusal.reason, refusal.status
        if refusal.code == "insufficient_quota":
            return ServerRefuses(f"{self.name}: the account has no credit left ({reason})")
        if status in _BUSY or status >= 500:
            if (pause_s := refusal.retry_after_s or 0.0) > LONGEST_RETRY_AFTER_S:
                return ServerRefuses(
                    f"{self.name} asks for nothing more within {pause_s:g} s ({pause_s / 3600:g} h, Retry-After; "
                    f"{status}: {reason}): run the same command again after that"
                )
            how: dict[str, Any] = {"away": status in _AWAY, "throttled": status == _TOO_MANY}
            return RequestFailed(f"status {status}: {reason}", "busy", retry_after_s=refusal.retry_after_s, **how)
        if status in (401, 403):
            return ServerRefuses(
                f"{self.name} refuses the API key ({status}: {reason}). Set OPENAI_API_KEY to one that may use "
                f"{self.model!r}"
            )
        if status == 404:
            return await self._not_found(reason)
        return RequestFailed(f"{status}: {reason}", "refused")

    async def _not_found(self, reason: str) -> HedgeError:
        served = [self.redact.shown(model.get("id")) for model in await self._served()]
        if served and self.model not in served:
            nearest = difflib.get_close_matches(self.model, served, n=_LISTED_MODELS, cutoff=0.0)
            return unknown(f"model of {self.name}", self.model, nearest)
        return ServerRefuses(
            f"{self.name} knows no model {self.model!r}, or its address is no base URL, which usually ends in /v1 "
            f"(404: {reason})"
        )


def encoded(value: object) -> bytes:
    """Return a value as JSON, without blanks. Everything but ASCII is escaped: half a character would be no UTF-8."""
    return json.dumps(value, separators=(",", ":")).encode()


async def _pause(seconds: float, stop: threading.Event) -> None:
    end = time.monotonic() + seconds
    while not stop.is_set() and (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(left, _LOOK_S))
