"""hedge_openai: any server with OpenAI's chat API (vLLM, SGLang, OpenAI), with log-probabilities where it offers them.

See models/README.md for what is found out about a server, what a draw costs and what its log-probabilities mean.
"""

from __future__ import annotations

import base64
import difflib
import io
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import openai
import torch
from loguru import logger
from PIL import Image
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_attempt,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)
from tqdm import tqdm

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError, DrawsFailed, HedgeError, unknown
from hedge_tasks.io.options import count, number
from hedge_tasks.models.base import ChatAdapter, refuse_unknown
from hedge_tasks.models.chat_completion import RequestFailed, read_answer, shorten
from hedge_tasks.models.thread_pool import as_finished
from hedge_tasks.perturb import to_rgb8
from hedge_tasks.sampling.requests import DrawRequest

_ARGUMENTS = (
    "model",
    "base_url",
    "api_key",
    "num_concurrent",
    "timeout",
    "max_retries",
    "retry_backoff_s",
    "max_image_side",
    "batch_size",
)

_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "EMPTY"  # what vLLM's documentation sends to a server that asks for none

_SEEDS = 2**31
"""Seeds are folded into [0, 2^31): some servers read 32 bits, and some of those a sign."""

_LONGEST_PAUSE = 60.0
_LONGEST_RETRY_AFTER = 600.0

_GIVE_UP_AFTER = 3
"""A server is gone when this many draws a thread found no connection, one after the other, retries included."""


@dataclass(frozen=True)
class _Question:
    """One request to the server.

    Attributes:
        name: what errors call it.
        messages: makes the conversation in lmms-eval's form; called in a thread, as perturbing an image takes time.
        limits: `max_new_tokens`, and if set `top_p`, `top_k`, `until`, as `SamplingPlan.limits()` has them.
        seed: of the draw; None for a request that is none.
    """

    name: str
    messages: Callable[[], list[dict[str, Any]]]
    temperature: float
    limits: Mapping[str, Any]
    seed: int | None = None


