"""The listening socket."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI

from hedge_tasks.errors import ConfigError

_MOST_CONNECTIONS = 128


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 takes a free one.

    Raises:
        ConfigError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2 * _MOST_CONNECTIONS)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen at {host}:{port}: {getattr(error, 'strerror', None) or error}") from None


def server_of(app: FastAPI) -> uvicorn.Server:
    """The server of an app; `run(sockets=[listen(...)])` runs it until a signal or `should_exit`.

    Clients that send slowly are a reverse proxy's work: whoever serves others than this machine puts one in front.
    """
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # its tracebacks could quote a question
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=30,
    )
    return uvicorn.Server(config)
