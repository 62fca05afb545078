"""Whom a pipeline asks: a model behind a server with OpenAI's API, or one of our adapters in this process."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hedge_tasks.errors import ConfigError, DrawsFailed, unknown
from hedge_tasks.io import options
from hedge_tasks.making.ledger import Reply
from hedge_tasks.serving.accounts import server_and_key
from hedge_tasks.serving.chat import OPENAI, ChatClient
from hedge_tasks.serving.failures import RequestFailed
from hedge_tasks.serving.messages import to_openai

_OPTIONAL = ("response_format", "seed", "top_p", "temperature", "chat_template_kwargs")
"""What a reply can do without where a server refuses it: a schema that nobody enforces is checked all the same."""

_SAYS_NOTHING = ("empty", "cut")


class Writer(Protocol):
    """A model that is asked."""

    @property
    def name(self) -> str:
        """What people call it; no address stands in it."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All of it that shapes a reply, and nothing else (no address, no key)."""

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        temperature: float,
        top_p: float | None,
        max_tokens: int,
        seed: int,
        schema: Mapping[str, Any] | None,
        stop: threading.Event,
    ) -> Reply | RequestFailed:
        """One reply, or why there is none. Threads may call it.

        Args:
            messages: In lmms-eval's form.
            schema: JSON schema of the reply, for servers that enforce one.
            stop: Ends the pauses between retries once it is set.

        Raises:
            HedgeError: Every other question would fail the same way.
        """


class ServedWriter:
    """A model behind a server with OpenAI's chat API.

    Args:
        model: Name under which the server knows it.
        url: Such as `http://localhost:8000/v1`; None takes OPENAI_API_URL, or OpenAI's.
        account: Whether a server at `url` is told OPENAI_API_KEY.
        thinking: Let a model that can do so reason before it replies.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed is made again.
    """

    def __init__(
        self,
        model: str,
        url: str | None = None,
        *,
        account: bool = False,
        thinking: bool = False,
        timeout: float = 300.0,
        max_retries: int = 6,
    ) -> None:
        self.name = options.text("model", model)
        self._thinking = options.flag("thinking", thinking)
        url = None if url is None else options.address("url", url)
        url, key = server_and_key(url, account=options.flag("account", account), who=f"model {self.name!r}")
        self._hosted = url == OPENAI
        self._client = ChatClient(
            self.name,
            url,
            key,
            timeout=options.number("timeout", timeout, zero=False),
            max_retries=options.count("max_retries", max_retries),
            backoff_s=0.5,
            retry_empty=False,
        )

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"model": self.name, **({"thinking": True} if self._thinking else {})}

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        temperature: float,
        top_p: float | None,
        max_tokens: int,
        seed: int,
        schema: Mapping[str, Any] | None,
        stop: threading.Event,
    ) -> Reply | RequestFailed:
        settings: dict[str, Any] = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed}
        if top_p is not None:
            settings["top_p"] = top_p
        if schema is not None:
            form = {"name": "reply", "schema": dict(schema), "strict": True}
            settings["response_format"] = {"type": "json_schema", "json_schema": form}
        if not self._hosted and not self._thinking:
            settings["chat_template_kwargs"] = {"enable_thinking": False}
        found = self._client.ask(to_openai(messages), settings, optional=_OPTIONAL, stop=stop)
        if isinstance(found, RequestFailed):
            return Reply("", found.kind) if found.kind in _SAYS_NOTHING else found
        used = found.usage
        tokens = (None, None) if used is None else (used.prompt_tokens, used.completion_tokens)
        return Reply(self._client.redact(found.text), found.finish, found.model, *tokens)


class AdapterWriter:
    """One of our adapters for lmms-eval, in this process; it answers one question at a time.

    Args:
        adapter: Its name, such as `hedge_hf`.
        arguments: As for lmms-eval's `--model_args`.
    """

    def __init__(self, adapter: str, **arguments: Any) -> None:
        from hedge_tasks.lmms.plugin import adapter_class

        known = adapter_class(adapter)
        if not hasattr(known, "answer_conversations"):
            raise ConfigError(f"adapter {adapter!r} answers no conversations that belong to no task")
        self.name = str(arguments.get("pretrained") or arguments.get("model") or adapter)
        self._arguments = {"adapter": adapter, **arguments}
        self._model = known(**arguments)
        self._lock = threading.Lock()
        self._keeps = bool(getattr(self._model, "keeps_schemas", False))

    @property
    def identity(self) -> Mapping[str, Any]:
        # A reply that was kept to its schema is another one.
        return {**self._arguments, **({"schema": "kept"} if self._keeps else {})}

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        temperature: float,
        top_p: float | None,
        max_tokens: int,
        seed: int,
        schema: Mapping[str, Any] | None,
        stop: threading.Event,
    ) -> Reply | RequestFailed:
        # No top_p: the adapters sample from the model itself.
        form = {"schema": schema} if self._keeps and schema is not None else {}
        turns = [_in_parts(message) for message in messages]
        try:
            with self._lock:
                [answer] = self._model.answer_conversations(
                    [turns], temperature=temperature, max_new_tokens=max_tokens, seeds=[seed], **form
                )
        except DrawsFailed as failure:
            return RequestFailed(str(failure), "refused")
        thought = 0 if answer.thought is None else answer.thought.n_tokens
        written = None if answer.n_tokens is None else answer.n_tokens + thought
        return Reply(answer.text.strip(), answer.finish, self.name, None, written)


def writer_from(spec: str) -> Writer:
    """A model from `model=NAME,url=...` or `adapter=hedge_hf,pretrained=...`; a plain name is a served model's.

    Raises:
        ConfigError: A part is no `key=value`, an option is unknown or makes no sense.
    """
    given: dict[str, Any] = options.pairs("model", spec if "=" in spec or "," in spec else f"model={spec}")
    if "adapter" in given:
        return AdapterWriter(given.pop("adapter"), **given)
    known = ("model", "url", "account", "thinking", "timeout", "max_retries")
    for key in given:
        if key not in known:
            raise unknown("option of a model", key, (*known, "adapter"))
    if "model" not in given:
        raise ConfigError("model: 'model' is missing, as in model=NAME,url=http://localhost:8000/v1")
    return ServedWriter(**given)


def _in_parts(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    return {**message, "content": [{"type": "text", "text": content}] if isinstance(content, str) else content}
