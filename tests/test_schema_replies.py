"""Replies that are kept to a JSON schema as they are written: by a mask of tokens here, by servers elsewhere."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from openai_server import Response, Script, serve
from PIL import Image

from hedge_tasks.data.answers import Draw
from hedge_tasks.llm.log import Reply
from hedge_tasks.llm.models import LocalModel, Request
from hedge_tasks.models.by_text import adapter_model

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdict", "places"],
    "properties": {
        "verdict": {"enum": ["yes", "no"]},
        "places": {"type": "array", "maxItems": 2, "items": {"enum": ["left", "right"]}},
    },
}
ASKED = [{"role": "user", "content": [{"type": "image", "url": Image.new("RGB", (64, 64), "red")},
                                      {"type": "text", "text": "Is there a mass?"}]}]  # fmt: skip


def ask(writer: LocalModel, seed: int, schema: Any = SCHEMA) -> str:
    request = Request(lambda: ASKED, {"max_tokens": 60, "temperature": 1.0, "seed": seed}, schema or {})
    reply = writer.reply(request, threading.Event())
    assert isinstance(reply, Reply)
    return reply.text


def test_a_server_is_asked_for_the_schema_and_may_refuse() -> None:
    def refuse(body: dict[str, Any]) -> str | Response:
        if "response_format" in body:
            return Response({"error": {"message": "response_format is not supported"}}, 400)
        return "words"

    script = Script(lambda body: '{"verdict": "no", "places": []}')
    with serve(script) as url:
        assert ask(adapter_model("hedge_openai", model="tiny", base_url=url), 0)
    form = script.bodies[0]["response_format"]
    assert form["json_schema"]["schema"] == SCHEMA
    with serve(refuse) as url:
        assert ask(adapter_model("hedge_openai", model="tiny", base_url=url, max_retries=0), 0) == "words"


def test_vllm_is_told_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own words for it; the engine itself is tried where there is one."""
    from hedge_tasks.models.hedge_vllm import HedgeVLLM

    parameters = SimpleNamespace(StructuredOutputsParams=lambda **form: form)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)  # type: ignore[arg-type]
    bare: Any = object.__new__(HedgeVLLM)
    bare._thinks = False
    bare._vllm = SimpleNamespace(SamplingParams=lambda **settings: settings)
    monkeypatch.setattr(HedgeVLLM, "sent_decoding", lambda self, limits: {})
    made = bare._sampling_of(Draw("clean", 0, 0.0, 0), {"max_new_tokens": 5}, schema=SCHEMA)
    assert made["structured_outputs"] == {"json": SCHEMA}
    assert "structured_outputs" not in bare._sampling_of(Draw("clean", 0, 0.0, 0), {"max_new_tokens": 5})
