"""The event loop on which a process makes its requests: one, in a thread of its own, begun when it is needed.

A thread a request costs several times the processor time of a request.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_MOST_THREADS = 64
"""For what a coroutine leaves to a thread: reading pictures, libraries that know no event loop."""

_PATIENCE_S = 5.0
"""For the thread to come to its end with the process."""


class _Running:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="hedge-calls"))
        self.at_end: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.thread = threading.Thread(target=self.loop.run_forever, name="hedge-requests", daemon=True)
        self.thread.start()

    def end(self) -> None:
        asyncio.run_coroutine_threadsafe(self._let_go(), self.loop).result(_PATIENCE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_PATIENCE_S)
        if not self.thread.is_alive():
            self.loop.close()

    async def _let_go(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for close in self.at_end:
            await close()


_lock = threading.Lock()
_running: _Running | None = None
_of_parents: list[_Running] = []
"""Loops that a fork has left behind: their connections are the parent's, and must not be closed here."""


def event_loop() -> asyncio.AbstractEventLoop:
    """The loop; its thread is running."""
    global _running
    with _lock:
        _running = _running or _Running()
        return _running.loop


def at_end(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Have something done on the loop when the process ends. To be called from the loop."""
    if _running is not None:
        _running.at_end.append(close)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Have the loop run a coroutine, and wait for it in this thread. An interrupt cancels it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, event_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@atexit.register
def _end() -> None:
    global _running
    if _running is not None and _running.thread.is_alive():
        _running.end()
    _running = None


def _forget() -> None:
    global _running, _lock
    _lock = threading.Lock()
    if _running is not None:
        _of_parents.append(_running)
        _running = None


os.register_at_fork(after_in_child=_forget)
