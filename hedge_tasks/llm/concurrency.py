"""Calls under way at the same time, whose results come as they finish, and are not lost when one of them fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

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
    calls, numbers = _Calls(call, at_once), iter(range(count))
    error: BaseException | None = None
    try:
        while error is None:
            # As many again wait in the queue, so that none is late while the caller stores answers.
            calls.begin(list(islice(numbers, 2 * at_once - calls.open)))
            if not calls.open:
                return
            try:
                results, error = calls.finished()
            except KeyboardInterrupt as interrupt:
                logger.warning("Interrupted: waiting for the requests under way. Interrupt again to drop them.")
                results, error = [], interrupt
            if results:
                yield results
        calls.begin_no_more()
        while calls.open:
            results, _ = calls.finished()
            if results:
                yield results
        raise error
    finally:
        calls.drop()


def in_threads(call: Callable[[int, threading.Event], T], threads: int) -> Call[T]:
    """For calls that are no coroutines (pipelines of several requests, libraries that know no event loop)."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="hedge-calls")

    async def in_thread(number: int, stop: threading.Event) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call, number, stop)

    return in_thread


class _Dropped(Exception):
    """A call was not begun."""


class _Calls(Generic[T]):
    """Calls on the event loop, and the outcomes that are not read yet.

    Attributes:
        open: Number of calls whose results have not been looked at.
    """

    def __init__(self, call: Call[T], at_once: int) -> None:
        self.open = 0
        self._call, self._places = call, asyncio.Semaphore(at_once)
        self._stop = threading.Event()
        self._outcomes: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, numbers: Sequence[int]) -> None:
        if numbers:
            self.open += len(numbers)
            event_loop().call_soon_threadsafe(self._schedule, numbers)

    def begin_no_more(self) -> None:
        self._stop.set()

    def finished(self) -> tuple[list[tuple[int, T]], BaseException | None]:
        """Wait for outcomes: the results, and the first error."""
        outcomes = [self._outcomes.get()]
        try:
            while True:
                outcomes.append(self._outcomes.get_nowait())
        except Empty:
            self.open -= len(outcomes)
        errors = [error for _, _, error in outcomes if error is not None and not isinstance(error, _Dropped)]
        results = [(number, result) for number, result, error in outcomes if error is None]
        return results, next(iter(errors), None)  # type: ignore[return-value]

    def drop(self) -> None:
        """End the calls under way."""
        self._stop.set()
        if self.open:
            event_loop().call_soon_threadsafe(self._cancel)

    def _schedule(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            task = asyncio.get_running_loop().create_task(self._make(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _make(self, number: int) -> None:
        result, error = None, None
        try:
            async with self._places:
                if self._stop.is_set():
                    raise _Dropped
                result = await self._call(number, self._stop)
        except BaseException as failure:  # the caller's, who has it raised
            error = failure
        self._outcomes.put((number, result, error))
        if isinstance(error, asyncio.CancelledError):
            raise error
