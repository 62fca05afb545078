"""The client for every server with OpenAI's chat API: adapters, judges and whatever else asks a model rest on it."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import openai
from loguru import logger
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    wait_exponential,
    wait_random,
)

from hedge_tasks.errors import HedgeError, unknown
from hedge_tasks.io.outside import parse_json
from hedge_tasks.numbers import WHOLE
from hedge_tasks.serving.border import NOBODY_THERE, BorderCrossed, RedirectedAway, bounded
from hedge_tasks.serving.completion import Completion, read_choices, read_completion
from hedge_tasks.serving.dialect import Dialect, spell
from hedge_tasks.serving.failures import Kind, RequestFailed, ServerRefuses, reason_in, retry_after_s
from hedge_tasks.serving.secrets import NO_KEY, Redactor

Found = TypeVar("Found")

OPENAI = "https://api.openai.com/v1"

_AWAY = (502, 503, 504)
"""What gateways say for a server that is not there, and servers that load a model."""

_PROGRESS_S = 30.0
"""Seconds between two words about a server that is waited for."""

_SHORTEST_PAUSE_S, _LONGEST_WAIT_S = 0.05, 10.0
"""Between two looks for a server that is not there yet."""

_BUSY = (408, 409, 425, 429)
_LONGEST_PAUSE_S = 60.0
_LISTED_MODELS = 20


class ChatClient:
    """Asks one model on one server. Threads may share it.

    A setting that the server refuses is found out by asking, said once, and spelled differently or left out from then
    on (see `Dialect`). What may pass is asked again after growing pauses. The key stands in no error and no log line,
    even where the server quotes it.

    Args:
        model: Name under which the server knows the model.
        url: Such as `http://localhost:8000/v1`; of Azure the endpoint.
        key: As `check_key` returns it.
        key_variable: The environment variable that an error about the key names.
        api_version: Of Azure's API; None for every other server.
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
        key_variable: str = "OPENAI_API_KEY",
        api_version: str | None = None,
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
        self._key_variable = key_variable
        self._retried: set[Kind] = {"unreachable", "busy", "garbled", *(("empty",) if retry_empty else ())}
        self._lists_models = api_version is None  # Azure lists models, and is asked for deployments
        self._client = _connect(url, key, api_version, timeout)
        self._said: set[str] = set()
        self._lock = threading.Lock()
        self._n_replies = 0  # of any status but those that say that nobody is there
        self._away_since: float | None = None
        self._waits: set[tuple[float, int]] = set()
        self._dialect = Dialect(self.name, self.say_once)

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        settings: Mapping[str, Any],
        *,
        optional: Collection[str] = (),
        stop: threading.Event | None = None,
    ) -> Completion | RequestFailed:
        """Ask until there is an answer, or the retries are used up.

        Args:
            messages: As `to_openai` makes them.
            settings: All other fields of the request's body, such as `temperature`, `max_tokens`, `stop`, `seed`.
            optional: Settings that are left out where the server refuses them; a refusal of others is one of the
                request.
            stop: Ends the pauses once it is set.

        Returns:
            The answer, or why there is none.

        Raises:
            ServerRefuses: Every other request would fail the same way.
        """

        def read(body: Any) -> Completion:
            return read_completion(body, settings.get("stop") or ())

        return self._until_read(self._sender(messages), read, settings, optional, stop)

    def ask_several(
        self,
        messages: Sequence[Mapping[str, Any]],
        settings: Mapping[str, Any],
        n: int,
        *,
        optional: Collection[str] = (),
        stop: threading.Event | None = None,
    ) -> list[Completion | RequestFailed] | RequestFailed:
        """Ask for several answers in one request; see `ask`.

        Args:
            n: Number of answers. A server that does not know of that sends one.

        Returns:
            The answers in the order of their seeds, each perhaps a reason why it is none; or why there is none at all.
        """

        def read(body: Any) -> list[Completion | RequestFailed]:
            found = read_choices(body, settings.get("stop") or ())
            return [
                RequestFailed(self.redact.shown(one), one.kind) if isinstance(one, RequestFailed) else one
                for one in found[:n]
            ]

        return self._until_read(self._sender(messages), read, {**settings, "n": n}, (*optional, "n"), stop)

    def _sender(self, messages: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], Any]:
        def send(body: Mapping[str, Any]) -> Any:
            return self._client.chat.completions.with_raw_response.create(
                model=self.model, messages=list(messages), extra_body=body
            )

        return send

    def _until_read(
        self,
        send: Callable[[Mapping[str, Any]], Any],
        read: Callable[[Any], Found],
        settings: Mapping[str, Any],
        optional: Collection[str],
        stop: threading.Event | None,
    ) -> Found | RequestFailed:
        """Ask until there is something to read, or the retries are used up.

        Args:
            send: Makes a request with further fields of its body; returns the library's raw response.
            read: What there is in the parsed body of an answer. Raises RequestFailed where there is nothing.
        """
        stop = stop or threading.Event()
        has_tried_enough = self._has_tried_enough()
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, RequestFailed) and error.kind in self._retried),
            stop=lambda state: stop.is_set() or has_tried_enough(state),
            wait=self.pause_s,
            sleep=sleep_using_event(stop),
            before_sleep=self._announce,
            reraise=True,
        )
        try:
            return retrying(self._ask_once, send, read, settings, optional)
        except RequestFailed as failure:
            return failure

    def wait(self) -> None:
        """Wait until the server is there, at most `wait_s`; 0 does not even look.

        Raises:
            HedgeError: It is not there by then.
        """
        for n in count():
            if self.wait_s <= 0:
                return
            try:
                self._client.models.list()
            except openai.APIStatusError as error:
                if error.status_code not in _AWAY:
                    return
            except openai.APIConnectionError as error:
                if not _finds_nobody(error):
                    return
            except Exception:  # listing is a courtesy: whatever it says, it is there
                return
            else:
                return
            self._is_away()
            if self._waited_s() >= self.wait_s:
                raise ServerRefuses(f"{self.name}: nobody answered for {self.wait_s:g} s (wait_for_server)")
            time.sleep(min(_SHORTEST_PAUSE_S * 2**n, _LONGEST_WAIT_S))

    def _has_tried_enough(self) -> Callable[[RetryCallState], bool]:
        """Whether a request is given up: its retries are used up, and it is not the server that is away.

        A server that has replied to anybody since the request found nobody is not away.
        """
        n_replies: int | None = None
        n_failures = 0  # attempts at a server that is away use up no retries

        def stop(state: RetryCallState) -> bool:
            nonlocal n_replies, n_failures
            if getattr(_error_of(state), "away", False):
                n_replies = self._n_replies if n_replies is None else n_replies
                if self._n_replies == n_replies:
                    self._is_away()
                    return self._waited_s() >= self.wait_s and state.attempt_number > self.max_retries
            else:
                n_replies = None
            n_failures += 1
            return n_failures > self.max_retries

        return stop

    def _is_there(self) -> None:
        with self._lock:
            self._n_replies += 1
            since, self._away_since = self._away_since, None
        if since is not None and time.monotonic() - since > _PROGRESS_S:
            logger.info("{} is back", self.name)

    def _is_away(self) -> None:
        """Note that nobody was there, and say every now and then for how long."""
        with self._lock:
            since = self._away_since = time.monotonic() if self._away_since is None else self._away_since
            waited = time.monotonic() - since
            part = int(waited // _PROGRESS_S)
            news = (since, part) not in self._waits
            self._waits.add((since, part))
        if news and self.wait_s > 0:
            logger.warning("{} is away: waiting, {} of {:g} s (wait_for_server)", self.name, WHOLE(waited), self.wait_s)

    def _waited_s(self) -> float:
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def refused(self) -> Mapping[str, str]:
        """Settings that the server has refused in every form that they have, each with what it said."""
        return {name: reason for name, reason in self._dialect.reasons.items() if not self._dialect.takes(name)}

    def served(self) -> list[Mapping[str, Any]]:
        """What the server lists of its models; nothing where it does not."""
        if not self._lists_models:
            return []
        try:
            return [model.model_dump() for model in self._client.models.list().data]
        except Exception:  # listing is a courtesy that servers may fail to do in any way
            return []

    def takes(self, setting: str) -> bool:
        """Whether the server has not refused a setting so far."""
        return self._dialect.takes(setting)

    def say_once(self, topic: str, message: str, level: str = "WARNING") -> None:
        """Log a message, unless something was said on the same topic before."""
        with self._lock:
            if topic in self._said:
                return
            self._said.add(topic)
        logger.log(level, "{}", message)

    def pause_s(self, state: RetryCallState) -> float:
        """Seconds before a failed request is made again: what the server wants, or ever longer; and some jitter."""
        growing = wait_exponential(multiplier=self.backoff_s, max=_LONGEST_PAUSE_S)
        jitter = wait_random(0, self.backoff_s)(state)  # or all threads would come back at the same moment
        wanted = getattr(_error_of(state), "retry_after_s", None)
        return jitter + (growing(state) if wanted is None else wanted)

    def _announce(self, state: RetryCallState) -> None:
        self.say_once("retries", f"{self.name}: {_error_of(state)}; failed requests are made again after a pause")

    def _ask_once(
        self,
        send: Callable[[Mapping[str, Any]], Any],
        read: Callable[[Any], Found],
        settings: Mapping[str, Any],
        optional: Collection[str],
    ) -> Found:
        while True:
            levels = self._dialect.levels
            try:
                response = send(spell(settings, levels, optional))
                body = parse_json(response.http_response.content, "the answer")
            except openai.APIStatusError as error:
                if error.status_code not in _AWAY:
                    self._is_there()
                # Each turn of the loop changes one setting, so there are few.
                if self._dialect.learn(error.status_code, self._reason(error), settings, optional, levels):
                    continue
                # Without its cause: the server may have quoted the key, and tracebacks get printed.
                raise self._explain(error) from None
            except (openai.APIError, BorderCrossed, RedirectedAway) as error:
                raise self._unanswered(error) from None
            except ValueError as error:
                raise RequestFailed(self.redact.shown(error), "garbled") from None
            self._is_there()
            self._dialect.has_answered()
            try:
                return read(body)
            except RequestFailed as failure:
                raise RequestFailed(self.redact.shown(failure), failure.kind) from None

    # --- what went wrong ----------------------------------------------------------------------------------------------

    def _reason(self, error: openai.APIError) -> str:
        """What the server said about an error, without secrets and not at length."""
        reason = self.redact.shown(reason_in(error.body) or error.message)
        named = self.redact.shown(error.param) if isinstance(error.param, str) else ""
        return reason if named in reason else f"{named}: {reason}"

    def _unanswered(self, error: Exception) -> RequestFailed | HedgeError:
        """Of an error without a status; the library wraps those of the border, or not, by where they come up."""
        border = error if isinstance(error, (BorderCrossed, RedirectedAway)) else error.__cause__
        if isinstance(border, RedirectedAway):
            return ServerRefuses(f"{self.name}: {self.redact.shown(border)}")
        if isinstance(border, BorderCrossed):
            return RequestFailed(self.redact.shown(border), border.kind)
        if isinstance(error, openai.APITimeoutError):
            return RequestFailed(f"no answer within {self.timeout:g} s", "unreachable", away=_finds_nobody(error))
        if isinstance(error, openai.APIConnectionError):
            reason = self.redact.shown(error.__cause__ or error)
            return RequestFailed(f"no connection ({reason})", "unreachable", away=_finds_nobody(error))
        return RequestFailed(self._reason(error) if isinstance(error, openai.APIError) else str(error), "garbled")

    def _explain(self, error: openai.APIStatusError) -> RequestFailed | HedgeError:
        """The failure of one request, or what is wrong with all of them."""
        reason, status = self._reason(error), error.status_code
        if error.code == "insufficient_quota":
            return ServerRefuses(f"{self.name}: the account has no credit left ({reason})")
        if status in _BUSY or status >= 500:
            wanted = retry_after_s(error.response.headers)
            return RequestFailed(f"status {status}: {reason}", "busy", retry_after_s=wanted, away=status in _AWAY)
        if status in (401, 403):
            return ServerRefuses(
                f"{self.name} refuses the API key ({status}: {reason}). Set {self._key_variable} to one that may use "
                f"{self.model!r}"
            )
        if status == 404:
            return self._not_found(reason)
        return RequestFailed(f"{status}: {reason}", "refused")

    def _not_found(self, reason: str) -> HedgeError:
        served = [self.redact.shown(model.get("id")) for model in self.served()]
        if served and self.model not in served:
            nearest = difflib.get_close_matches(self.model, served, n=_LISTED_MODELS, cutoff=0.0)
            return unknown(f"model of {self.name}", self.model, nearest)
        return ServerRefuses(
            f"{self.name} knows no model {self.model!r}, or its address is no base URL, which usually ends in /v1 "
            f"(404: {reason})"
        )


def _connect(url: str, key: str, api_version: str | None, timeout: float) -> openai.OpenAI:
    # The library's own retries know neither broken JSON nor empty answers, and their pauses cannot be set.
    settings: dict[str, Any] = {"api_key": key, "timeout": timeout, "max_retries": 0, "http_client": bounded(timeout)}
    if api_version is None:
        return openai.OpenAI(base_url=url, **settings)
    return openai.AzureOpenAI(azure_endpoint=url, api_version=api_version, **settings)


def _finds_nobody(error: openai.APIConnectionError) -> bool:
    """Whether there was no connection at all."""
    return isinstance(error.__cause__, NOBODY_THERE)


def _error_of(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()
