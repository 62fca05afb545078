"""Where a served model is, and which key it is told: the same for whoever asks.

The variables are those of lmms-eval's own judges: `API_TYPE` (openai, azure, local, bedrock), `OPENAI_API_URL` and
`OPENAI_API_KEY`, `LLM_JUDGE_URL`, `AZURE_ENDPOINT`, ..., also where a file `.env` sets them. Servers with OpenAI's API
(`openai`, `local`, `azure`) are asked by our own client: lmms-eval's providers have no structured output, take a fixed
pause between retries, and log what a server says, which may quote an account's key. Every other provider (`bedrock`,
and those that somebody registered) is asked as it is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io.options import address
from hedge_tasks.llm.accounts import server_and_key
from hedge_tasks.llm.chat import OPENAI, ChatClient
from hedge_tasks.llm.failures import RequestFailed
from hedge_tasks.llm.log import Reply
from hedge_tasks.llm.messages import without_system
from hedge_tasks.llm.secrets import Redactor, check_key

# Concurrency is ours, so of a provider's two forms the one without an event loop will do.
_SAME = {"async_openai": "openai", "async_azure": "azure"}

_OPTIONAL = ("response_format", "chat_template_kwargs", "seed", "temperature", "top_p", "top_k", "min_p")
"""Settings a reply can do without where a server refuses them: a schema that nobody enforces is still checked."""

_NOT_HOSTED = ("chat_template_kwargs", "top_k", "min_p")
"""Fields beside OpenAI's own, which OpenAI and Azure do not know."""

_BACKOFF_S = 0.5
_AZURE_VERSION = "2024-02-15-preview"
"""Of the API; what lmms-eval takes where API_VERSION is not set."""


Server = Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any], Event], Awaitable[Reply | RequestFailed]]
"""Whoever answers: a reply, or why a request failed.

Its arguments are messages as `to_openai` makes them, further fields of the request's body, and an event that ends the
pauses between retries. It raises HedgeError where every other request would fail the same way (a refused key, a model
that is not there).
"""

_SAYS_NOTHING = ("empty", "cut")
"""Failures that are replies: the model was there, and said nothing."""


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
        return _chat_server(model, endpoint, key, who, **limits, api_version=version, key_variable="AZURE_API_KEY")
    if name in ("openai", "local"):
        if name == "local" and url is None:
            url = address("LLM_JUDGE_URL", os.environ.get("LLM_JUDGE_URL") or "http://localhost:8000/v1")
        # A server of the environment's own is no account's, whatever was asked for.
        url, key = server_and_key(url, account=account and name != "local", who=who)
        return _chat_server(model, url, key, who, **limits)
    return _foreign_server(name, model, **limits)


def _read_env_file() -> None:
    """As lmms-eval does for its judges, without importing it, which takes ten seconds."""
    from dotenv import load_dotenv

    load_dotenv(".env", override=False)


def _chat_server(model: str, url: str, key: str, who: str, **options: Any) -> Server:
    """A server with OpenAI's API; options as `ChatClient` takes them."""
    how: dict[str, Any] = {"backoff_s": _BACKOFF_S, "retry_empty": False}  # it is asked again in other words
    client = ChatClient(model, url, key, name=f"{who} at {url}", **how, **options)
    hosted = "api_version" in options or urlsplit(url).hostname == urlsplit(OPENAI).hostname

    async def ask(
        messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], stop: Event
    ) -> Reply | RequestFailed:
        supported = {key: value for key, value in settings.items() if not (hosted and key in _NOT_HOSTED)}
        completion = await client.ask_async(messages, supported, optional=_OPTIONAL, stop=stop)
        if isinstance(completion, RequestFailed):
            said_nothing = completion.kind in _SAYS_NOTHING
            return Reply("", completion.kind, problem=str(completion)) if said_nothing else completion
        tokens = {} if completion.usage is None else asdict(completion.usage)
        return Reply(client.redact(completion.text), completion.finish, completion.model, **tokens)

    return ask


def _foreign_server(name: str, model: str, *, timeout: float, max_retries: int) -> Server:
    """One of lmms-eval's providers that we have no client for."""
    from lmms_eval.llm_judge import ProviderFactory, Request, ServerConfig, get_server

    if name not in ProviderFactory._provider_classes:
        raise unknown("provider", name, ProviderFactory._provider_classes)
    provider = get_server(name, ServerConfig(model_name=model))
    redact = Redactor()  # not before: lmms-eval reads a file .env as it is imported
    patience = {"timeout": int(timeout) or 1, "num_retries": max_retries + 1}

    def ask(messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], stop: Event) -> Reply | RequestFailed:
        sampling = {key: settings.get(key) for key in ("temperature", "max_tokens", "top_p")}
        config = ServerConfig(model_name=model, **sampling, **patience)
        try:
            response = provider.evaluate(Request(messages=without_system(messages), config=config))
        except Exception as error:  # a provider may fail in any way
            return RequestFailed(f"the request failed ({redact.shown(error)})", "garbled")
        return Reply(redact(str(response.content or "")))

    async def ask_in_thread(
        messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], stop: Event
    ) -> Reply | RequestFailed:
        return await asyncio.to_thread(ask, messages, settings, stop)

    return ask_in_thread
