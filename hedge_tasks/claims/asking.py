"""Asking a model on a server about many texts at once; what it said is kept on disk, and nothing is asked twice.

Whatever of this room asks a server is an `Asker`: with a prompt, and a form of its replies.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from hedge_tasks.clustering.nli_cache import cache_folder
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.io.keyed_log import KeyedLog

if TYPE_CHECKING:
    from hedge_tasks.serving.chat import ChatClient

Asked = TypeVar("Asked")

_OPTIONAL = ("response_format", "chat_template_kwargs", "temperature")


class Prompt:
    """A prompt of this room, from `prompts/NAME.json`.

    Attributes:
        id: `name/version`.
        digest: of the file; what was said is kept under it.
    """

    def __init__(self, name: str) -> None:
        text = (resources.files("hedge_tasks.claims") / "prompts" / f"{name}.json").read_text("utf-8")
        self._fields: Mapping[str, Any] = json.loads(text)
        self.id = f"{self._fields['name']}/{self._fields['version']}"
        self.digest = hashlib.sha256(text.encode()).hexdigest()

    def messages(self, shown: Mapping[str, Any], *, again: bool) -> list[dict[str, Any]]:
        """The conversation: what is shown is a JSON object that no text in it can close.

        Args:
            again: ask once more after a reply that could not be read.
        """
        turns = [{"role": "system", "content": "\n".join(self._fields["system"])}]
        for example in self._fields["examples"]:
            turns.append({"role": "user", "content": _written(example["shown"])})
            turns.append({"role": "assistant", "content": json.dumps(example["reply"], ensure_ascii=False)})
        asked = _written(shown)
        return [*turns, {"role": "user", "content": f"{asked}\n{self._fields['again']}" if again else asked}]


class Asker:
    """Asks one model behind OpenAI's chat API, with the prompt of the class.

    Attributes:
        prompt_name: of its prompt; what was said is kept under this name, too.

    Args:
        model: Name under which the server knows the model.
        url: Such as `http://localhost:8000/v1`; by default `OPENAI_API_URL` with `OPENAI_API_KEY`. A server named here
            is told no key.
        thinking: Let a model that can do so reason before it replies.
        concurrency: Requests under way at any time.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed is made again.
        cache: Whether what is said is read from and written to disk (`HEDGE_CACHE`).

    Raises:
        ConfigError: a value makes no sense.
    """

    prompt_name: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        thinking: bool = False,
        concurrency: int = 16,
        timeout: float = 120.0,
        max_retries: int = 8,
        cache: bool = True,
    ) -> None:
        self.model = options.text("model", model)
        self.url = None if url is None else options.address("url", url)
        self.thinking = options.flag("thinking", thinking)
        self.concurrency = options.count("concurrency", concurrency, at_least=1)
        self.timeout = options.number("timeout", timeout, zero=False)
        self.max_retries = options.count("max_retries", max_retries)
        self.cache = options.flag("cache", cache)
        self._prompt = Prompt(self.prompt_name)
        self._known: KeyedLog[Any] | None = None

    def check(self) -> None:
        """Raises ConfigError where an address or a key is missing."""
        _ = self._client

    def settings(self) -> dict[str, Any]:
        """What decides what is said, ready for JSON."""
        prompt = {"prompt": self._prompt.id, "prompt_digest": self._prompt.digest[:16]}
        return {"model": self.model, "thinking": self.thinking, **prompt}

    def _read_all(
        self,
        asked: Sequence[Asked],
        *,
        shown: Callable[[Asked], Mapping[str, Any]],
        schema: Callable[[Asked], Mapping[str, Any]],
        tokens: Callable[[Asked], int],
        read: Callable[[Asked, str], Any],
    ) -> dict[Asked, Any]:
        """What was said of each, read; asked again once where it could not be. What cannot be read is missing.

        Args:
            asked: distinct.
            shown: what the model sees of one, as JSON.
            schema: JSON schema of the reply.
            tokens: most tokens of the reply of a model that does not think.
            read: from a reply to something for JSON, or None.

        Raises:
            HedgeError: the server is gone, or refuses all.
        """
        if self._known is None:
            self._known = self._log()
        keys = {one: self._key(shown(one)) for one in asked}
        found = {one: self._known[key] for one, key in keys.items() if key in self._known}
        with self._known as log:
            for again in (False, True):
                left = [one for one in asked if one not in found]
                requests = [
                    (self._prompt.messages(shown(one), again=again), self._request(schema(one), tokens(one)))
                    for one in left
                ]
                for batch in self._ask(requests):
                    said = {left[i]: value for i, text in batch if (value := read(left[i], text)) is not None}
                    found.update(said)
                    log.keep((keys[one], value, {"said": value}) for one, value in said.items())
        return found

    def _log(self) -> KeyedLog[Any]:
        """What was said, by key: on disk, or in memory where there is no cache."""
        folder = cache_folder() if self.cache else None
        place = None if folder is None else folder / "claims"
        return KeyedLog(place, self.prompt_name, "replies about claims", lambda record: record.get("said"))

    def _ask(self, requests: Sequence[tuple[list[dict[str, Any]], dict[str, Any]]]) -> Iterator[list[tuple[int, str]]]:
        from hedge_tasks.serving.failures import RequestFailed, ServerGone
        from hedge_tasks.serving.thread_pool import ask_each

        if not requests:
            return
        client = self._client

        def ask(number: int, stop: threading.Event) -> Any:
            messages, settings = requests[number]
            return client.ask(messages, settings, optional=_OPTIONAL, stop=stop)

        def unreachable(outcome: Any) -> bool:
            return isinstance(outcome, RequestFailed) and outcome.unreachable

        workers = min(self.concurrency, len(requests))
        try:
            for batch in ask_each(ask, len(requests), workers, unreachable=unreachable):
                yield [(i, said.text) for i, said in batch if not isinstance(said, RequestFailed)]
        except ServerGone as gone:
            raise HedgeError(
                f"{self.model} is gone: {gone.in_vain} requests in a row failed, the last one with: {gone.last}. "
                "What came before is kept; the same command continues from there."
            ) from None

    @cached_property
    def _client(self) -> ChatClient:
        from hedge_tasks.serving.chat import OPENAI, ChatClient
        from hedge_tasks.serving.secrets import NO_KEY, check_key

        url = self.url or options.address("OPENAI_API_URL", os.environ.get("OPENAI_API_URL") or OPENAI)
        key = NO_KEY if self.url is not None else check_key("OPENAI_API_KEY", os.environ.get("OPENAI_API_KEY"))
        if key == NO_KEY and url == OPENAI:
            raise ConfigError(f"{self.model}: no OPENAI_API_KEY; for a server of your own give its url (--url)")
        about: dict[str, Any] = {"timeout": self.timeout, "max_retries": self.max_retries, "backoff_s": 0.5}
        return ChatClient(self.model, url, key, name=f"{self.model} at {url}", retry_empty=False, **about)

    def _request(self, schema: Mapping[str, Any], tokens: int) -> dict[str, Any]:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}
        hosted = self._client.url.startswith("https://api.openai.com")
        thinks = {} if hosted or self.thinking else {"chat_template_kwargs": {"enable_thinking": False}}
        return {
            "response_format": form,
            "temperature": 0.0,
            "max_tokens": tokens * (16 if self.thinking else 1),
            **thinks,
        }

    def _key(self, shown: Mapping[str, Any]) -> str:
        about = [self.model, self.thinking, self._prompt.digest, shown]
        return hashlib.sha256(json.dumps(about).encode("utf-8", "surrogatepass")).hexdigest()


def json_object(reply: str) -> str:
    """What may be the JSON object of a reply: from its first brace to its last; empty without any."""
    start, end = reply.find("{"), reply.rfind("}")
    return reply[start : end + 1] if 0 <= start < end else ""


def _written(shown: Mapping[str, Any]) -> str:
    """As JSON, in which no text can close its string or begin a turn of the conversation."""
    # Neither mark is part of an object of texts and objects.
    return json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c").replace("[", "\\u005b")
