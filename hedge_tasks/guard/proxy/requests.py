"""Read a request: what it asks for, and whether the policy can judge that.

Requests come from strangers. Nothing in them is fetched, run, or handed on as it came: a request is read into texts,
pictures and four numbers, and all else is refused by name.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import ConfigDict, Field

from hedge_tasks.data.pictures import TOO_LARGE, image_file_fault
from hedge_tasks.errors import DataError
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.io import outside
from hedge_tasks.io.records import Items, OpenRecord
from hedge_tasks.perturb import Wording
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import QUESTION, Prompt

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
"""Pictures that are read. Others of PIL's formats call programs."""

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_LARGEST_SEED = 2**63

_WITHOUT_EFFECT = frozenset(
    {"logprobs", "top_logprobs", "metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store"}
    | {"stream_options", "user"}
)
"""Fields that change no answer. Log-probabilities are not returned."""

_ONLY: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "response_format": ({"type": "text"},),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "best_of": (1,),
    "echo": (False,),
}
"""Fields that would make another thing of the answer: values, besides null, that do not."""

_NEUTRAL: Mapping[str, tuple[float, ...]] = {
    "top_p": (1,),
    "top_k": (-1, 0),
    "min_p": (0,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
}
"""Values of a decoding that is pure sampling."""

_READ = ("model", "messages", "temperature", "max_tokens", "max_completion_tokens", "stop", "seed", "stream")


class _Picture(OpenRecord):
    url: str


class _Part(OpenRecord):
    type: Literal["text", "image_url"]
    text: str | None = None
    image_url: str | _Picture | None = None


class _Message(OpenRecord):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Items[_Part]
    tool_calls: Any = None
    function_call: Any = None


class _Body(OpenRecord):
    """Fields of a request that are read. Its size is bounded before it is read."""

    model_config = ConfigDict(str_max_length=None)

    messages: Annotated[Items[_Message], Field(min_length=1, max_length=200)]
    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    max_tokens: Annotated[int, Field(gt=0, lt=10**9)] | None = None
    max_completion_tokens: Annotated[int, Field(gt=0, lt=10**9)] | None = None
    seed: Annotated[int, Field(ge=0, lt=_LARGEST_SEED)] | None = None
    stream: bool | None = None


class RefusedRequest(Exception):
    """A request that is not answered.

    Attributes:
        status: of the reply.
        message: for the client.
        param: the field that is wrong, where it is one.
        code: for programs.
    """

    def __init__(self, message: str, *, status: int = 400, param: str | None = None, code: str = "invalid") -> None:
        super().__init__(message)
        self.message, self.status, self.param, self.code = message, status, param, code


class CannotJudge(RefusedRequest):
    """A sound request that the policy says nothing about."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(f"the policy cannot judge this: {'; '.join(reasons)}", code="cannot_judge")
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class Turn:
    """Parts of a message: texts and pictures in their order."""

    role: str
    parts: tuple[str | Image.Image, ...]

    @property
    def texts(self) -> list[str]:
        return [part for part in self.parts if isinstance(part, str)]

    @property
    def pictures(self) -> list[Image.Image]:
        return [part for part in self.parts if not isinstance(part, str)]


@dataclass(frozen=True)
class ChatRequest:
    """A request as far as it is listened to.

    Attributes:
        turns: of the conversation.
        temperature, max_tokens, seed: None where it does not say.
        stream: whether the reply is to come as events.
    """

    turns: tuple[Turn, ...]
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    stream: bool

    def conversation(self) -> list[dict[str, Any]]:
        """In lmms-eval's form."""
        return [{"role": turn.role, "content": [_lmms_part(part) for part in turn.parts]} for turn in self.turns]


@dataclass(frozen=True)
class PolicyQuestion:
    """A question that the policy can judge."""

    question: str
    pictures: tuple[Image.Image, ...]


def read_request(content: bytes, model: str, plan: SamplingPlan, settings: ProxySettings) -> ChatRequest:
    """Read the body of a request.

    Args:
        content: the body.
        model: name of the model that is served.
        plan: the policy's; settings of decoding that can neither be judged nor passed on are compared with it.
        settings: bounds.

    Raises:
        Refused: it is none that is answered here; says which field is wrong and what would be right.
    """
    try:
        body = outside.parse_json(content, "the request", constants=False)
    except DataError as error:
        raise RefusedRequest(str(error)) from None
    if not isinstance(body, dict):
        raise RefusedRequest("the request is no JSON object")
    _check_fields(body)
    if body.get("model") != model:
        raise RefusedRequest(
            f"this guard answers for {model!r} and no other model", param="model", code="model_not_found"
        )
    _check_decoding(body, plan)
    try:
        read = _Body.read(body)
    except DataError as error:
        raise RefusedRequest(str(error), param=re.split(r"\W", str(error), maxsplit=1)[0]) from None
    return ChatRequest(
        turns=_turns(read.messages, settings),
        temperature=read.temperature,
        max_tokens=read.max_completion_tokens or read.max_tokens,
        seed=read.seed,
        stream=bool(read.stream),
    )


def question_in(request: ChatRequest, prompt: Prompt, plan: SamplingPlan) -> PolicyQuestion:
    """The question that a request asks under the policy's prompt and decoding.

    A text that is the policy's prompt around a question is that question, as evaluations send it; any other text is the
    question itself. Either way the model is shown the calibrated prompt.

    Raises:
        CannotJudge: the policy is not about such requests.
        Refused: there is no question in it.
    """
    reasons = _other_decoding(request, plan)
    system = "\n".join(text for turn in request.turns if turn.role == "system" for text in turn.texts)
    if system and system != (prompt.system or ""):
        reasons.append("messages: another system prompt than the calibrated one")
    turns = [turn for turn in request.turns if turn.role != "system"]
    if len(turns) != 1 or turns[0].role != "user":
        reasons.append("messages: a conversation of several turns; the policy is about single questions")
        raise CannotJudge(reasons)
    if len(turns[0].pictures) > 1:
        reasons.append(f"messages: {len(turns[0].pictures)} pictures; the policy is about questions on one")
    question = _question(turns[0].texts, prompt)
    if question is None:
        reasons.append("messages: texts in several parts that are not the calibrated prompt")
    if reasons or question is None:
        raise CannotJudge(reasons)
    if not question.strip():
        raise RefusedRequest("messages: there is no question", param="messages")
    return PolicyQuestion(question, tuple(turns[0].pictures))


def _question(texts: Sequence[str], prompt: Prompt) -> str | None:
    """The question in the texts of a turn; None where they are neither a question nor the prompt around one."""
    *heads, tail = (part["text"] for part in prompt.messages(Wording(QUESTION), [])[-1]["content"])
    parts = [*heads, tail]
    if len(texts) == len(parts):
        for i, part in enumerate(parts):
            before, mark, after = part.partition(QUESTION)
            if mark and texts[i].startswith(before) and texts[i].endswith(after):
                question = texts[i][len(before) : len(texts[i]) - len(after)]
                # Whatever the template is like: this question must give these very texts.
                rendered = [p["text"] for p in prompt.messages(Wording(question), [])[-1]["content"]]
                if len(texts[i]) >= len(before) + len(after) and rendered == list(texts):
                    return question
    return texts[0] if len(texts) == 1 else ("" if not texts else None)


def _other_decoding(request: ChatRequest, plan: SamplingPlan) -> list[str]:
    reasons = []
    if request.temperature is not None and request.temperature != plan.baseline_temperature:
        ours = f"answers are sampled at {plan.baseline_temperature:g}"
        reasons.append(f"temperature: {request.temperature:g}, and {ours}; leave it out")
    if request.max_tokens is not None and request.max_tokens != plan.max_new_tokens:
        reasons.append(f"max_tokens: {request.max_tokens}, and answers have up to {plan.max_new_tokens}; leave it out")
    return reasons


def _check_fields(body: Mapping[str, Any]) -> None:
    known_fields = {*_READ, *_NEUTRAL, *_ONLY, *_WITHOUT_EFFECT}
    for name, value in body.items():
        if name not in known_fields:
            raise RefusedRequest(f"{outside.shown(name)}: no field that the guard knows", param=name[:100])
        if name in _ONLY and value is not None and value not in _ONLY[name]:
            raise RefusedRequest(
                f"{name}: an answer with that cannot be judged; leave it out", param=name, code="cannot_judge"
            )


def _check_decoding(body: Mapping[str, Any], plan: SamplingPlan) -> None:
    limits = plan.limits()
    pure = limits.get("decoding") == "pure"
    for name, neutral in _NEUTRAL.items():
        value = body.get(name)
        valid = (limits[name],) if name in limits else neutral if pure else ()
        if value is not None and (isinstance(value, bool) or value not in valid):
            raise RefusedRequest(
                f"{name}: another decoding than the calibrated one; leave it out", param=name, code="cannot_judge"
            )
    stop = body.get("stop")
    texts = [stop] if isinstance(stop, str) else stop
    if texts not in (None, [], list(plan.until)):
        raise RefusedRequest(
            "stop: another decoding than the calibrated one; leave it out", param="stop", code="cannot_judge"
        )


def _turns(messages: Sequence[_Message], settings: ProxySettings) -> tuple[Turn, ...]:
    pixels = settings.most_pixels
    turns = []
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if message.tool_calls or message.function_call:
            raise RefusedRequest(f"{where}: calls of tools cannot be judged", param="messages", code="cannot_judge")
        parts: list[str | Image.Image] = [message.content] if isinstance(message.content, str) else []
        for k, part in enumerate(message.content if not isinstance(message.content, str) else ()):
            if part.type == "text" and part.text is not None:
                parts.append(part.text)
            elif part.type == "image_url" and part.image_url is not None:
                url = part.image_url if isinstance(part.image_url, str) else part.image_url.url
                picture = _picture(url, f"{where}.content[{k}].image_url", pixels)
                pixels -= picture.width * picture.height
                parts.append(picture)
            else:
                raise RefusedRequest(f"{where}.content[{k}]: there is no {part.type} in it", param="messages")
        turns.append(Turn(_ROLES[message.role], tuple(parts)))
    return tuple(turns)


def _picture(url: str, where: str, pixels: int) -> Image.Image:
    """The picture of a data URL. No other address is looked at: the guard is nobody's way into a network."""
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        raise RefusedRequest(
            f"{where}: send the picture itself (data:image/png;base64,...); addresses are not fetched", param="messages"
        )
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise RefusedRequest(f"{where}: not base64", param="messages") from None
    if fault := image_file_fault(content, decode=True, most_pixels=max(pixels, 0), formats=FORMATS):
        words = f"more pixels than are taken ({pixels:,} left of the request)" if fault == TOO_LARGE else fault
        raise RefusedRequest(f"{where}: {words}", param="messages")
    picture = Image.open(io.BytesIO(content), formats=FORMATS)
    picture.load()
    return picture


def _lmms_part(part: str | Image.Image) -> dict[str, Any]:
    return {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "url": part}
