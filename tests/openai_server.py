"""A local server that speaks the little of OpenAI's chat API that lmms-eval's stock adapter uses."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from PIL import Image

Reply = Callable[[dict[str, Any]], str]
"""Request body in, answer text out. An exception becomes a status 500."""


@contextmanager
def serve(reply: Reply) -> Iterator[str]:
    """Serve on a free local port; yields the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, answer = 200, completion(reply(body))
            except Exception as error:
                status, answer = 500, {"error": {"message": str(error)}}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def completion(text: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "local",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
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
