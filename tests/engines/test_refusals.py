"""How each engine refuses: with which status, and where in the body the reason stands. The rest is answered."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from engines.asking import ask, messages
from engines.servers import Server, on

THREE = ("vllm", "llama_cpp", "transformers_serve")
NO_PICTURE = "data:image/png;base64," + base64.b64encode(b"not a picture").decode()

REQUESTS: dict[str, dict[str, Any]] = {
    "temperature is text": {"temperature": "hot"},
    "temperature -1": {"temperature": -1.0},
    "top_p 7": {"top_p": 7.0},
    "max_tokens 0": {"max_tokens": 0},
    "max_tokens beyond the context": {"max_tokens": 100_000},
    "no messages": {"messages": []},
    "prompt beyond the context": {"messages": messages("where " * 3000)},
    "no picture": {"messages": messages(url=NO_PICTURE)},
    "no base64": {"messages": messages(url="data:image/png;base64,!!!!")},
    "wrong model": {"model": "no/such"},
}

# Status, and what of the body holds the reason.
SAID = {
    "vllm": dict.fromkeys(REQUESTS, (400, "error.message")) | {"wrong model": (404, "error.message")},
    "llama_cpp": {
        "temperature is text": (400, "error.message"),
        "prompt beyond the context": (400, "error.message"),
        "no picture": (400, "error.message"),
        "no base64": (400, "error.message"),
    },
    "transformers_serve": {
        "temperature is text": (500, "text"),
        "max_tokens 0": (500, "text"),
        "no messages": (500, "text"),
        "no picture": (500, "text"),
        "no base64": (500, "text"),
        "wrong model": (400, "detail"),
    },
}


@on(*THREE)
@pytest.mark.parametrize("request_name", REQUESTS)
def test_what_is_refused_and_where_the_reason_stands(server: Server, request_name: str) -> None:
    reply = ask(server, **{"max_tokens": 4, **REQUESTS[request_name]})
    status, place = SAID[server.engine].get(request_name, (200, ""))
    assert reply.status == status, reply.body
    if place == "error.message":
        assert reply.body["error"]["message"].strip()
    elif place:
        assert (reply.body["detail"] if place == "detail" else reply.body).strip()
    else:
        assert isinstance(reply.text, str)
