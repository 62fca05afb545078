"""Calls from threads whose results come as they finish, and are not lost when one of them fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from itertools import islice
from typing import TypeVar

from loguru import logger

from hedge_tasks.serving.failures import ServerGone

_T = TypeVar("_T")

GIVE_UP_AFTER = 3
"""A server is gone when this many requests a thread found nobody, one after the other, retries included."""


def ask_each(
    call: Callable[[int, threading.Event], _T], count: int, workers: int, *, unreachable: Callable[[_T], bool]
) -> Generator[list[tuple[int, _T]], None, None]:
    """As `as_finished`, until nobody answers any more.

    Args:
        call: Makes the request of a number; the event is set when it should come to its end.
        count: Number of requests.
        workers: Number of requests under way at any time.
        unreachable: Whether a result says that nobody answered.

    Raises:
        ServerGone: `GIVE_UP_AFTER` requests a worker in a row found nobody. What they said was yielded before.
    """
    in_vain = 0
    with closing(as_finished(call, count, workers)) as batches:
        for batch in batches:
            yield batch
            for _, result in batch:
                in_vain = in_vain + 1 if unreachable(result) else 0
                # Or a server that died in the night would be called for every remaining request, for hours.
                if in_vain >= GIVE_UP_AFTER * workers:
                    raise ServerGone(in_vain, result)


def as_finished(
    call: Callable[[int, threading.Event], _T], count: int, workers: int
) -> Generator[list[tuple[int, _T]], None, None]:
    """Call with 0 to count - 1 from threads and yield (number, result) as soon as there are some.

    On an error or Ctrl-C nothing new is begun, and calls under way come to their end: somebody pays for them. Their
    results are yielded, then the error goes on. The event is set by then, so that a call may cut its pauses short.
    """
    stop, numbers = threading.Event(), iter(range(count))
    running: dict[Future[_T], int] = {}
    error: BaseException | None = None
    pool = ThreadPoolExecutor(workers)
    try:
        while error is None:
            # As many again wait in the queue, so that no thread idles while the caller stores answers.
            running |= {pool.submit(call, i, stop): i for i in islice(numbers, 2 * workers - len(running))}
            if not running:
                return
            try:
                wait(running, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt as interrupt:
                logger.warning("Interrupted: waiting for the requests under way. Interrupt again to drop them.")
                error = interrupt
            results, failure = _collect(running)
            error = error or failure
            if results:
                yield results
        stop.set()
        running = {future: i for future, i in running.items() if not future.cancel()}
        wait(running)
        results, _ = _collect(running)
        if results:
            yield results
        raise error
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _collect(running: dict[Future[_T], int]) -> tuple[list[tuple[int, _T]], BaseException | None]:
    """Take finished calls out of `running`: their results, and the first error."""
    results, error = [], None
    for future in [future for future in running if future.done()]:
        number = running.pop(future)
        if (failure := future.exception()) is None:
            results.append((number, future.result()))
        else:
            error = error or failure
    return results, error
