"""The event loop on which a process makes its requests, with its connections: one, in a thread of its own.

A thread a request costs several times the processor time of a request.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_MOST_THREADS = 64
"""For what a coroutine leaves to a thread: reading pictures, libraries that know no event loop."""

_PATIENCE_S = 5.0
"""For what is under way to come to its end with the process."""

# Servers close connections that nobody uses, vLLM's after 5 s. A request on one that is just being closed fails.
_KEPT_ALIVE_S = 4.0


class _Running:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="hedge-calls"))
        self.session: aiohttp.ClientSession | None = None
        threading.Thread(target=self.loop.run_forever, name="hedge-requests", daemon=True).start()

    async def let_go(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.session is not None:
            await self.session.close()


_lock = threading.Lock()
_running: _Running | None = None
_of_parents: list[_Running] = []
"""Loops that a fork has left behind: their connections are the parent's, and must not be closed here."""


def running() -> _Running:
    """The loop, whose thread is running, with its connections."""
    global _running
    with _lock:
        _running = _running or _Running()
        return _running


def session() -> aiohttp.ClientSession:
    """The connections of the loop, on which it is to be called. The caller bounds their number."""
    import aiohttp

    current = running()
    if current.session is None:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_ALIVE_S)
        current.session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, trust_env=False
        )
    return current.session


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Have the loop run a coroutine, and wait for it in this thread. An interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, running().loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@atexit.register
def _end() -> None:
    if _running is not None:
        asyncio.run_coroutine_threadsafe(_running.let_go(), _running.loop).result(_PATIENCE_S)


def _forget() -> None:
    global _running, _lock
    _lock = threading.Lock()
    if _running is not None:
        _of_parents.append(_running)
        _running = None


os.register_at_fork(after_in_child=_forget)
