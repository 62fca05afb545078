"""Answers with their verdicts, as OpenAI's API has them: whole, or as events."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from hedge_tasks.guard.verdict import GuardVerdict

_FINISHES = {"stop": "stop", "length": "length", "filtered": "content_filter"}
_NOT_SAFE = "The answer was withheld: it is not safe to use ({reason})."


def judged(verdict: GuardVerdict, model: str, *, withhold: bool) -> dict[str, Any]:
    """The reply to a question with a verdict.

    Args:
        model: the name that was asked for.
        withhold: whether an answer that is not accepted is replaced by a refusal.
    """
    hedge = {"judged": True, **verdict.to_dict()}
    del hedge["answer"], hedge["finish"]  # the message and its end, which may be withheld
    if withhold and not verdict.accepted:
        refusal = _NOT_SAFE.format(reason=verdict.reason)
        return _completion(model, refusal, "content_filter", hedge, refusal=refusal)
    finish = _FINISHES.get(verdict.finish or "", "stop")
    return _completion(model, verdict.answer or "", finish, hedge)


def events(reply: Mapping[str, Any]) -> Iterator[bytes]:
    """A whole reply as the events of a stream."""
    [choice] = reply["choices"]
    shared = {name: reply[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    empty = {"index": 0, "delta": {}, "finish_reason": None}
    deltas = [
        {"choices": [{**empty, "delta": {"role": "assistant", "content": choice["message"]["content"]}}]},
        {"choices": [{**empty, "finish_reason": choice["finish_reason"]}], "hedge": reply["hedge"]},
    ]
    for delta in deltas:
        yield b"data: " + json.dumps({**shared, **delta}).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def error(message: str, *, kind: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _completion(
    model: str, text: str, finish: str, hedge: Mapping[str, Any], refusal: str | None = None
) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": refusal}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "hedge": hedge,
    }
