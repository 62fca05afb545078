"""The pages of a folder over HTTP: to this machine alone, unless another host is chosen, and then with a key."""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from loguru import logger

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.llm.addresses import is_loopback, url_of
from hedge_tasks.report.live.site import Site

COOKIE = "hedge-view"
_SECONDS = 30
_LONGEST_PATH = 200


class ViewServer(ThreadingHTTPServer):
    """Serves a `Site`. Nothing is read from disk by the name that a browser sends.

    Args:
        site: makes the pages.
        host, port: where to listen; port 0 takes a free one.

    Attributes:
        key: what a browser must know; None where only programs of this machine get through.

    Raises:
        ConfigError: the address cannot be listened on.
    """

    daemon_threads = True

    def __init__(self, site: Site, host: str, port: int) -> None:
        self.site, self.host = site, host
        self.key = None if is_loopback(host) else secrets.token_urlsafe(16)
        if ":" in host:
            import socket

            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}") from None

    @property
    def url(self) -> str:
        """Return what to open, with the key where there is one."""
        address = url_of(self.host, self.server_address[1])
        return f"{address}/" if self.key is None else f"{address}/?key={self.key}"


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    timeout = _SECONDS  # of a connection that sends nothing
    server_version, sys_version = "hedge-view", ""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is logged: addresses may have the key in them."""

    def _answer(self, *, body: bool) -> None:
        try:
            parts, ours = urlsplit(self.path[:_LONGEST_PATH]), self._host_is_ours()
        except ValueError:
            return self._send(HTTPStatus.BAD_REQUEST, "This is no address.", body=body)
        if not ours:
            return self._send(
                HTTPStatus.MISDIRECTED_REQUEST, "This server answers to its own address alone.", body=body
            )
        if self.server.key is not None:
            query_key = parse_qs(parts.query).get("key", [""])[-1]
            if self._key_matches(query_key):
                return self._send(HTTPStatus.SEE_OTHER, "", body=body, Location=parts.path or "/", cookie=True)
            if not self._key_matches(self._cookie()):
                return self._send(HTTPStatus.FORBIDDEN, "Open the address that was printed.", body=body)
        try:
            page = self.server.site.page(parts.path)
        except HedgeError as error:
            return self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), body=body)
        except Exception as error:  # a page that fails must not end the watching of a run
            logger.exception("{} cannot be shown", parts.path)
            return self._send(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}, see the log of the server", body=body
            )
        if page is None:
            return self._send(HTTPStatus.NOT_FOUND, "There is no such page.", body=body)
        return self._send(HTTPStatus.OK, page, body=body, kind="text/html")

    def _host_is_ours(self) -> bool:
        """Return a page elsewhere may have a name of its own lead to this machine; its requests carry that name."""
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        return self.server.key is not None or is_loopback(host)

    def _cookie(self) -> str:
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return cookie.value if cookie is not None else ""

    def _key_matches(self, key: str) -> bool:
        return self.server.key is not None and hmac.compare_digest(key.encode(), self.server.key.encode())

    def _send(
        self, status: HTTPStatus, text: str, *, body: bool, kind: str = "text/plain", cookie: bool = False, **head: str
    ) -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **head}.items():
            self.send_header(name, value)
        if cookie:
            self.send_header("Set-Cookie", f"{COOKIE}={self.server.key}; HttpOnly; SameSite=Strict; Path=/")
        self.end_headers()
        if body:
            with suppress(ConnectionError):  # whoever asked has gone on to another page
                self.wfile.write(content)
