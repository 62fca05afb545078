"""A local server that speaks the little of OpenAI's chat API that adapters use, and fails in the ways real ones do."""

from __future__ import annotations

import base64
import io
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from PIL import Image


@dataclass(frozen=True)
class Response:
    """What goes back to the client.

    Attributes:
        body: as JSON unless it is bytes already.
        pause: seconds before anything goes back; a stopping server does not wait for it.
        hang_up: close the connection without a word.
        missing: so many bytes of the announced content are never sent.
        trickle: seconds between one byte and the next.
        endless_headers: the headers come byte by byte as well, and never end.
    """

    body: Mapping[str, Any] | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pause: float = 0.0
    hang_up: bool = False
    missing: int = 0
    trickle: float = 0.0
    endless_headers: bool = False


Reply = Callable[[dict[str, Any]], "str | Response"]
"""Request body in, answer text out. An exception becomes a status 500."""


class Script:
    """A server's behaviour: its replies in their order, the last one for ever."""

    def __init__(self, *replies: Any) -> None:
        self._replies = list(replies)
        self._lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> str | Response:
        with self._lock:
            self.bodies.append(body)
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(reply, Exception):
            raise reply
        reply = reply(body) if callable(reply) else reply
        return reply if isinstance(reply, (str, Response)) else Response(reply)


@contextmanager
def serve(  # noqa: C901
    reply: Reply,
    *,
    models: Sequence[str] = (),
    key: str | None = None,
    root: str | None = None,
    owner: str = "me",
    port: int = 0,
    certificate: tuple[Path, Path] | None = None,
) -> Iterator[str]:
    """Serve on a local port; yields the base URL.

    Args:
        models: listed at /models; any other model is a 404. Without any, all are taken and none is listed.
        root: what the models listed are made of, as vLLM tells it.
        owner: whose they are, by which engines give themselves away.
        port: 0 takes a free one.
        key: what a request must bring; any other one is quoted in a 401, as careless servers do.
        certificate: and its key; the server speaks TLS.
    """
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            about = {"object": "model", "root": root, "owned_by": owner}
            listed = {"object": "list", "data": [{"id": name, **about} for name in models]}
            self._send(Response(listed) if models and self.path.endswith("/models") else error(404, "not found"))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            brought = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if key is not None and brought != key:
                self._send(error(401, f"Incorrect API key provided: {brought}"))
            elif models and body["model"] not in models:
                self._send(error(404, f"The model `{body['model']}` does not exist."))
            else:
                self._send(self._reply(body))

        def _reply(self, body: dict[str, Any]) -> Response:
            try:
                answer = reply(body)
            except Exception as failure:
                return error(500, str(failure))
            return Response(completion(answer)) if isinstance(answer, str) else answer

        def _send(self, response: Response) -> None:
            stopping.wait(response.pause)
            if response.hang_up:
                return
            content = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
            if response.endless_headers:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not stopping.wait(response.trickle):
                    self.wfile.write(b"a")
                    self.wfile.flush()
                return
            self.send_response(response.status)
            for name, value in {"Content-Type": "application/json", **response.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if not response.trickle:
                self.wfile.write(content[: len(content) - response.missing])
                return
            for byte in content:
                if stopping.wait(response.trickle):
                    return
                self.wfile.write(bytes([byte]))
                self.wfile.flush()

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        # With the usual 5, connections of a dozen threads are dropped and made again after seconds.
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away in the meantime is part of the test."""

    server = Server(("127.0.0.1", port), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    # A short poll: with the usual half second every test would take as long to stop its server.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()


def error(status: int, message: str, **fields: Any) -> Response:
    return Response({"error": {"message": message, "type": "error", "param": None, "code": None, **fields}}, status)


def rate_limited(retry_after: str | None = None) -> Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Response({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, 429, headers)


def completion(
    text: str | None,
    tokens: Sequence[tuple[str, float]] | None = None,
    *,
    finish_reason: str = "stop",
    **message: Any,
) -> dict[str, Any]:
    """A chat completion; `tokens` are (text, log-probability) pairs."""
    content = [
        {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": []}
        for token, logprob in tokens or ()
    ]
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text, **message},
        "logprobs": None if tokens is None else {"content": content},
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "local",
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def images_of(body: dict[str, Any]) -> list[Image.Image]:
    """The pictures of a request, decoded from their data URLs."""
    parts = [
        part for message in body["messages"] if isinstance(message["content"], list) for part in message["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition("base64,")[2]))) for url in urls]


def texts_of(body: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in body["messages"]]
    return [
        text
        for content in contents
        for text in ([content] if isinstance(content, str) else [p["text"] for p in content if p["type"] == "text"])
    ]
