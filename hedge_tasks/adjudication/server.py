"""The connection of the judge `llm`: lmms-eval's provider with its environment variables, made to last.

lmms-eval's providers know who to ask and how a request is put; they have no structured output, take a fixed pause
between retries, and log what a server says, which may quote an account's key. So a provider keeps its way of building
requests, and its client is replaced by one that adds what is missing and never raises into the provider.
"""

from __future__ import annotations

import base64
import io
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import openai
from loguru import logger

from hedge_tasks.adjudication.model_judge import Reply
from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.io.options import address
from hedge_tasks.models.chat_completion import RequestFailed, read_answer, shorten

if TYPE_CHECKING:
    from hedge_tasks.adjudication.llm import LLMJudge

_NO_KEY = "EMPTY"  # what vLLM's documentation sends to a server that asks for none
_OPENAI = "https://api.openai.com/v1"

# Concurrency is ours, so of a provider's two forms the one without an event loop will do.
_SAME = {"async_openai": "openai", "async_azure": "azure"}

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST_SECRET = 8

_FORMS = ("json_schema", "json_object", None)
"""Ways to ask for structured output, from the strictest to none."""


class JudgeServer:
    """A provider of lmms-eval for one judge.

    Raises:
        ConfigError: the provider is unknown, or has no address or key.
    """

    def __init__(self, judge: LLMJudge) -> None:
        self._judge = judge
        self._provider, self._client = self._connect()
        self._secrets = _secrets_of_environment()  # not before: lmms-eval reads a file .env as it is imported

    def ask(self, messages: list[dict[str, Any]], max_tokens: int) -> Reply:
        """One reply; of a request that failed, why.

        Args:
            messages: as `sendable` makes them.

        Raises:
            HedgeError: every other request would fail the same way (a refused key, a model that is not there).
        """
        from lmms_eval.llm_judge import Request, ServerConfig

        config = ServerConfig(
            model_name=self._judge.model,
            temperature=self._judge.temperature,
            max_tokens=max_tokens,
            timeout=int(self._judge.timeout) or 1,
            num_retries=1 if self._client is not None else self._judge.max_retries + 1,
        )
        sent = messages if self._client is not None else _without_system(messages)
        try:
            response = self._provider.evaluate(Request(messages=sent, config=config))
        except Exception as error:  # a provider without a client of ours may fail in any way
            return Reply(problem=self._redact(f"the request failed ({shorten(error)})"), failed=True)
        if isinstance(response.raw_response, _Outcome):
            return response.raw_response.reply()
        return Reply(self._redact(str(response.content or "")))

    # --- connecting ---------------------------------------------------------------------------------------------------

    def _connect(self) -> tuple[Any, _Client | None]:
        from lmms_eval.llm_judge import ProviderFactory, ServerConfig, get_server

        name = (self._judge.provider or os.environ.get("API_TYPE") or "openai").lower()
        name = _SAME.get(name, name)
        if name not in ProviderFactory._provider_classes:
            raise unknown("judge provider", name, ProviderFactory._provider_classes)
        config = ServerConfig(model_name=self._judge.model)
        if self._judge.url is not None and name not in ("openai", "local"):
            raise ConfigError(f"url: the provider {name!r} takes its address from the environment")
        if name not in ("openai", "local", "azure"):
            return get_server(name, config), None
        if name == "azure":
            if not (os.environ.get("AZURE_API_KEY") and os.environ.get("AZURE_ENDPOINT")):
                raise ConfigError("judge provider 'azure': set AZURE_API_KEY and AZURE_ENDPOINT")
            provider = get_server(name, config)
        else:
            with _environment(**self._openai_variables(name, config)):
                provider = get_server("openai", config)
        client = _Client(provider.client, self._judge, self._redact)
        provider.client = client
        return provider, client

    def _openai_variables(self, name: str, config: Any) -> dict[str, str]:
        """What lmms-eval's OpenAI provider reads from the environment, for any server that speaks OpenAI's language."""
        from lmms_eval.llm_judge import get_server

        if self._judge.url is not None:
            url = self._judge.url
        elif name == "local":
            url = address("LLM_JUDGE_URL", get_server("local", config).api_url)
        else:
            url = address("OPENAI_API_URL", os.environ.get("OPENAI_API_URL") or _OPENAI)
        # A server of one's own must not be told the key of an account somewhere else.
        key = "" if name == "local" else (os.environ.get("OPENAI_API_KEY") or "").strip()
        if not key and url == _OPENAI:
            raise ConfigError(
                "judge 'llm': no OPENAI_API_KEY for api.openai.com; for a server of your own set OPENAI_API_URL "
                "(such as http://localhost:8000/v1)"
            )
        if not key.isascii() or not key.isprintable() or " " in key:  # an HTTP library would quote it in its error
            raise ConfigError("OPENAI_API_KEY: there are characters in it that no key has, such as blanks")
        return {"OPENAI_API_URL": url, "OPENAI_API_KEY": key or _NO_KEY}

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text


