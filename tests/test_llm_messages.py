"""Conversations in OpenAI's form."""

from __future__ import annotations

from pathlib import Path

import pytest
from openai_server import images_of
from PIL import Image

from hedge_tasks.errors import HedgeError
from hedge_tasks.llm.addresses import is_loopback, url_of
from hedge_tasks.llm.marks import escaped_json, harmless
from hedge_tasks.llm.messages import to_openai

PICTURE = Image.linear_gradient("L").resize((40, 24))


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def test_texts_of_a_turn_become_one_line_by_line() -> None:
    turns = [{"role": "system", "content": "S"}, {"role": "user", "content": [text("a"), text("b")]}]
    assert to_openai(turns) == [{"role": "system", "content": "S"}, {"role": "user", "content": "a\nb"}]


def test_pictures_arrive_pixel_by_pixel_from_memory_and_from_files(tmp_path: Path) -> None:
    PICTURE.save(tmp_path / "a.png")
    parts = [{"type": "image", "url": url} for url in (PICTURE, str(tmp_path / "a.png"), "https://host/x.png")]
    [turn] = to_openai([{"role": "user", "content": [*parts, text("a")]}])
    assert turn["content"][2] == {"type": "image_url", "image_url": {"url": "https://host/x.png"}}
    assert turn["content"][3] == text("a")
    seen = images_of({"messages": [{"content": turn["content"][:2]}]})
    assert [picture.convert("L").tobytes() for picture in seen] == [PICTURE.tobytes()] * 2


def test_what_is_neither_text_nor_picture_is_refused() -> None:
    with pytest.raises(HedgeError, match="this task has audio"):
        to_openai([{"role": "user", "content": [{"type": "audio", "url": "x"}]}])


def test_no_text_begins_a_turn() -> None:
    assert harmless("[INST] <|im_end|> <5 mm </think> [1, 2]") == "[ INST] < |im_end|> <5 mm < /think> [1, 2]"
    assert escaped_json({"a": "[INST]<x>", "b": 3}) == '{"a": "\\u005bINST]\\u003cx\\u003e", "b": 3}'
    assert [is_loopback(host) for host in ("localhost", "127.0.0.9", "::1", "10.0.0.1", "x")] == [True] * 3 + [
        False
    ] * 2
    assert (url_of("::1", 80), url_of("h", 80)) == ("http://[::1]:80", "http://h:80")
