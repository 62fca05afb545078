"""Read a request: the one question in it, where the policy can judge that.

Requests come from strangers. Nothing in them is fetched, run, or handed on as it came: a request is read into a
question, a picture and a seed, and all else is refused by name.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import ConfigDict, Field

from hedge_tasks.data.pictures import TOO_LARGE, image_file_fault
from hedge_tasks.errors import DataError
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.io import outside
from hedge_tasks.io.records import Items, OpenRecord
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Pictures that are read. Others of PIL's formats call programs."""

_WITHOUT_EFFECT = frozenset(
    {"logprobs", "top_logprobs", "metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store"}
    | {"stream_options", "user", "parallel_tool_calls"}
)
"""Fields that change no answer. Log-probabilities are not returned."""


class _Picture(OpenRecord):
    url: str


class _Part(OpenRecord):
    type: Literal["text", "image_url"]
    text: str | None = None
    image_url: str | _Picture | None = None


class _Message(OpenRecord):
    role: Literal["system", "developer", "user"]
    content: str | Items[_Part]

    def texts(self) -> list[str]:
        return [self.content] if isinstance(self.content, str) else [p.text for p in self.content if p.text is not None]

    def addresses(self) -> list[str]:
        pictures = [] if isinstance(self.content, str) else [part.image_url for part in self.content]
        return [p if isinstance(p, str) else p.url for p in pictures if p is not None]


class _Body(OpenRecord):
    """Fields of a request that are read. Its size is bounded before it is read."""

    model_config = ConfigDict(str_max_length=None)

    messages: Annotated[Items[_Message], Field(min_length=1, max_length=200)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    stream: bool | None = None


_READ = frozenset({"model", *_Body.model_fields})


class RefusedRequest(Exception):
    """A request that is not answered.

    Attributes:
        status: of the reply.
        message: for the client.
        param: the field that is wrong, where it is one.
        code: for programs; "cannot_judge" for a sound request that the policy says nothing about.
    """

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str = "invalid") -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code


@dataclass(frozen=True)
class PolicyQuestion:
    """A question that the policy can judge.

    Attributes:
        question: as it is put into the policy's prompt.
        pictures: one at most.
        seed: None where the request does not say.
        stream: whether the reply is to come as events.
    """

    question: str
    pictures: tuple[Image.Image, ...]
    seed: int | None
    stream: bool


def read_request(
    content: bytes, model: str, pictured: bool, prompt: Prompt, plan: SamplingPlan, settings: ProxySettings
) -> PolicyQuestion:
    """Read the body of a request: the question that it asks under the policy's prompt and decoding.

    The model is shown the calibrated prompt around the question.

    Args:
        content: the body.
        model: name of the model that is served.
        pictured: whether the policy is about questions on a picture.
        prompt, plan: the policy's; another system prompt or decoding cannot be judged.
        settings: bounds.

    Raises:
        RefusedRequest: it is none that can be judged here; says which field is wrong and what would be right.
    """
    read = _read_body(content, model, plan)
    system = "\n".join(text for message in read.messages if message.role != "user" for text in message.texts())
    if system and system != (prompt.system or ""):
        raise _cannot_judge("messages", "another system prompt than the calibrated one; leave it out")
    turns = [message for message in read.messages if message.role == "user"]
    addresses = [address for message in read.messages for address in message.addresses()]
    if len(turns) != 1 or len(addresses) != pictured:
        words = "on one picture" if pictured else "without a picture"
        raise _cannot_judge("messages", f"the policy is about single questions {words}")
    texts = turns[0].texts()
    if len(texts) > 1:
        raise _cannot_judge("messages", "the question comes in several parts; send one text")
    if not "".join(texts).strip():
        raise RefusedRequest("messages: there is no question", param="messages")
    pictures = tuple(_picture(address, settings.most_pixels) for address in addresses)
    return PolicyQuestion(texts[0], pictures, read.seed, bool(read.stream))


def _read_body(content: bytes, model: str, plan: SamplingPlan) -> _Body:
    try:
        body = outside.parse_json(content, "the request", constants=False)
        if not isinstance(body, dict):
            raise RefusedRequest("the request is no JSON object")
        _check_fields(body, model, plan)
        return _Body.read(body)
    except DataError as error:
        raise RefusedRequest(str(error), param=re.split(r"\W", str(error), maxsplit=1)[0]) from None


def _cannot_judge(name: str, why: str) -> RefusedRequest:
    return RefusedRequest(f"{name}: the policy cannot judge this: {why}", param=name, code="cannot_judge")


def _check_fields(body: Mapping[str, Any], model: str, plan: SamplingPlan) -> None:
    """Refuse every field that is neither read, nor without effect, nor empty, nor as it was when calibrated."""
    if body.get("model") != model:
        words = f"this guard answers for {model!r} and no other model"
        raise RefusedRequest(words, param="model", code="model_not_found")
    limits = plan.limits()
    calibrated: dict[str, Any] = {"n": 1, "temperature": plan.baseline_temperature, "stop": list(plan.until), **limits}
    calibrated |= dict.fromkeys(("max_tokens", "max_completion_tokens"), plan.max_new_tokens)
    calibrated |= {"top_p": 1} if limits.get("decoding") == "pure" else {}
    for name, value in body.items():
        if name in _READ | _WITHOUT_EFFECT or value in (None, []) or not (value or name in calibrated):
            continue
        stated = [value] if name == "stop" and isinstance(value, str) else value
        if name not in calibrated or stated != calibrated[name]:
            raise _cannot_judge(name if name.isidentifier() else outside.shown(name), "leave it out")


def _picture(url: str, pixels: int) -> Image.Image:
    """The picture of a data URL. No other address is looked at: the guard is nobody's way into a network."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        words = "image_url: send the picture itself (data:image/png;base64,...); addresses are not fetched"
        raise RefusedRequest(words, param="messages")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise RefusedRequest("image_url: not base64", param="messages") from None
    if fault := image_file_fault(content, decode=True, most_pixels=pixels, formats=FORMATS):
        words = f"more than {pixels:,} pixels" if fault == TOO_LARGE else fault
        raise RefusedRequest(f"image_url: {words}", param="messages")
    picture = Image.open(io.BytesIO(content), formats=FORMATS)
    picture.load()
    return picture