class _Outcome:
    """Stands for a server's response inside a provider: always one that the provider can take apart."""

    def __init__(self, reply: Reply | HedgeError, usage: Any = None) -> None:
        self._reply = reply
        self.choices = [SimpleNamespace(message=SimpleNamespace(content=""))]
        self.model, self.usage = "", usage  # lmms-eval counts tokens of judges

    def reply(self) -> Reply:
        if isinstance(self._reply, HedgeError):
            raise self._reply
        return self._reply


class _Client:
    """In place of an OpenAI client: structured output where the server takes it, and errors sorted.

    What the server refuses is found out by asking, once, and left out from then on.
    """

    def __init__(self, client: Any, judge: LLMJudge, redact: Any) -> None:
        self._client = client.with_options(max_retries=judge.max_retries, timeout=judge.timeout)
        self._judge, self._redact = judge, redact
        self._lock = threading.Lock()
        self._form = 0  # position in _FORMS
        hosted = isinstance(client, openai.AzureOpenAI) or str(client.base_url).rstrip("/") == _OPENAI
        self._takes_template = not hosted
        self._answered = False
        self._renamed: dict[str, str | None] = {}
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))

    def _create(self, **payload: Any) -> _Outcome:
        """A completion, as a provider asks for it."""
        try:
            return self._ask(payload)
        except HedgeError as error:
            return _Outcome(error)

    def _ask(self, payload: Mapping[str, Any]) -> _Outcome:
        while True:
            settings = self._settings(payload)
            try:
                response = self._client.chat.completions.with_raw_response.create(**settings)
            except openai.APIError as error:
                # Each turn leaves out or renames one setting, so there are few. Where another thread has done so while
                # this request was under way, it is worth another try, too.
                adapted = isinstance(error, openai.APIStatusError) and self._adapt(error, settings)
                if adapted or settings != self._settings(payload):
                    continue
                return _Outcome(self._explain(error))
            self._answered = True
            return self._take(response.http_response)

    def _take(self, response: Any) -> _Outcome:
        try:
            body = response.json()
        except ValueError:
            raw = self._redact(response.text[:1000])
            return _Outcome(Reply(raw, problem="the server's response is not valid JSON", failed=True))
        try:
            return _Outcome(Reply(self._redact(read_answer(body).text)), _usage(body))
        except RequestFailed as failure:
            gateway = not (isinstance(body, Mapping) and body.get("choices"))
            return _Outcome(Reply(problem=self._redact(str(failure)), failed=gateway), _usage(body))

    # --- what this server takes ---------------------------------------------------------------------------------------

    def _settings(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        settings = dict(payload)
        for key, other in tuple(self._renamed.items()):
            value = settings.pop(key, None)
            if other is not None and value is not None:
                settings[other] = value
        if (form := _FORMS[self._form]) is not None:
            schema = {"name": "verdict", "schema": dict(self._judge.prompt.schema), "strict": True}
            settings["response_format"] = {"type": form} | ({"json_schema": schema} if form == "json_schema" else {})
        if self._takes_template and not self._judge.thinking:
            # Of vLLM and SGLang; Qwen3 would else think for a thousand tokens before it says yes or no.
            settings["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
        return settings

    def _adapt(self, error: openai.APIStatusError, settings: Mapping[str, Any]) -> bool:
        """Whether the request can be put in another way that this server may take; later requests are put like that."""
        if error.status_code not in (400, 404, 415, 422, 500, 501):
            return False
        reason = f"{error.param} {_message(error)}".lower()
        with self._lock:
            return self._drop_named(reason, settings) or self._drop_unproven(error.status_code, reason, settings)

    def _drop_named(self, reason: str, settings: Mapping[str, Any]) -> bool:
        if "response_format" in settings and re.search(
            r"response_format|json_schema|json_object|schema|structured|guided|grammar", reason
        ):
            self._next_form(settings)
            return True
        if "extra_body" in settings and re.search(r"chat_template|enable_thinking|extra (fields|inputs)", reason):
            self._takes_template = False
            return True
        if "max_tokens" in settings and "max_completion_tokens" in reason:
            self._renamed["max_tokens"] = "max_completion_tokens"
            return True
        if "temperature" in settings and "temperature" in reason:
            self._renamed["temperature"] = None
            return True
        return False

    def _drop_unproven(self, status: int, reason: str, settings: Mapping[str, Any]) -> bool:
        """A bare "bad request" to the very first ones may mean any setting that not all servers know."""
        if self._answered or status not in (400, 422) or re.search(r"context|token|length|content|image", reason):
            return False
        if "extra_body" in settings:
            self._takes_template = False
        elif "response_format" in settings:
            self._next_form(settings)
        else:
            return False
        return True

    def _next_form(self, settings: Mapping[str, Any]) -> None:
        # Another thread may have moved on already, while this one's request was under way.
        refused = _FORMS.index(settings["response_format"]["type"])
        if self._form == refused:
            self._form += 1
            logger.info("judge {}: the server refuses {}", self._judge.title, _FORMS[refused])

    # --- what went wrong ----------------------------------------------------------------------------------------------

    def _explain(self, error: openai.APIError) -> Reply:
        """The reply of a request that came to nothing.

        Raises:
            HedgeError: all others would, too; says what to do.
        """
        if isinstance(error, openai.APITimeoutError):
            return Reply(problem=f"no reply within {self._judge.timeout:g} s", failed=True, unreachable=True)
        if isinstance(error, openai.APIConnectionError):
            reason = self._redact(shorten(error.__cause__ or error))
            return Reply(problem=f"no connection ({reason})", failed=True, unreachable=True)
        reason = self._redact(_message(error))
        status = getattr(error, "status_code", None)
        who = f"judge {self._judge.title}"
        if error.code == "insufficient_quota":
            raise HedgeError(f"{who}: the account has no credit left ({reason})")
        if status in (401, 403):
            raise HedgeError(f"{who}: the server refuses the key ({status}: {reason}); see OPENAI_API_KEY")
        if status == 404:
            raise HedgeError(
                f"{who}: the server has no such model, or its address is wrong, which usually ends in /v1 "
                f"(404: {reason})"
            )
        return Reply(problem=f"the server refused (status {status}: {reason})", failed=True)


def sendable(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages in OpenAI's form.

    Raises:
        OSError, ValueError: a picture cannot be read.
    """
    return [{"role": m["role"], "content": _content(m["content"])} for m in messages]


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For providers that take no system turn: it goes in front of what the user says first."""
    if not messages or messages[0]["role"] != "system":
        return messages
    first, user, *rest = messages
    return [{"role": "user", "content": _join(first["content"], user["content"])}, *rest]


def _join(system: Any, content: Any) -> Any:
    if isinstance(content, str):
        return f"{system}\n\n{content}"
    return [{"type": "text", "text": system}, *content]


def _content(parts: Sequence[Mapping[str, Any]]) -> Any:
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)  # text-only servers know no parts
    return [dict(p) if p["type"] == "text" else _picture(p["url"]) for p in parts]


def _picture(image: Any) -> dict[str, Any]:
    from PIL import Image

    from hedge_tasks.perturb import to_rgb8

    if isinstance(image, str) and image.startswith(("http://", "https://", "data:")):
        return {"type": "image_url", "image_url": {"url": image}}
    content = io.BytesIO()
    to_rgb8(image if isinstance(image, Image.Image) else Image.open(image)).save(content, format="PNG")
    url = f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _usage(body: object) -> SimpleNamespace | None:
    """Numbers of tokens, where the server tells them as numbers."""
    usage = body.get("usage") if isinstance(body, Mapping) else None
    counts = [usage.get(k) if isinstance(usage, Mapping) else None for k in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(n, int) for n in counts):
        return None
    return SimpleNamespace(prompt_tokens=counts[0], completion_tokens=counts[1])


def _message(error: openai.APIError) -> str:
    body = error.body
    found = body.get("message") if isinstance(body, Mapping) else None
    return shorten(found if isinstance(found, str) else error.message)


def _secrets_of_environment() -> list[str]:
    """Values that must stand in no error, log or label, the longest first."""
    named = {value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    return sorted((value for value in named if len(value) >= _SHORTEST_SECRET and value != _NO_KEY), key=len)[::-1]


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Variables for as long as a provider is built, which reads them in its constructor."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