class HedgeOpenAI(ChatAdapter):
    """Adapter for a model behind an OpenAI-compatible chat API.

    Args:
        model: name under which the server knows the model.
        base_url: such as `http://localhost:8000/v1`; by default the environment's OPENAI_BASE_URL, or OpenAI itself.
        api_key: by default the environment's OPENAI_API_KEY. Better there: lmms-eval prints the model's arguments.
        num_concurrent: requests under way at any time.
        timeout: seconds to wait for an answer.
        max_retries: how often a request that failed is made again before its draw counts as failed.
        retry_backoff_s: pause before the first retry; every further one doubles, up to a minute.
        max_image_side: images with a longer side are scaled down to it. None sends every pixel.

    Raises:
        ConfigError: an argument is unknown or makes no sense.
    """

    def __init__(
        self,
        model: str = "",
        base_url: str | None = None,
        api_key: str | None = None,
        num_concurrent: int = 16,
        timeout: float = 300.0,
        max_retries: int = 6,
        retry_backoff_s: float = 1.0,
        max_image_side: int | None = None,
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        device: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        refuse_unknown(options, _ARGUMENTS)
        if not str(model).strip():
            raise ConfigError("the model argument 'model' is missing: the name under which the server knows the model")
        self.model = str(model).strip()
        self.base_url = _check_url(base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI)
        self.num_concurrent = count("num_concurrent", num_concurrent, at_least=1)
        self.timeout = number("timeout", timeout, zero=False)
        self.max_retries = count("max_retries", max_retries, at_least=0)
        self.retry_backoff_s = number("retry_backoff_s", retry_backoff_s)
        self.max_image_side = None if max_image_side is None else count("max_image_side", max_image_side, at_least=1)
        # The client's own retries know neither broken JSON nor empty answers, and their pauses cannot be set.
        self._client = openai.OpenAI(
            base_url=self.base_url, api_key=_check_key(api_key), timeout=self.timeout, max_retries=0
        )
        self.device = torch.device("cpu")  # where lmms-eval gathers the results of several processes
        self._takes_logprobs, self._takes_seeds, self._limit = True, True, "max_tokens"
        self._said: set[str] = set()
        self._lock = threading.Lock()
        scaled = f"|max_image_side={self.max_image_side}" if self.max_image_side else ""
        self.answer_identity = f"hedge_openai:{self.base_url}|{self.model}{scaled}"

    # --- what lmms-eval and the hook ask for --------------------------------------------------------------------------

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer | str]]]:
        """One request a draw, with the draw's own temperature and seed; a string says why a draw failed.

        Raises:
            HedgeError: the server refused a request, and would refuse it again. What was finished is yielded before.
            DrawsFailed: the server cannot be reached any more.
        """
        yield from self._answers([_as_question(draw) for draw in draws])

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Greedy or sampled generation for tasks that are not ours; failed requests become lmms-eval's sentinel."""
        texts: dict[int, str] = {}
        with tqdm(total=len(requests), desc="Generating", disable=self.rank != 0) as bar:
            for batch in self._answers([self._as_question(request) for request in requests]):
                for i, answer in batch:
                    failure = f"[LMMS_EVAL_REQUEST_FAILED after {self.max_retries} retries] {answer}"
                    texts[i] = answer.text if isinstance(answer, Answer) else failure
                bar.update(len(batch))
        return [texts[i] for i in range(len(requests))]

    def _as_question(self, request: Any) -> _Question:
        _, _, settings, index, task, _ = request.args
        sampled = settings.get("do_sample", True)
        limits = {"max_new_tokens": int(settings.get("max_new_tokens") or 256), "until": _texts(settings.get("until"))}
        if sampled and settings.get("top_p") is not None:
            limits["top_p"] = settings["top_p"]
        return _Question(
            name=f"{task} {index}",
            messages=lambda: self.messages_of(request),
            temperature=float(settings.get("temperature") or 0) if sampled else 0.0,
            limits=limits,
        )

    # --- asking -------------------------------------------------------------------------------------------------------

    def _answers(self, questions: Sequence[_Question]) -> Iterator[list[tuple[int, Answer | str]]]:
        def call(i: int, stop: threading.Event) -> Answer | RequestFailed:
            return self._answer(questions[i], stop)

        in_vain = 0
        with closing(as_finished(call, len(questions), self.num_concurrent)) as batches:
            for batch in batches:
                yield [(i, answer if isinstance(answer, Answer) else str(answer)) for i, answer in batch]
                for _, answer in batch:
                    in_vain = in_vain + 1 if isinstance(answer, RequestFailed) and answer.unreachable else 0
                    # Or a server that died in the night would be called for every remaining draw, for hours.
                    if isinstance(answer, RequestFailed) and in_vain >= _GIVE_UP_AFTER * self.num_concurrent:
                        raise DrawsFailed(
                            f"{self.base_url} is gone: {in_vain} draws in a row failed, the last one with {answer}. "
                            "The answer store has the finished draws; the same command continues from there."
                        )

    def _answer(self, question: _Question, stop: threading.Event) -> Answer | RequestFailed:
        """Ask until there is an answer or the retries are used up.

        Raises:
            HedgeError: asking again would change nothing.
        """
        messages = self._encode(question.messages())
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, RequestFailed) and not error.lasting),
            stop=stop_after_attempt(1 + self.max_retries) | stop_when_event_set(stop),
            wait=self._pause,
            sleep=sleep_using_event(stop),
            before_sleep=self._announce,
            reraise=True,
        )
        try:
            return retrying(self._ask, question, messages)
        except RequestFailed as failure:
            return failure

    def _pause(self, state: RetryCallState) -> float:
        growing = wait_exponential(multiplier=self.retry_backoff_s, max=_LONGEST_PAUSE)
        jitter = wait_random(0, self.retry_backoff_s)(state)  # or all threads would come back at the same moment
        wanted = getattr(_error_of(state), "retry_after", None)
        return jitter + (growing(state) if wanted is None else wanted)

    def _announce(self, state: RetryCallState) -> None:
        self._say_once("retries", f"{self.base_url}: {_error_of(state)}; failed requests are made again after a pause")

    def _ask(self, question: _Question, messages: list[Any]) -> Answer:
        while True:
            settings = self._settings(question)
            try:
                response = self._client.chat.completions.with_raw_response.create(
                    model=self.model, messages=messages, **settings
                )
                body = response.http_response.json()
            except openai.APIError as error:
                # Each turn of the loop leaves out one setting, so there are few.
                if isinstance(error, openai.APIStatusError) and self._adapt(error, settings):
                    continue
                # Without its cause: the server may have quoted the key, and tracebacks get printed.
                raise self._explain(error, question) from None
            except ValueError as error:
                raise RequestFailed(f"the answer is not valid JSON ({error})") from None
            try:
                return self._read(body, question)
            except RequestFailed as failure:
                raise RequestFailed(self._redact(str(failure)), lasting=failure.lasting) from None

    def _settings(self, question: _Question) -> dict[str, Any]:
        limits = question.limits
        settings: dict[str, Any] = {"temperature": question.temperature, self._limit: limits["max_new_tokens"]}
        if limits.get("until"):
            settings["stop"] = list(limits["until"])
        if "top_p" in limits:
            settings["top_p"] = limits["top_p"]
        if "top_k" in limits:
            settings["extra_body"] = {"top_k": limits["top_k"]}  # no field of OpenAI's; vLLM and SGLang read it
        if question.seed is not None and self._takes_seeds:
            settings["seed"] = question.seed % _SEEDS
        if question.seed is not None and self._takes_logprobs:
            settings["logprobs"] = True
        return settings

    def _read(self, body: object, question: _Question) -> Answer:
        answer = read_answer(body, question.limits.get("until") or ())
        if question.seed is not None and self._takes_logprobs and answer.mean_logprob is None:
            self._say_once(
                "logprobs",
                f"{self.base_url} did not return usable log-probabilities for {question.name!r}; "
                "answers without them are kept, and weigh the same",
            )
        return answer

    # --- what this server takes ---------------------------------------------------------------------------------------

    def _adapt(self, error: openai.APIStatusError, settings: Mapping[str, Any]) -> bool:
        """Whether the server refused a setting that can be spelled differently or left out; later requests do so."""
        if error.status_code not in (400, 403, 422):
            return False
        reason = f"{error.param} {_message(error)}".lower()
        if "max_tokens" in settings and "max_completion_tokens" in reason:
            self._limit = "max_completion_tokens"
            return True
        if "logprobs" in settings and "logprob" in reason:
            self._takes_logprobs = False
            self._say_once("logprobs", f"{self.base_url} refuses log-probabilities: {self._redact(_message(error))}")
            return True
        if "seed" in settings and re.search(r"\bseed\b", reason):
            self._takes_seeds = False
            self._say_once("seeds", f"{self.base_url} takes no seeds: a draw that is made again may differ")
            return True
        return False

    def _explain(self, error: openai.APIError, question: _Question) -> Exception:
        """A `RequestFailed` where another try may help, else the `HedgeError` that says what to do."""
        if isinstance(error, openai.APITimeoutError):
            return RequestFailed(f"no answer within {self.timeout:g} s", unreachable=True)
        if isinstance(error, openai.APIConnectionError):
            return RequestFailed(f"no connection ({self._redact(str(error.__cause__ or error))})", unreachable=True)
        reason = self._redact(_message(error))
        if not isinstance(error, openai.APIStatusError):
            return RequestFailed(reason)
        status = error.status_code
        if error.code == "insufficient_quota":
            return HedgeError(f"{self.base_url}: the account has no credit left ({reason})")
        if status in (408, 409, 425, 429) or status >= 500:
            wanted = _retry_after(error.response.headers.get("retry-after"))
            return RequestFailed(f"status {status}: {reason}", retry_after=wanted)
        if status in (401, 403):
            return HedgeError(
                f"{self.base_url} refuses the API key ({status}: {reason}). Set OPENAI_API_KEY to one that may use "
                f"{self.model!r}"
            )
        if status == 404:
            return self._not_found(reason)
        return HedgeError(f"{self.base_url} refuses the request for {question.name!r} ({status}: {reason})")

    def _not_found(self, reason: str) -> HedgeError:
        try:
            served = [str(model.id) for model in self._client.models.list().data]
        except Exception:  # listing is a courtesy that servers may fail to do in any way
            served = []
        if served and self.model not in served:
            nearest = difflib.get_close_matches(self.model, served, n=20, cutoff=0.0)
            return unknown(f"model of {self.base_url}", self.model, nearest)
        return HedgeError(
            f"{self.base_url} knows no model {self.model!r}, or is no base URL, which usually ends in /v1 "
            f"(404: {reason})"
        )

    def _redact(self, text: str) -> str:
        key = self._client.api_key
        return text if key == _NO_KEY or len(key) < 4 else text.replace(key, "[api_key]")

    def _say_once(self, topic: str, message: str) -> None:
        with self._lock:
            if topic in self._said:
                return
            self._said.add(topic)
        logger.warning("{}", message)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _encode(self, messages: list[dict[str, Any]]) -> list[Any]:
        return [{"role": message["role"], "content": self._content(message["content"])} for message in messages]

    def _content(self, content: Any) -> Any:
        if isinstance(content, str):
            return content
        if all(part["type"] == "text" for part in content):
            return "\n".join(part["text"] for part in content)  # text-only servers know no parts
        return [self._part(part) for part in content]

    def _part(self, part: Mapping[str, Any]) -> dict[str, Any]:
        if part["type"] == "text":
            return {"type": "text", "text": part["text"]}
        if part["type"] != "image":
            raise HedgeError(f"hedge_openai shows text and images; this task has {part['type']}")
        return {"type": "image_url", "image_url": {"url": self._image_url(part["url"])}}

    def _image_url(self, image: Any) -> str:
        """A PNG data URL: lossless, so that the noise of a noisy image arrives as it was drawn."""
        if isinstance(image, str) and image.startswith(("http://", "https://", "data:")):
            return image
        picture = to_rgb8(image if isinstance(image, Image.Image) else Image.open(image))
        if self.max_image_side is not None:
            picture.thumbnail((self.max_image_side, self.max_image_side), Image.Resampling.LANCZOS)
        content = io.BytesIO()
        picture.save(content, format="PNG", compress_level=3)  # the default takes twice as long to save a fifth
        return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


