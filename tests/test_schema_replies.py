"""Replies that are kept to a JSON schema as they are written: by a mask of tokens here, by servers elsewhere."""

from __future__ import annotations

import json
import random
import sys
import threading
from types import SimpleNamespace
from typing import Any

import fastjsonschema
import pytest
from openai_server import Response, Script, serve
from PIL import Image

from hedge_tasks.data.answers import Draw
from hedge_tasks.llm.log import Reply
from hedge_tasks.llm.models import LocalModel, Request
from hedge_tasks.models.by_text import adapter_model
from hedge_tasks.models.tiny import vlm_path

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
    request = Request(lambda: ASKED, max_tokens=60, temperature=1.0, schema=schema or {}, seed=seed)
    reply = writer.reply(request, threading.Event())
    assert isinstance(reply, Reply)
    return reply.text


def test_every_way_through_the_mask_ends_in_json_of_the_schema() -> None:
    pytest.importorskip("llguidance")
    from transformers import AutoTokenizer

    from hedge_tasks.models.schema_tokens import SchemaContinuations

    tokenizer = AutoTokenizer.from_pretrained(vlm_path())
    end = tokenizer.eos_token_id
    kept = SchemaContinuations(tokenizer, SCHEMA, {end}, len(tokenizer))
    check = fastjsonschema.compile(SCHEMA)
    said = set()
    for seed in range(30):
        rng, tokens = random.Random(seed), list[int]()
        while not tokens or tokens[-1] != end:
            tokens.append(int(rng.choice(kept.after(tokens).tolist())))
        assert kept.after([*tokens, end, end]).tolist() == [end]  # a row that waits for others of its batch
        text = tokenizer.decode(tokens, skip_special_tokens=True)
        check(json.loads(text))
        said.add(text)
    assert len(said) >= 5
    # What was said before does not matter.
    assert kept.after([]).tolist() == SchemaContinuations(tokenizer, SCHEMA, {end}, len(tokenizer)).after([]).tolist()


@pytest.mark.slow
def test_an_adapter_of_this_process_writes_json_that_it_never_learned() -> None:
    pytest.importorskip("llguidance")
    writer = adapter_model("hedge_tiny")
    assert writer.identity["schema"] == "kept"
    check = fastjsonschema.compile(SCHEMA)
    for seed in range(3):
        check(json.loads(ask(writer, seed)))
    assert ask(writer, 1) == ask(writer, 1)
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(ask(writer, 0, schema=None))


@pytest.mark.slow
def test_without_llguidance_a_reply_is_read_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    writer = adapter_model("hedge_tiny")
    assert "schema" not in writer.identity
    assert ask(writer, 0) == ask(writer, 0, schema=None)


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
    bare._vllm = SimpleNamespace(SamplingParams=lambda **settings: settings)
    monkeypatch.setattr(HedgeVLLM, "sent_decoding", lambda self, limits: {})
    made = bare._sampling_of(Draw("clean", 0, 0.0, 0), {"max_new_tokens": 5}, schema=SCHEMA)
    assert made["structured_outputs"] == {"json": SCHEMA}
    assert "structured_outputs" not in bare._sampling_of(Draw("clean", 0, 0.0, 0), {"max_new_tokens": 5})
