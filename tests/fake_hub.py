"""A local server that takes uploads as the Hugging Face hub does: as much of its API as `push` needs."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_secret_of_the_test"


@dataclass
class FakeHub:
    """What has arrived.

    Attributes:
        created: Bodies of requests that make a repository.
        files: By repository and path what was committed.
        refuse: Status that every commit gets in place of being taken.
    """

    url: str = ""
    created: list[dict[str, object]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    refuse: int | None = None

    def take(self, path: str, body: bytes) -> tuple[int, object]:
        if path == "/api/repos/create":
            self.created.append(json.loads(body))
            made = self.created[-1]
            return 200, {"url": f"{self.url}/datasets/{made['organization']}/{made['name']}"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if "/preupload/" in path:
            named = [file["path"] for file in json.loads(body)["files"]]
            return 200, {"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in named]}
        if "/commit/" in path:
            return self._commit(path, body)
        return 404, {"error": f"nothing at {path}"}

    def _commit(self, path: str, body: bytes) -> tuple[int, object]:
        if self.refuse is not None:
            return self.refuse, {"error": "You have no right to write here"}
        repository = path.removeprefix("/api/").partition("/commit/")[0]
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                self.files[f"{repository}/{entry['value']['path']}"] = base64.b64decode(entry["value"]["content"])
        return 200, {"commitUrl": f"{self.url}/{repository}/commit/0", "commitOid": "0" * 40, "success": True}


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            hub.tokens.add(self.headers.get("Authorization", ""))
            self._send(*hub.take(self.path, body))

        def do_GET(self) -> None:
            self._send(200, {"id": "me/set", "sha": "0" * 40, "siblings": []})

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers["Content-Length"]))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _send(self, status: int, answer: object) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
