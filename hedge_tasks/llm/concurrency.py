"""Calls under way at the same time, whose results come as they finish, and are not lost when one of them fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

from loguru import logger

from hedge_tasks.llm.event_loop import running
from hedge_tasks.llm.failures import ServerGone

T = TypeVar("T")

Call = Callable[[int, threading.Event], Awaitable[T]]
"""Makes the call of a number, on the event loop; the event is set when it should come to its end."""

GIVE_UP_AFTER = 3
"""A server is gone when this many requests at once found nobody, one after the other, retries included."""


def ask_each(
    call: Call[T], count: int, at_once: int, *, who: str = "", unreachable: Callable[[T], object] = lambda result: None
) -> Generator[list[tuple[int, T]], None, None]:
    """Call with 0 to count - 1 and yield (number, result) as soon as there are some.

    On an error or Ctrl-C nothing new is begun, and calls under way come to their end: somebody pays for them. Their
    results are yielded, then the error goes on. The event is set by then, so that a call may cut its pauses short. A
    second Ctrl-C, a server that is gone, or a caller that stops listening, drops them.

    Args:
        call: Makes the request of a number.
        count: Number of requests.
        at_once: Number of requests under way at any time.
        who: What the error calls the server.
        unreachable: Of a result, why nobody answered; false where somebody did.

    Raises:
        ServerGone: `GIVE_UP_AFTER` times `at_once` requests in a row found nobody. What they said was yielded before.
    """
    in_vain = 0
    loop, stop, numbers = running().loop, threading.Event(), iter(range(count))
    room = asyncio.Semaphore(2 * at_once)  # so many are ahead of a caller that stores answers
    finished: SimpleQueue[Any] = SimpleQueue()

    async def work() -> list[BaseException | None]:
        workers = (_work(call, numbers, room, stop, finished) for _ in range(min(at_once, count)))
        return await asyncio.gather(*workers, return_exceptions=True)

    working = asyncio.run_coroutine_threadsafe(work(), loop)
    working.add_done_callback(finished.put)
    error: BaseException | None = None
    items: list[Any] = []
    try:
        while working not in items:
            try:
                items = [finished.get(), *(finished.get() for _ in range(finished.qsize()))]
            except KeyboardInterrupt as interrupt:
                if error is not None:
                    raise
                logger.warning("Interrupted: waiting for the requests under way. Interrupt again to drop them.")
                stop.set()
                items, error = [], interrupt
            if results := [item for item in items if item is not working]:
                yield results
            for _, result in results:
                loop.call_soon_threadsafe(room.release)
                reason = unreachable(result)
                in_vain = in_vain + 1 if reason else 0
                # Or a server that died in the night would be called for every remaining request, for hours.
                if in_vain >= GIVE_UP_AFTER * at_once:
                    raise ServerGone(
                        f"{who} is gone: {in_vain} requests in a row failed, the last one with {reason}. What is "
                        "finished is kept; the same command continues from there."
                    )
        if error := error or next(filter(None, working.result()), None):
            raise error
    finally:
        stop.set()
        working.cancel()


async def _work(
    call: Call[T],
    numbers: Iterator[int],
    room: asyncio.Semaphore,
    stop: threading.Event,
    finished: SimpleQueue[Any],
) -> None:
    """Make one call after the other; an error stops the others, too."""
    try:
        while await room.acquire() and not stop.is_set() and (number := next(numbers, None)) is not None:
            finished.put((number, await call(number, stop)))
    except BaseException:
        stop.set()
        raise
    finally:
        room.release()


def in_threads(call: Callable[[int, threading.Event], T], threads: int) -> Call[T]:
    """For calls that are no coroutines (pipelines of several requests, libraries that know no event loop)."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="hedge-calls")

    async def in_thread(number: int, stop: threading.Event) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call, number, stop)

    return in_thread
