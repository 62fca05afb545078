"""Calls under way at the same time, whose results come as they finish, and are not lost when one of them fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

from loguru import logger

from hedge_tasks.llm.event_loop import event_loop
from hedge_tasks.llm.failures import ServerGone

T = TypeVar("T")

Call = Callable[[int, threading.Event], Awaitable[T]]
"""Makes the call of a number, on the event loop; the event is set when it should come to its end."""

GIVE_UP_AFTER = 3
"""A server is gone when this many requests at once found nobody, one after the other, retries included."""


def ask_each(
    call: Call[T], count: int, at_once: int, *, unreachable: Callable[[T], bool]
) -> Generator[list[tuple[int, T]], None, None]:
    """As `as_finished`, until the server does not answer any more.

    Args:
        call: Makes the request of a number.
        count: Number of requests.
        at_once: Number of requests under way at any time.
        unreachable: Whether a result says that nobody answered.

    Raises:
        ServerGone: `GIVE_UP_AFTER` times `at_once` requests in a row found nobody. What they said was yielded before.
    """
    in_vain = 0
    with closing(as_finished(call, count, at_once)) as batches:
        for batch in batches:
            yield batch
            for _, result in batch:
                in_vain = in_vain + 1 if unreachable(result) else 0
                # Or a server that died in the night would be called for every remaining request, for hours.
                if in_vain >= GIVE_UP_AFTER * at_once:
                    raise ServerGone(in_vain, result)


def as_finished(call: Call[T], count: int, at_once: int) -> Generator[list[tuple[int, T]], None, None]:
    """Call with 0 to count - 1 and yield (number, result) as soon as there are some.

    On an error or Ctrl-C nothing new is begun, and calls under way come to their end: somebody pays for them. Their
    results are yielded, then the error goes on. The event is set by then, so that a call may cut its pauses short. A
    second Ctrl-C, or a caller that stops listening, drops them.
    """
    loop, stop, places = event_loop(), threading.Event(), asyncio.Semaphore(at_once)
    under_way: dict[Future[T], int] = {}
    finished: SimpleQueue[Future[T]] = SimpleQueue()
    numbers = iter(range(count))
    error: BaseException | None = None

    async def make(number: int) -> T:
        async with places:
            if stop.is_set():
                raise _Dropped
            return await call(number, stop)

    try:
        while True:
            # As many again wait for a place, so that none is late while the caller stores answers.
            for number in islice(numbers, 0 if stop.is_set() else 2 * at_once - len(under_way)):
                future = asyncio.run_coroutine_threadsafe(make(number), loop)
                under_way[future] = number
                future.add_done_callback(finished.put)
            if not under_way:
                break
            try:
                futures = [finished.get(), *(finished.get() for _ in range(finished.qsize()))]
            except KeyboardInterrupt as interrupt:
                if error is not None:
                    raise
                logger.warning("Interrupted: waiting for the requests under way. Interrupt again to drop them.")
                futures, error = [], interrupt
            results, failure = _outcomes([(under_way.pop(future), future) for future in futures])
            error = error or failure
            if error is not None:
                stop.set()
            if results:
                yield results
        if error is not None:
            raise error
    finally:
        stop.set()
        for future in under_way:
            future.cancel()


class _Dropped(Exception):
    """A call was not begun."""


def _outcomes(futures: Sequence[tuple[int, Future[T]]]) -> tuple[list[tuple[int, T]], BaseException | None]:
    """Return the results, and the first error; what was dropped has neither."""
    results: list[tuple[int, T]] = []
    error: BaseException | None = None
    for number, future in futures:
        failure = asyncio.CancelledError() if future.cancelled() else future.exception()
        if failure is None:
            results.append((number, future.result()))
        elif not isinstance(failure, _Dropped):
            error = error or failure
    return results, error


def in_threads(call: Callable[[int, threading.Event], T], threads: int) -> Call[T]:
    """For calls that are no coroutines (pipelines of several requests, libraries that know no event loop)."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="hedge-calls")

    async def in_thread(number: int, stop: threading.Event) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call, number, stop)

    return in_thread
