"""Where a served model is, and which key it is told: the same for whoever asks.

The variables are those of lmms-eval's own judges: `API_TYPE` (openai, azure, local, bedrock), `OPENAI_API_URL` and
`OPENAI_API_KEY`, `LLM_JUDGE_URL`, `AZURE_ENDPOINT`, ..., also where a file `.env` sets them. Servers with OpenAI's API
(`openai`, `local`, `azure`) are asked by our own client: lmms-eval's providers have no structured output, take a fixed
pause between retries, and log what a server says, which may quote an account's key. Every other provider (`bedrock`,
and those that somebody registered) is asked as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from threading import Event
from typing import Any, Protocol
from urllib.parse import urlsplit

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io.options import address
from hedge_tasks.serving.accounts import server_and_key
from hedge_tasks.serving.chat import OPENAI, ChatClient
from hedge_tasks.serving.completion import Completion
from hedge_tasks.serving.failures import RequestFailed
from hedge_tasks.serving.messages import without_system
from hedge_tasks.serving.secrets import Redactor, check_key

# Concurrency is ours, so of a provider's two forms the one without an event loop will do.
_SAME = {"async_openai": "openai", "async_azure": "azure"}

_OPTIONAL = ("response_format", "chat_template_kwargs", "seed", "temperature", "top_p", "top_k", "min_p")
"""What a reply can do without where a server refuses it: a schema that nobody enforces is checked all the same."""

_NOT_HOSTED = ("chat_template_kwargs", "top_k", "min_p")
"""Fields beside OpenAI's own, which OpenAI and Azure do not know."""

_BACKOFF_S = 0.5
_AZURE_VERSION = "2024-02-15-preview"
"""Of the API; what lmms-eval takes where API_VERSION is not set."""


class Server(Protocol):
    """Whoever answers."""

    def ask(self, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], stop: Event) -> Any:
        """A completion; of a request that failed, why (`RequestFailed`).

        Args:
            messages: As `to_openai` makes them.
            settings: Further fields of the request's body.
            stop: Ends the pauses between retries once it is set.

        Raises:
            HedgeError: Every other request would fail the same way (a refused key, a model that is not there).
        """


def connect(
    model: str, *, provider: str | None, url: str | None, account: bool, who: str, timeout: float, max_retries: int
) -> Server:
    """The server that an option or the environment names.

    Args:
        model: Name under which the server knows the model.
        provider: Its kind; None takes that of the variable API_TYPE, or `openai`; with a `url` always `openai`.
        url: Of a server; None takes the environment's.
        account: Whether a server at `url` is told the key of the account at OpenAI.
        who: What errors call whoever asks.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed is made again.

    Raises:
        ConfigError: The provider is unknown, or has no address or key.
    """
    _read_env_file()
    name = (provider or ("openai" if url else os.environ.get("API_TYPE")) or "openai").lower()
    name = _SAME.get(name, name)
    if url is not None and name not in ("openai", "local"):
        raise ConfigError(f"url: the provider {name!r} takes its address from the environment")
    limits: dict[str, Any] = {"timeout": timeout, "max_retries": max_retries}
    if name == "azure":
        key, endpoint = os.environ.get("AZURE_API_KEY"), os.environ.get("AZURE_ENDPOINT")
        if not (key and endpoint):
            raise ConfigError("provider 'azure': set AZURE_API_KEY and AZURE_ENDPOINT")
        version = os.environ.get("API_VERSION") or _AZURE_VERSION
        key = check_key("AZURE_API_KEY", key)
        return _ChatServer(model, endpoint, key, who, **limits, api_version=version, key_variable="AZURE_API_KEY")
    if name in ("openai", "local"):
        if name == "local" and url is None:
            url = address("LLM_JUDGE_URL", os.environ.get("LLM_JUDGE_URL") or "http://localhost:8000/v1")
        # A server of the environment's own is no account's, whatever was asked for.
        url, key = server_and_key(url, account=account and name != "local", who=who)
        return _ChatServer(model, url, key, who, **limits)
    return _ForeignServer(name, model, **limits)


def _read_env_file() -> None:
    """As lmms-eval does for its judges, without importing it, which takes ten seconds."""
    from dotenv import load_dotenv

    load_dotenv(".env", override=False)


class _ChatServer:
    """A server with OpenAI's API; options as `ChatClient` takes them."""

    def __init__(self, model: str, url: str, key: str, who: str, **options: Any) -> None:
        self._client = ChatClient(
            model,
            url,
            key,
            name=f"{who} at {url}",
            backoff_s=_BACKOFF_S,
            retry_empty=False,  # it is asked again in other words
            **options,
        )
        self._hosted = "api_version" in options or urlsplit(url).hostname == urlsplit(OPENAI).hostname

    def ask(
        self, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], stop: Event
    ) -> Completion | RequestFailed:
        if self._hosted:
            settings = {key: value for key, value in settings.items() if key not in _NOT_HOSTED}
        found = self._client.ask(messages, settings, optional=_OPTIONAL, stop=stop)
        if isinstance(found, RequestFailed):
            return found
        text = self._client.redact(found.text)
        return Completion(text, Answer(text, finish=found.finish), model=found.model, usage=found.usage)


class _ForeignServer:
    """One of lmms-eval's providers that we have no client for."""

    def __init__(self, name: str, model: str, *, timeout: float, max_retries: int) -> None:
        from lmms_eval.llm_judge import ProviderFactory, ServerConfig, get_server

        if name not in ProviderFactory._provider_classes:
            raise unknown("provider", name, ProviderFactory._provider_classes)
        self._model, self._timeout, self._max_retries = model, timeout, max_retries
        self._provider = get_server(name, ServerConfig(model_name=model))
        self._redact = Redactor()  # not before: lmms-eval reads a file .env as it is imported

    def ask(
        self, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], stop: Event
    ) -> Completion | RequestFailed:
        from lmms_eval.llm_judge import Request, ServerConfig

        config = ServerConfig(
            model_name=self._model,
            temperature=settings["temperature"],
            max_tokens=settings["max_tokens"],
            top_p=settings.get("top_p"),
            timeout=int(self._timeout) or 1,
            num_retries=self._max_retries + 1,
        )
        try:
            response = self._provider.evaluate(Request(messages=without_system(messages), config=config))
        except Exception as error:  # a provider may fail in any way
            return RequestFailed(f"the request failed ({self._redact.shown(error)})", "garbled")
        text = self._redact(str(response.content or ""))
        return Completion(text, Answer(text))
