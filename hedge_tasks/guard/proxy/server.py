"""The listening socket, with bounds that hold before a request has become one."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from hedge_tasks.errors import ConfigError

HEADER_SECONDS = 10.0
"""In which the head of a request must have arrived."""

_LARGEST_HEAD = 32 << 10
_MOST_CONNECTIONS = 512
_BACKLOG = 256
_KEEP_ALIVE_S = 5
_LAST_REQUESTS_S = 30


class PromptHeads(H11Protocol):
    """HTTP, whose requests must begin in time: a byte a minute would hold a connection for hours."""

    head_seconds = HEADER_SECONDS
    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._due is None:
            self._due = self.loop.call_later(self.head_seconds, self._too_late)

    def _too_late(self) -> None:
        self._due = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()

    def _forget(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 takes a free one.

    Raises:
        ConfigError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)  # from now on nobody is turned away: they wait for the server
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigError(f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    return listening


def server_of(app: FastAPI) -> uvicorn.Server:
    """The server of an app; `run(sockets=[listen(...)])` runs it until a signal or `should_exit`."""
    config = uvicorn.Config(
        app,
        http=PromptHeads,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # its tracebacks could quote a question
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        h11_max_incomplete_event_size=_LARGEST_HEAD,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_LAST_REQUESTS_S,
    )
    return uvicorn.Server(config)
