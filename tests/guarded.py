"""A policy, a scripted model to ask under it, and the proxy in front of that on a real socket."""

from __future__ import annotations

import json
import random
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from openai_server import texts_of
from PIL import Image
from requested import FakeModel
from test_guard import POLICY

from hedge_tasks.data.answers import Answer
from hedge_tasks.guard import Guard
from hedge_tasks.guard.policy import Circumstances, Policy
from hedge_tasks.guard.proxy.app import build_app
from hedge_tasks.guard.proxy.server import listen, server_of
from hedge_tasks.guard.proxy.settings import ProxySettings
from hedge_tasks.llm.messages import to_openai
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.requests import DrawRequest

PICTURE = Image.new("RGB", (8, 8), "white")
PROMPT = {"name": "test", "user": "<image>Short answer: {question}", "system": None}
SERVED = "local"


def policy(threshold: float = 0.3, detector: str = "radflag", n: int = 10, **sampling: Any) -> Policy:
    """A policy for a model `m`."""
    plan = SamplingPlan(**{"n": n, "n_noisy": n, "image_check": 3, **sampling})
    circumstances = Circumstances(model="m", pictured=True, sampling=plan.settings(), prompt=PROMPT)
    return POLICY.replaced(detector=detector, threshold=threshold, circumstances=circumstances)


def of_server(found: Policy) -> Policy:
    """The same for the model of a server."""
    return found.replaced(circumstances=found.circumstances.replaced(model=f"{SERVED} (hedge_openai)"))


def answer(question: str, seed: int, temperature: float) -> str:
    """ "a", or with the probability that the question is something else, by the seed of the draw."""
    chance = random.Random(seed)
    other = temperature > 0.5 and chance.random() < float(question)
    return chance.choice("bcd") if other else "a"


class Model(FakeModel):
    """The scripted model as an adapter, or one that always says the same."""

    def __init__(self, said: Any = None) -> None:
        super().__init__(lambda draw: said or _drawn(draw))


def _drawn(draw: DrawRequest) -> Answer:
    assert draw.images()[0].size == (8, 8)
    text = answer(draw.request.question, draw.draw.seed, draw.draw.temperature)
    return Answer(text, -0.1 if draw.draw.condition == "baseline" else -1.0, 1)


def reply(body: Mapping[str, Any]) -> str:
    """What the scripted model says behind a server."""
    question = texts_of(dict(body))[-1].removeprefix("Short answer: ")
    return answer(question, body.get("seed", 0), body["temperature"])


@contextmanager
def proxied(guard: Guard, settings: ProxySettings | None = None) -> Iterator[str]:
    """The proxy on a free local port; yields its base URL."""
    server = server_of(build_app(guard, settings))
    with guard, listen("127.0.0.1", 0) as found:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{found.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


def chat_body(question: str = "0.0", **fields: Any) -> dict[str, Any]:
    """A request with a picture."""
    content = [{"type": "image", "url": PICTURE}, {"type": "text", "text": question}]
    return {"model": SERVED, "messages": to_openai([{"role": "user", "content": content}]), **fields}


def post(url: str, body: Any, path: str = "chat/completions", **headers: str) -> tuple[int, Any]:
    """Status and parsed body (or the text, where it is no JSON) of a POST, by default to the chat's path."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return _sent(urllib.request.Request(f"{url}/v1/{path}", content, headers))


def get(url: str, **headers: str) -> tuple[int, Any]:
    return _sent(urllib.request.Request(url, headers=headers))


def _sent(request: urllib.request.Request) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            status, content = response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        status, content = error.code, error.read().decode()
    try:
        return status, json.loads(content)
    except ValueError:
        return status, content
