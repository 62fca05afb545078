"""Calls at once: results as they finish, nothing lost on an error, and an end where nobody answers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

import pytest

from hedge_tasks.errors import HedgeError
from hedge_tasks.llm.concurrency import ask_each, in_threads
from hedge_tasks.llm.failures import ServerGone


def drain(batches: Iterable[list[tuple[int, Any]]], into: list[Any]) -> None:
    for batch in batches:
        into += [result for _, result in batch]


def answering(answer: Callable[[int], Any]) -> Any:
    async def call(i: int, stop: threading.Event) -> Any:
        return answer(i)

    return call


def test_an_error_waits_for_what_is_under_way_and_begins_nothing_new() -> None:
    begun: list[int] = []

    def call(i: int, stop: threading.Event) -> int:
        begun.append(i)
        if i == 1:
            raise HedgeError("no such model")
        if i == 0:
            assert stop.wait(5)  # paid for: finished after the error
        return i

    results: list[int] = []
    with pytest.raises(HedgeError, match="no such model"):
        drain(ask_each(in_threads(call, 2), 1000, 2), results)
    assert 0 in results
    assert len(begun) < 20
    assert set(results) == set(begun) - {1}


@pytest.mark.parametrize("interrupts", [1, 2])
def test_an_interrupt_keeps_what_is_finished_and_under_way_and_a_second_one_drops_it(
    monkeypatch: pytest.MonkeyPatch, interrupts: int
) -> None:
    looks: list[int] = []

    class Interrupted(SimpleQueue):  # type: ignore[type-arg]
        def get(self, *arguments: Any) -> Any:
            looks.append(1)
            if 1 < len(looks) < 2 + interrupts:
                raise KeyboardInterrupt
            return super().get(*arguments)

    monkeypatch.setattr("hedge_tasks.llm.concurrency.SimpleQueue", Interrupted)
    begun: list[int] = []

    def call(i: int, stop: threading.Event) -> int:
        begun.append(i)
        if i:
            stop.wait(5)
        return i

    results: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        drain(ask_each(in_threads(call, 2), 1000, 2), results)
    assert sorted(results) == sorted(begun) if interrupts == 1 else len(looks) == 3
    assert len(begun) < 20


@pytest.mark.parametrize(("begins", "at_once"), [(0, 1), (20, 1), (20, 2)])
def test_a_server_that_is_gone_or_never_was_there_is_not_asked_for_everything(begins: int, at_once: int) -> None:
    results: list[Any] = []
    call = answering(lambda i: i < begins)
    batches = ask_each(call, 1000, at_once, who="it", unreachable=lambda answered: not answered)
    with pytest.raises(ServerGone, match=f"it is gone: {3 * at_once} requests in a row failed"):
        drain(batches, results)
    assert results.count(True) == begins
    assert len(results) < begins + 20


def test_no_more_calls_are_ahead_of_a_caller_than_twice_those_at_once() -> None:
    begun: list[int] = []
    batches = ask_each(answering(begun.append), 100, 2)
    next(batches)
    time.sleep(0.05)
    batches.close()
    assert begun == [0, 1, 2, 3]


def test_one_answer_in_between_is_enough() -> None:
    results: list[Any] = []
    call = answering(lambda i: i % 5 == 0)
    drain(ask_each(call, 200, 2, who="it", unreachable=lambda answered: not answered), results)
    assert len(results) == 200


def test_a_call_that_is_cancelled_is_an_error_and_not_a_hole() -> None:
    async def call(number: int, stop: threading.Event) -> int:
        if number == 1:
            raise asyncio.CancelledError
        return number

    with pytest.raises(asyncio.CancelledError):
        list(ask_each(call, 3, 1))
