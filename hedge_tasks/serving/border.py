"""What may come back from a server: from the host that was asked, in time, and of a size that can be kept.

A reply of 300 MB, a byte a minute, or a redirect that hands the questions to another host are no answers. The bounds
stand below the client library, so that they hold for its error bodies, too; that of time stands at the network
itself, since a server may send its headers byte by byte, too.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import openai

from hedge_tasks.serving.failures import Kind

LARGEST_REPLY = 16 * 2**20
"""Bytes. A chat completion with log-probabilities takes about 100 a token."""


# The library that openai was built on: httpx, or its successor, by version.
_HTTP: Any = importlib.import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])

NOBODY_THERE: tuple[type[Exception], ...] = (_HTTP.ConnectError, _HTTP.ConnectTimeout)
"""Why there was no connection at all; one that breaks off is another matter."""


class BorderCrossed(Exception):
    """A reply is out of bounds; `kind` as for `RequestFailed`."""

    def __init__(self, reason: str, kind: Kind) -> None:
        super().__init__(reason)
        self.kind = kind


class RedirectedAway(Exception):
    """The server sends requests, with their pictures, to another host."""


def bounded(timeout: float, largest: int = LARGEST_REPLY) -> Any:
    """An HTTP client for the OpenAI library that keeps the bounds.

    Args:
        timeout: Seconds for a whole answer, whatever trickles in meanwhile.
        largest: Bytes of a reply. Replies are asked for uncompressed, and others are refused: a megabyte can unpack to
            a gigabyte.
    """
    client = openai.DefaultHttpxClient(headers={"Accept-Encoding": "identity"}, timeout=timeout)
    clock = _Clock(timeout)
    client.event_hooks = {
        "request": [lambda request: _start(request, clock)],
        "response": [lambda response: _check(response, timeout, largest)],
    }
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)  # a proxy may be None: what it would be for goes directly
        if pool is not None:
            pool._network_backend = _TimedNetwork(pool._network_backend, clock)
    return client


class _Clock(threading.local):
    """When the request that this thread is at must be answered. A request is sent and read in one thread."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.deadline = time.monotonic() + timeout

    def left(self, timeout: float | None) -> float:
        """Seconds that a single reading may take."""
        left = max(self.deadline - time.monotonic(), 0.001)  # of 0 a socket would not wait at all
        return left if timeout is None else min(timeout, left)


class _TimedNetwork:
    """The client's network, on which nothing is read after the deadline. Connecting has a timeout of its own."""

    def __init__(self, network: Any, clock: _Clock) -> None:
        self._network, self._clock = network, clock

    def connect_tcp(self, *arguments: Any, **options: Any) -> Any:
        return _TimedStream(self._network.connect_tcp(*arguments, **options), self._clock)

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> Any:
        return _TimedStream(self._network.connect_unix_socket(*arguments, **options), self._clock)

    def sleep(self, seconds: float) -> None:
        self._network.sleep(seconds)


class _TimedStream:
    def __init__(self, stream: Any, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        content: bytes = self._stream.read(max_bytes, self._clock.left(timeout))
        return content

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._clock.left(timeout))

    def start_tls(self, *arguments: Any, **options: Any) -> Any:
        return _TimedStream(self._stream.start_tls(*arguments, **options), self._clock)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _start(request: Any, clock: _Clock) -> None:
    request.extensions["hedge_started"] = time.monotonic()
    clock.deadline = time.monotonic() + clock.timeout


def _check(response: Any, timeout: float, largest: int) -> None:
    request = response.request
    if response.is_redirect and "location" in response.headers:
        target = request.url.join(response.headers["location"])
        if _place(target) != _place(request.url):
            raise RedirectedAway(
                f"the server redirects to another host ({target.host}), which would be told the questions and the "
                "pictures; give that address itself if it is meant"
            )
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise BorderCrossed("the answer is compressed, although that was not asked for", "garbled")
    started = request.extensions.get("hedge_started", time.monotonic())
    response.stream = _Bounded(response.stream, started + timeout, timeout, largest)


def _place(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


class _Bounded(_HTTP.SyncByteStream):
    """The bytes of a reply, as long as there are not too many of them and not too late."""

    def __init__(self, stream: Any, deadline: float, timeout: float, largest: int) -> None:
        self._stream, self._deadline, self._timeout, self._largest = stream, deadline, timeout, largest

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._stream:
            size += len(part)
            if size > self._largest:
                raise BorderCrossed(f"the answer is larger than {self._largest >> 20} MiB", "garbled")
            if time.monotonic() > self._deadline:
                raise BorderCrossed(f"no whole answer within {self._timeout:g} s", "unreachable")
            yield part

    def close(self) -> None:
        self._stream.close()
