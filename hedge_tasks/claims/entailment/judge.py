"""A model on a server reads a draw and says of each claim: yes, no, or contradicts."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from loguru import logger

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL
from hedge_tasks.claims.entailment import Asked, FloatArray
from hedge_tasks.clustering.nli_cache import cache_folder
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.io import options
from hedge_tasks.io.outside import parse_json
from hedge_tasks.io.record_log import RecordLog

if TYPE_CHECKING:
    from hedge_tasks.serving.chat import ChatClient

VERDICTS = {"yes": ENTAILMENT, "no": NEUTRAL, "contradicts": CONTRADICTION}

LONGEST = 20_000
"""Characters of a text that a judge is shown; of a longer one nothing is known."""

_OPTIONAL = ("response_format", "chat_template_kwargs", "temperature")
_TOKENS_A_CLAIM = 12


@dataclass(frozen=True, slots=True)
class Call:
    """One question: a draw and some claims."""

    draw: str
    claims: tuple[str, ...]


class JudgeEntailment:
    """Asks a model behind OpenAI's chat API about all claims of an answer in one call a draw.

    A reply that cannot be read is asked for again, then each claim by itself; what is still not read has no support
    (NaN), and a warning counts these. What was said is kept in the cache on disk (`HEDGE_CACHE`): nothing is asked
    twice.

    Args:
        model: Name under which the server knows the model.
        url: Such as `http://localhost:8000/v1`; by default `OPENAI_API_URL` with `OPENAI_API_KEY`. A server named here
            is told no key.
        claims_a_call: Most claims in one call; 1 asks about each by itself.
        thinking: Let a model that can do so reason before it replies.
        max_tokens: Of a reply; by default by the number of claims.
        concurrency: Requests under way at any time.
        timeout: Seconds to wait for a reply.
        max_retries: How often a request that failed is made again.
        cache: Whether verdicts are read from and written to disk.

    Raises:
        ConfigError: a value makes no sense.
    """

    name = "judge"
    contradicts = True
    priced = "judge calls"

    def __init__(
        self,
        model: str,
        *,
        url: str | None = None,
        claims_a_call: int = 40,
        thinking: bool = False,
        max_tokens: int | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
        max_retries: int = 8,
        cache: bool = True,
    ) -> None:
        self.model = options.text("model", model)
        self.url = None if url is None else options.address("url", url)
        self.claims_a_call = options.count("claims_a_call", claims_a_call, at_least=1)
        self.thinking = options.flag("thinking", thinking)
        self.max_tokens = None if max_tokens is None else options.count("max_tokens", max_tokens, at_least=1)
        self.concurrency = options.count("concurrency", concurrency, at_least=1)
        self.timeout = options.number("timeout", timeout, zero=False)
        self.max_retries = options.count("max_retries", max_retries)
        self.cache = options.flag("cache", cache)
        text = (resources.files("hedge_tasks.claims") / "prompts" / "support.json").read_text("utf-8")
        self._prompt: Mapping[str, Any] = json.loads(text)
        self._digest = hashlib.sha256(text.encode()).hexdigest()

    def support(self, asked: Sequence[Asked]) -> list[FloatArray]:
        calls = list(dict.fromkeys(call for one in asked for call in self._calls(one)))
        folder = cache_folder() if self.cache else None
        log = RecordLog(folder / "claims", "support", "verdicts on claims") if folder is not None else None
        with log if log is not None else nullcontext():
            known = self._kept(log) if log is not None else {}
            said = {call: known[key] for call in calls if (key := self._key(call)) in known}
            missing = [call for call in calls if call not in said]
            said |= self._answers(missing, log)
            if singles := list(dict.fromkeys(one for call in missing if call not in said for one in _singly(call))):
                # A call of one claim has been asked twice already.
                said |= {call: known[key] for call in singles if (key := self._key(call)) in known}
                fresh = [call for call in singles if call not in said and call not in missing]
                said |= self._answers(fresh, log)
        verdicts = {
            (call.draw, claim): v for call, of in said.items() for claim, v in zip(call.claims, of, strict=True)
        }
        found = [_support(one, verdicts) for one in asked]
        if unread := sum(int(np.isnan(one[..., 0]).sum()) for one in found):
            logger.warning("{} verdicts of judge {} could not be had or read; they are unknown", unread, self.model)
        return found

    def price(self, asked: Sequence[Asked]) -> int:
        return len({call for one in asked for call in self._calls(one)})

    def check(self) -> None:
        """Raises ConfigError where an address or a key is missing."""
        _ = self._client

    def settings(self) -> dict[str, Any]:
        prompt = {"prompt": f"{self._prompt['name']}/{self._prompt['version']}", "prompt_digest": self._digest[:16]}
        asking = {"claims_a_call": self.claims_a_call, "thinking": self.thinking}
        return {"support": self.name, "model": self.model, **prompt, **asking}

    def _calls(self, asked: Asked) -> Iterator[Call]:
        claims = tuple(dict.fromkeys(claim for claim in asked.claims if claim.strip()))
        for draw in dict.fromkeys(draw for draw in asked.draws if draw.strip() and len(draw) <= LONGEST):
            for start in range(0, len(claims), self.claims_a_call):
                yield Call(draw, claims[start : start + self.claims_a_call])

    @cached_property
    def _client(self) -> ChatClient:
        from hedge_tasks.serving.chat import OPENAI, ChatClient
        from hedge_tasks.serving.secrets import NO_KEY, check_key

        url = self.url or options.address("OPENAI_API_URL", os.environ.get("OPENAI_API_URL") or OPENAI)
        key = NO_KEY if self.url is not None else check_key("OPENAI_API_KEY", os.environ.get("OPENAI_API_KEY"))
        if key == NO_KEY and url == OPENAI:
            raise ConfigError("support 'judge': no OPENAI_API_KEY; for a server of your own give its url (--url)")
        about = {"timeout": self.timeout, "max_retries": self.max_retries, "backoff_s": 0.5, "retry_empty": False}
        return ChatClient(self.model, url, key, name=f"judge {self.model} at {url}", **about)  # type: ignore[arg-type]

    def _answers(self, calls: Sequence[Call], log: RecordLog | None) -> dict[Call, tuple[int, ...]]:
        """What was said of these calls; those that could not be read twice are missing."""
        found: dict[Call, tuple[int, ...]] = {}
        for again in (False, True):
            left = [call for call in calls if call not in found]
            for batch in self._ask(left, again=again):
                found.update(batch)
                if log is not None:
                    log.append({"key": self._key(call), "verdicts": list(said)} for call, said in batch.items())
        return found

    def _ask(self, calls: Sequence[Call], *, again: bool) -> Iterator[dict[Call, tuple[int, ...]]]:
        from hedge_tasks.serving.failures import RequestFailed, ServerGone
        from hedge_tasks.serving.thread_pool import ask_each

        if not calls:
            return
        client = self._client

        def ask(number: int, stop: threading.Event) -> Any:
            call = calls[number]
            return client.ask(self._messages(call, again), self._request(call), optional=_OPTIONAL, stop=stop)

        def unreachable(outcome: Any) -> bool:
            return isinstance(outcome, RequestFailed) and outcome.unreachable

        try:
            for batch in ask_each(ask, len(calls), min(self.concurrency, len(calls)), unreachable=unreachable):
                replies = {calls[i]: said for i, said in batch if not isinstance(said, RequestFailed)}
                read = {call: read_verdicts(reply.text, len(call.claims)) for call, reply in replies.items()}
                yield {call: said for call, said in read.items() if said is not None}
        except ServerGone as gone:
            raise HedgeError(
                f"judge {self.model} is gone: {gone.in_vain} calls in a row failed, the last one with: {gone.last}. "
                "What came before is kept; the same command continues from there."
            ) from None

    def _messages(self, call: Call, again: bool) -> list[dict[str, Any]]:
        turns = [{"role": "system", "content": "\n".join(self._prompt["system"])}]
        for example in self._prompt["examples"]:
            turns.append({"role": "user", "content": _shown(example["text"], example["claims"])})
            turns.append({"role": "assistant", "content": json.dumps(_numbered(example["verdicts"]))})
        asked = _shown(call.draw, call.claims)
        return [*turns, {"role": "user", "content": f"{asked}\n{self._prompt['again']}" if again else asked}]

    def _request(self, call: Call) -> dict[str, Any]:
        each = {"type": "string", "enum": list(VERDICTS)}
        names = list(_numbered(call.claims))
        schema: dict[str, Any] = {"type": "object", "properties": dict.fromkeys(names, each), "required": names}
        schema["additionalProperties"] = False
        form = {"type": "json_schema", "json_schema": {"name": "verdicts", "schema": schema, "strict": True}}
        limit = self.max_tokens or (64 + _TOKENS_A_CLAIM * len(call.claims)) * (16 if self.thinking else 1)
        hosted = self._client.url.startswith("https://api.openai.com")
        thinks = {} if hosted or self.thinking else {"chat_template_kwargs": {"enable_thinking": False}}
        return {"response_format": form, "temperature": 0.0, "max_tokens": limit, **thinks}

    def _key(self, call: Call) -> str:
        about = [self.model, self.thinking, self._digest, call.draw, list(call.claims)]
        return hashlib.sha256(json.dumps(about).encode("utf-8", "surrogatepass")).hexdigest()

    def _kept(self, log: RecordLog) -> dict[str, tuple[int, ...]]:
        found = {}
        for line in log.read():
            record = line.record or {}
            key, said = record.get("key"), record.get("verdicts")
            if isinstance(key, str) and isinstance(said, list) and all(one in (0, 1, 2) for one in said):
                found[key] = tuple(said)
        return found


def read_verdicts(reply: str, n: int) -> tuple[int, ...] | None:
    """The verdicts of a reply, as columns of a support; None where it has not one for each of n claims.

    Example:
        >>> read_verdicts('Here: {"1": "yes", "2": "Contradicts"}', 2), read_verdicts('{"1": "yes"}', 2)
        ((2, 0), None)
    """
    start, end = reply.rfind("{"), reply.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        said = parse_json(reply[start : end + 1], "reply")
    except DataError:
        return None
    if not isinstance(said, Mapping) or set(said) != {str(i + 1) for i in range(n)}:
        return None
    found = [VERDICTS.get(str(said[str(i + 1)]).strip().lower()) for i in range(n)]
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == n else None


def _numbered(values: Sequence[str]) -> dict[str, str]:
    return {str(i): value for i, value in enumerate(values, start=1)}


def _shown(text: str, claims: Sequence[str]) -> str:
    """As JSON, in which no text can close its string or begin a turn of the conversation."""
    written = json.dumps({"text": text, "claims": _numbered(claims)}, ensure_ascii=False)
    return written.replace("<", "\\u003c").replace("[", "\\u005b")  # neither is part of this object's own form


def _singly(call: Call) -> list[Call]:
    return [Call(call.draw, (claim,)) for claim in call.claims]


def _support(asked: Asked, verdicts: Mapping[tuple[str, str], int]) -> FloatArray:
    found = np.zeros((len(asked.claims), len(asked.draws), 3))
    for i, claim in enumerate(asked.claims):
        for j, draw in enumerate(asked.draws):
            if not draw.strip() or not claim.strip():
                found[i, j, NEUTRAL] = 1.0
            elif (verdict := verdicts.get((draw, claim))) is None:
                found[i, j] = np.nan
            else:
                found[i, j, verdict] = 1.0
    return found