def _as_question(draw: DrawRequest) -> _Question:
    request = draw.request
    return _Question(request.id, draw.messages, draw.draw.temperature, request.plan.limits(), draw.draw.seed)


# --- small things -----------------------------------------------------------------------------------------------------


def _error_of(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, in either of its two forms; None where there is no sense in it."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), _LONGEST_RETRY_AFTER)


def _message(error: openai.APIError) -> str:
    body = error.body
    found = body.get("message") if isinstance(body, Mapping) else None
    return shorten(found if isinstance(found, str) else error.message)


def _texts(value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else list(value or [])  # type: ignore[call-overload]
    return tuple(text for text in texts if text)


def _check_url(value: object) -> str:
    url = str(value).strip().rstrip("/")
    if "@" in url or "?" in url or "#" in url:  # not quoted: it may hold a password
        raise ConfigError("base_url: leave out user, password and query; a key belongs into OPENAI_API_KEY")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or any(character.isspace() for character in url):
        raise ConfigError(f"base_url: expected something like http://localhost:8000/v1, got {url!r}")
    if url.endswith("/completions"):
        raise ConfigError(f"base_url: leave out the end of {url!r}, from /chat or /completions on")
    return url


def _check_key(value: object) -> str:
    key = str(value or os.environ.get("OPENAI_API_KEY") or _NO_KEY).strip()
    # An HTTP library would quote the key in its error.
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("api_key: there are characters in it that no key has, such as blanks or line breaks")
    return key
