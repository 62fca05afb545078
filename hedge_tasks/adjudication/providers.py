"""Whom the judge `llm` asks: lmms-eval's providers, by lmms-eval's environment variables.

Servers with OpenAI's API (`openai`, `local`, `azure`) are asked by our own client: lmms-eval's providers have no
structured output, take a fixed pause between retries, and log what a server says, which may quote an account's key.
Every other provider (`bedrock`, and those that somebody registered) is asked as it is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol

from hedge_tasks.adjudication.model_judge import Reply
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

_OPTIONAL = ("response_format", "chat_template_kwargs", "temperature", "top_p", "top_k", "min_p")
"""What a judge can do without where a server refuses it."""

_BACKOFF_S = 0.5
_AZURE_VERSION = "2024-02-15-preview"
"""Of the API; what lmms-eval takes where API_VERSION is not set."""


@dataclass(frozen=True)
class JudgeRequest:
    """What all requests of a judge have in common.

    Attributes:
        title: What errors call the judge.
        model: Name under which the server knows the model.
        temperature: 0 is greedy.
        thinking: Let a model that can do so reason before it replies.
        schema: JSON schema of a reply.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed is made again.
        limits: `top_p`, `top_k` and `min_p`, as far as they are asked for.
    """

    title: str
    model: str
    temperature: float
    thinking: bool
    schema: Mapping[str, Any]
    timeout: float
    max_retries: int
    limits: Mapping[str, float] = field(default_factory=dict)


class Provider(Protocol):
    """Whoever answers a judge."""

    def ask(self, messages: Sequence[Mapping[str, Any]], max_tokens: int, stop: Event) -> Reply:
        """One reply; of a request that failed, why.

        Args:
            messages: As `to_openai` makes them.
            max_tokens: Of the reply.
            stop: Ends the pauses between retries once it is set.

        Raises:
            HedgeError: Every other request would fail the same way (a refused key, a model that is not there).
        """


def connect(provider: str | None, url: str | None, request: JudgeRequest, *, account: bool = False) -> Provider:
    """The provider that a judge or the environment names.

    Args:
        provider: Its name; None takes that of the variable API_TYPE, or `openai`.
        url: Of a server; None takes the environment's.
        request: What the judge asks for.
        account: Whether a server at `url` is told the key of the account at OpenAI.

    Raises:
        ConfigError: The provider is unknown, or has no address or key.
    """
    from lmms_eval.llm_judge import ProviderFactory

    name = (provider or os.environ.get("API_TYPE") or "openai").lower()
    name = _SAME.get(name, name)
    if name not in ProviderFactory._provider_classes:
        raise unknown("judge provider", name, ProviderFactory._provider_classes)
    if url is not None and name not in ("openai", "local"):
        raise ConfigError(f"url: the provider {name!r} takes its address from the environment")
    if name == "azure":
        return _azure(request)
    return _openai(name, url, request, account) if name in ("openai", "local") else _ForeignProvider(name, request)


def _azure(request: JudgeRequest) -> Provider:
    key, endpoint = os.environ.get("AZURE_API_KEY"), os.environ.get("AZURE_ENDPOINT")
    if not (key and endpoint):
        raise ConfigError("judge provider 'azure': set AZURE_API_KEY and AZURE_ENDPOINT")
    version = os.environ.get("API_VERSION") or _AZURE_VERSION
    key = check_key("AZURE_API_KEY", key)
    return _ChatServer(request, endpoint, key, hosted=True, api_version=version, key_variable="AZURE_API_KEY")


def _openai(name: str, url: str | None, request: JudgeRequest, account: bool) -> Provider:
    if name == "local" and url is None:
        url = address("LLM_JUDGE_URL", os.environ.get("LLM_JUDGE_URL") or "http://localhost:8000/v1")
    # A server of the environment's own is no account's, whatever was asked for.
    url, key = server_and_key(url, account=account and name != "local", who="judge 'llm'")
    return _ChatServer(request, url, key, hosted=url == OPENAI)


class _ChatServer:
    """A server with OpenAI's API.

    Args:
        request: What the judge asks for.
        url, key, options: As `ChatClient` takes them.
        hosted: The server is OpenAI's or Azure's, which know no settings of chat templates.
    """

    def __init__(self, request: JudgeRequest, url: str, key: str, *, hosted: bool, **options: Any) -> None:
        self._client = ChatClient(
            request.model,
            url,
            key,
            name=f"judge {request.title} at {url}",
            timeout=request.timeout,
            max_retries=request.max_retries,
            backoff_s=_BACKOFF_S,
            retry_empty=False,  # the judge asks again in other words
            **options,
        )
        schema = {"name": "verdict", "schema": dict(request.schema), "strict": True}
        self._settings: dict[str, Any] = {
            "response_format": {"type": "json_schema", "json_schema": schema},
            "temperature": request.temperature,
            **request.limits,
        }
        if hosted:
            # OpenAI and Azure know neither; elsewhere they are fields of the request beside OpenAI's own.
            self._settings = {k: v for k, v in self._settings.items() if k not in ("top_k", "min_p")}
        if not hosted and not request.thinking:
            # Of vLLM and SGLang; Qwen3 would else think for a thousand tokens before it says yes or no.
            self._settings["chat_template_kwargs"] = {"enable_thinking": False}

    def ask(self, messages: Sequence[Mapping[str, Any]], max_tokens: int, stop: Event) -> Reply:
        settings = {**self._settings, "max_tokens": max_tokens}
        outcome = self._client.ask(messages, settings, optional=_OPTIONAL, stop=stop)
        if isinstance(outcome, RequestFailed):
            refused = "the server refused: " if outcome.kind == "refused" else ""
            said_nothing = outcome.kind in ("empty", "cut")  # which is a reply that says nothing of the case
            return Reply(problem=f"{refused}{outcome}", failed=not said_nothing, unreachable=outcome.unreachable)
        self._count(outcome)
        return Reply(self._client.redact(outcome.text))

    def _count(self, outcome: Completion) -> None:
        """Tell lmms-eval, which counts the tokens of judges."""
        from lmms_eval.models.model_utils.usage_metrics import log_usage

        if outcome.usage is not None:
            cost = {"input_tokens": outcome.usage.prompt_tokens, "output_tokens": outcome.usage.completion_tokens}
            log_usage(model_name=self._client.model, task_name=None, reasoning_tokens=0, source="judge", **cost)


class _ForeignProvider:
    """One of lmms-eval's providers that we have no client for."""

    def __init__(self, name: str, request: JudgeRequest) -> None:
        from lmms_eval.llm_judge import ServerConfig, get_server

        self._request = request
        self._provider = get_server(name, ServerConfig(model_name=request.model))
        self._redact = Redactor()  # not before: lmms-eval reads a file .env as it is imported

    def ask(self, messages: Sequence[Mapping[str, Any]], max_tokens: int, stop: Event) -> Reply:
        from lmms_eval.llm_judge import Request, ServerConfig

        config = ServerConfig(
            model_name=self._request.model,
            temperature=self._request.temperature,
            max_tokens=max_tokens,
            top_p=self._request.limits.get("top_p"),
            timeout=int(self._request.timeout) or 1,
            num_retries=self._request.max_retries + 1,
        )
        try:
            response = self._provider.evaluate(Request(messages=without_system(messages), config=config))
        except Exception as error:  # a provider may fail in any way
            return Reply(problem=f"the request failed ({self._redact.shown(error)})", failed=True)
        return Reply(self._redact(str(response.content or "")))
