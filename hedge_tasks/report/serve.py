"""`hedge report --serve`: the report of a folder to this machine, made on request, and again when its runs change."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from loguru import logger

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.runs.run_files import run_paths

HOST = "127.0.0.1"


class ReportServer(ThreadingHTTPServer):
    """Serves one page. Nothing is read from disk by the name that a browser sends.

    Args:
        folder: whose run files say whether the page is made again.
        build: makes the page.
        port: where to listen, on this machine alone; 0 takes a free one.

    Raises:
        ConfigError: the port cannot be listened on.
    """

    daemon_threads = True

    def __init__(self, folder: Path, build: Callable[[], str], port: int) -> None:
        self._folder, self._build = folder, build
        self._cached: tuple[object, str] = (None, "")
        self._lock = Lock()  # two requests at once would make it twice
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"cannot listen at {HOST}:{port}: {getattr(error, 'strerror', None) or error}") from None

    @property
    def url(self) -> str:
        """Address to open."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def page(self) -> str:
        """Return the page of the run files as they are now.

        Raises:
            HedgeError: it cannot be made; the message is fit for a reader.
        """
        with self._lock:
            runs = run_paths(self._folder)[0].parent
            # Audits stand beside the runs, and lmms-eval's results beside their folder.
            beside = sorted({*runs.iterdir(), *runs.parent.glob("*.json"), *runs.parent.glob("*/*.json")})
            state = [(file, changed) for file in beside if (changed := _changed(file)) is not None]
            if self._cached[0] != state:
                self._cached = (state, self._build())
            return self._cached[1]


def _changed(file: Path) -> int | None:
    """When a file was changed, in nanoseconds; None where it has just been taken away."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


class _Handler(BaseHTTPRequestHandler):
    server: ReportServer
    timeout = 30  # seconds of a connection that sends nothing

    def do_GET(self) -> None:
        # A page elsewhere may have a name of its own lead to this machine; its requests carry that name.
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        except ValueError:
            host = ""
        if host not in {HOST, "localhost"} or self.path != "/":
            return self._send(HTTPStatus.NOT_FOUND, "There is no such page.", "text/plain")
        try:
            self._send(HTTPStatus.OK, self.server.page(), "text/html")
        except HedgeError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), "text/plain")

    def log_message(self, format: str, *arguments: object) -> None:
        logger.debug(format, *arguments)

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)
