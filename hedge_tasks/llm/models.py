"""Whom to ask: a model behind a server with OpenAI's API, or one of our adapters in this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, islice
from typing import Any, Protocol

from hedge_tasks.data.answers import Answer
from hedge_tasks.data.pictures import picture_of, to_rgb8
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.io import options
from hedge_tasks.llm.chat import ChatClient
from hedge_tasks.llm.concurrency import ask_each
from hedge_tasks.llm.event_loop import run
from hedge_tasks.llm.failures import RequestFailed
from hedge_tasks.llm.log import Reply
from hedge_tasks.llm.messages import to_openai
from hedge_tasks.llm.servers import server_and_key

_OPTIONAL = ("response_format", "chat_template_kwargs", "seed", "temperature", "top_p", "top_k", "min_p")
"""Settings a reply can do without where a server refuses them: a schema that nobody enforces is still checked."""

CONCURRENCY, TIMEOUT_S, MAX_RETRIES = 16, 300.0, 8

ReplyOrFailure = Reply | RequestFailed
"""A reply, or why there is none."""


@dataclass(frozen=True)
class Request:
    """One conversation and how it is to go on.

    Attributes:
        conversation: Makes the messages, in lmms-eval's form. Raises OSError or ValueError where a picture
            cannot be loaded.
        settings: `max_tokens` (of the reply of a model that does not think first), `temperature` (0 is greedy),
            `top_p`, `top_k`, `min_p`, `seed`; what is not there is left to the model.
        schema: JSON schema of the reply, for models that keep to one; empty for none.
    """

    conversation: Callable[[], Sequence[Mapping[str, Any]]]
    settings: Mapping[str, Any]
    schema: Mapping[str, Any] = field(default_factory=dict)

    def turns(self, form: Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """The conversation in another form, with its pictures. Raises RequestFailed where one cannot be read."""
        try:
            return form(self.conversation())
        except (OSError, ValueError) as error:
            raise RequestFailed(f"its images cannot be read ({error})", "unsent") from None


class Model(Protocol):
    """A model that is asked.

    Attributes:
        name: What people call it; no address stands in it.
        who: What errors call whoever asks it.
        identity: All of it that shapes a reply, ready for JSON, and nothing else (no address, no key).
    """

    name: str
    who: str

    @property
    def identity(self) -> Mapping[str, Any]: ...

    def reply(self, request: Request, stop: threading.Event) -> ReplyOrFailure:
        """One reply, or why there is none. Threads may call it.

        Args:
            stop: Ends the pauses between retries once it is set.

        Raises:
            HedgeError: Every other request would fail the same way.
        """

    def replies(self, requests: Sequence[Request]) -> Generator[list[tuple[int, ReplyOrFailure]], None, None]:
        """Outcomes as they come, each with the position of its request. Closing it stops the asking.

        Raises:
            HedgeError: Asking on makes no sense. What was yielded before is true.
        """

    def check(self) -> None:
        """Raise ConfigError where it is known that the model cannot be asked. Loads nothing and sends nothing."""

    def free(self) -> None:
        """Let go of what it has loaded; it is loaded again when it is asked again."""


class ServedModel:
    """A model behind a server with OpenAI's chat API.

    Args:
        model: Name under which the server knows it.
        url: Such as `http://localhost:8000/v1`; None takes that of OPENAI_API_URL, or OpenAI's.
        account: Whether a server at `url` is told OPENAI_API_KEY. By default only OpenAI's own is.
        thinking: Let a model that can do so reason before it replies.
        concurrency: Requests under way at any time.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed (connection, 429, 5xx) is made again, after growing pauses.
        who: What errors call whoever asks; by default the model.

    Raises:
        ConfigError: A value makes no sense.
    """

    def __init__(
        self,
        model: str,
        url: str | None = None,
        *,
        account: bool = False,
        thinking: bool = False,
        concurrency: int = CONCURRENCY,
        timeout: float = TIMEOUT_S,
        max_retries: int = MAX_RETRIES,
        who: str = "",
    ) -> None:
        self.name = options.text("model", model)
        self.thinking = options.flag("thinking", thinking)
        self.concurrency = options.count("concurrency", concurrency, at_least=1)
        self.who = who or self.name
        self._url = None if url is None else options.address("url", url)
        self._account = options.flag("account", account)
        timeout, retries = options.number("timeout", timeout, zero=False), options.count("max_retries", max_retries)
        self._limits: dict[str, Any] = {"timeout": timeout, "max_retries": retries}

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"model": self.name, "thinking": self.thinking}

    def check(self) -> None:
        _ = self._client

    def free(self) -> None:
        """Nothing is loaded."""

    def reply(self, request: Request, stop: threading.Event) -> ReplyOrFailure:
        _ = self._client  # a key that is not there is no failure of a request
        return run(self._reply(request, stop))

    async def _reply(self, request: Request, stop: threading.Event) -> ReplyOrFailure:
        try:
            messages = await asyncio.to_thread(request.turns, to_openai)
        except RequestFailed as failure:
            return failure
        began, settings = time.monotonic(), self._settings(request)
        [completion] = await self._client.ask_async(messages, settings, optional=_OPTIONAL, stop=stop)
        seconds = round(time.monotonic() - began, 3)
        if isinstance(completion, RequestFailed):
            said_nothing = completion.kind in ("empty", "cut")  # the model was there, and said nothing
            return Reply("", completion.kind, problem=str(completion), seconds=seconds) if said_nothing else completion
        text = self._client.redact(completion.text)
        prompt, written = (completion.usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
        return Reply(text, completion.answer.finish, completion.model, prompt, written, seconds)

    def replies(self, requests: Sequence[Request]) -> Generator[list[tuple[int, ReplyOrFailure]], None, None]:
        async def call(position: int, stop: threading.Event) -> ReplyOrFailure:
            return await self._reply(requests[position], stop)

        _ = self._client  # a key that is not there is no failure of a request
        at_once = min(self.concurrency, len(requests))
        yield from ask_each(call, len(requests), at_once, who=self.who, unreachable=_unreachable)

    @cached_property
    def _client(self) -> ChatClient:
        # Not before it is needed: kept replies need no key.
        url, key = server_and_key(self._url, account=self._account, who=self.who)
        # What says nothing is asked for again in other words.
        return ChatClient(self.name, url, key, name=f"{self.who} at {url}", retry_empty=False, **self._limits)

    def _settings(self, request: Request) -> dict[str, Any]:
        settings = dict(request.settings)
        if request.schema:
            form = {"name": "reply", "schema": dict(request.schema), "strict": True}
            settings["response_format"] = {"type": "json_schema", "json_schema": form}
        if not self.thinking:
            # Of vLLM and SGLang; Qwen3 would else think for a thousand tokens before it says yes or no.
            settings["chat_template_kwargs"] = {"enable_thinking": False}
        return settings


class LocalModel:
    """An adapter for lmms-eval in this process; it is loaded when there is something to ask.

    Args:
        name: What people call it.
        identity: As `Model.identity`; called when it is needed, for it may read the weights.
        load: The adapter.
        batch_size: Requests at a time.
        thinking: None leaves it to the adapter; false tells a model that can do so not to think (Qwen3's switch).
        keeps_schemas: Let the adapter keep replies to their schema where it can, which makes them others.
        who: What errors call whoever asks; by default the model.
    """

    def __init__(
        self,
        name: str,
        identity: Callable[[], Mapping[str, Any]],
        load: Callable[[], Any],
        *,
        batch_size: int = 1,
        thinking: bool | None = None,
        keeps_schemas: bool = False,
        who: str = "",
    ) -> None:
        self.name, self.who = name, who or name
        self._identity, self._load = identity, load
        self._batch_size, self._thinking, self._keeps = batch_size, thinking, keeps_schemas
        self._lock = threading.Lock()
        self._loaded: Any = None

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity()

    def reply(self, request: Request, stop: threading.Event) -> ReplyOrFailure:
        [[(_, outcome)]] = self.replies([request])
        return outcome

    def replies(self, requests: Sequence[Request]) -> Generator[list[tuple[int, ReplyOrFailure]], None, None]:
        for _, group in groupby(enumerate(requests), lambda numbered: _alike(numbered[1])):
            while batch := list(islice(group, self._batch_size)):
                with self._lock:
                    outcomes = list(self._batch(batch))
                yield outcomes

    def check(self) -> None:
        """Nothing is known of a model before it is loaded."""

    def free(self) -> None:
        if self._loaded is not None:
            self._loaded.clean()
            self._loaded = None

    def _batch(self, batch: Sequence[tuple[int, Request]]) -> Iterator[tuple[int, ReplyOrFailure]]:
        """Outcomes of requests that are to go on alike."""
        adapter = self._loaded = self._loaded or self._load()
        turns: dict[int, list[dict[str, Any]]] = {}
        for i, request in batch:
            try:
                turns[i] = request.turns(_with_pictures)
            except RequestFailed as failure:
                yield i, failure
        if not turns:
            return
        if self._thinking is False and "enable_thinking" in (getattr(adapter, "chat_template", None) or ""):
            for conversation in turns.values():
                conversation[-1]["content"].append({"type": "text", "text": "/no_think"})
        how, began = self._settings(adapter, [request for i, request in batch if i in turns]), time.monotonic()
        try:
            answers = adapter.answer_conversations([*turns.values()], **how)
        except DrawsFailed as error:
            yield from ((i, RequestFailed(str(error), "refused")) for i in turns)
            return
        seconds = round((time.monotonic() - began) / len(turns), 3)
        for i, answer in zip(turns, answers, strict=True):
            yield i, Reply(answer.text.strip(), answer.finish, self.name, None, _written(answer), seconds)

    def _settings(self, adapter: Any, alike: Sequence[Request]) -> dict[str, Any]:
        # No top_p: the adapters sample from the model itself.
        names = {"temperature": "temperature", "max_tokens": "max_new_tokens"}
        how = {names[key]: value for key, value in alike[0].settings.items() if key in names}
        if seeds := [request.settings["seed"] for request in alike if "seed" in request.settings]:
            how["seeds"] = seeds
        if self._keeps and alike[0].schema and adapter.keeps_schemas():
            how["schema"] = alike[0].schema
        return how


def _unreachable(outcome: ReplyOrFailure) -> RequestFailed | None:
    """Why nobody answered."""
    return outcome if isinstance(outcome, RequestFailed) and outcome.unreachable else None


def _alike(request: Request) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The settings and the schema, but for the seed itself: the same of all requests of a batch."""
    return {**request.settings, **({"seed": None} if "seed" in request.settings else {})}, request.schema


def _with_pictures(conversation: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The turns with a list of parts each, pictures opened."""
    return [{**turn, "content": _parts(turn["content"])} for turn in conversation]


def _parts(content: Any) -> list[dict[str, Any]]:
    """The content of a turn as parts, its pictures opened."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [
        {**part, "url": to_rgb8(picture_of(part["url"]))} if part["type"] == "image" else {**part} for part in content
    ]


def _written(answer: Answer) -> int | None:
    """Tokens that were written, the thought among them: what the answer cost."""
    thought = 0 if answer.thought is None else answer.thought.n_tokens
    return None if answer.n_tokens is None else answer.n_tokens + thought
