"""Requests to a server as an engine sees them, without any client's ideas, and what came back."""

from __future__ import annotations

import base64
import io
import json
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

from engines.servers import Server

QUESTION = "where is the lesion?"
_PATIENCE_S = 300

SAMPLED = {"generation_config": json.dumps({"do_sample": True, "top_k": 0, "eos_token_id": 2, "pad_token_id": 0})}
"""What makes `transformers serve` sample: it is greedy otherwise. The text replaces the model's whole configuration."""

NEUTRAL: dict[str, dict[str, Any]] = {
    "vllm": {"top_p": 1.0, "top_k": -1, "min_p": 0.0},
    "vllm_greedy": {"top_p": 1.0, "top_k": -1, "min_p": 0.0},
    "llama_cpp": {"top_p": 1.0, "top_k": -1, "min_p": 0.0},
    "llama_cpp_greedy": {"top_p": 1.0, "top_k": -1, "min_p": 0.0},
    "transformers_serve": SAMPLED,
}
"""Fields with which an engine samples from the model's own distribution."""


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        body: parsed JSON, or the text where it is none.
    """

    status: int
    body: Any

    @property
    def choice(self) -> dict[str, Any]:
        """The first choice of a completion."""
        assert self.status == 200, (self.status, self.body)
        return self.body["choices"][0]

    @property
    def text(self) -> str:
        return self.choice["message"]["content"]

    @property
    def tokens(self) -> list[tuple[str, float]]:
        """Tokens and their log-probabilities, the end token among them."""
        return [(entry["token"], entry["logprob"]) for entry in self.choice["logprobs"]["content"]]


def picture(shade: int = 0) -> Image.Image:
    """A bright disc in the upper left corner; another `shade` is another picture."""
    drawn = Image.new("RGB", (64, 64), (20, 20, shade))
    ImageDraw.Draw(drawn).ellipse((8, 8, 28, 28), fill="white")
    return drawn


def data_url(image: Image.Image) -> str:
    content = io.BytesIO()
    image.save(content, "PNG")
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


def messages(text: str = QUESTION, url: str | None = None) -> list[dict[str, Any]]:
    """One user turn: a picture (of `picture` by default; an empty `url`: none) and a text."""
    url = data_url(picture()) if url is None else url
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}}] if url else []
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]


def ask(server: Server, **fields: Any) -> Reply:
    """One chat completion; `fields` are added to a short question at temperature 1, or replace its own."""
    body = {"model": server.model, "messages": messages(), "max_tokens": 16, "temperature": 1.0, **fields}
    return send(f"{server.url}/chat/completions", body)


def texts(server: Server, seeds: Sequence[int] = range(12), **fields: Any) -> list[str]:
    """The answers of these seeds, one request after the other."""
    return [ask(server, seed=seed, **fields).text for seed in seeds]


def send(url: str, body: Mapping[str, Any] | None = None) -> Reply:
    """POST `body`, or GET where there is none."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as response:
            return _reply(response.status, response)
    except urllib.error.HTTPError as error:
        return _reply(error.code, error)


def _reply(status: int, response: Any) -> Reply:
    content = response.read().decode("utf-8", "replace")
    is_json = response.headers.get_content_type() == "application/json"
    return Reply(status, json.loads(content) if is_json else content)
