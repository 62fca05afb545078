"""Inputs made ahead of the model: the same as without, in order, bounded, and gone when nobody wants them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from requested import draw_requests, request

from hedge_tasks.errors import DataError
from hedge_tasks.sampling.prefetch import ordered, prefetch_messages
from hedge_tasks.sampling.requests import DrawRequest


def draws_of(documents: int, load: Callable[[Any], list[Any]], n: int = 2) -> list[DrawRequest]:
    asked = [request(i, plan={"n": n}, load_images=load) for i in range(documents)]
    return [d for i, one in enumerate(asked) for d in draw_requests(one, one.plan.draws(one.key), i=i)]


def no_threads_left() -> bool:
    return not any(thread.name.startswith("hedge-prefetch") for thread in threading.enumerate())


def test_a_document_is_decoded_once_for_its_draws() -> None:
    loads: Counter[int] = Counter()

    def load(document: Any) -> list[Any]:
        loads[document["i"]] += 1
        return [document["image"]]

    draws = draws_of(6, load, n=10)
    assert len(list(prefetch_messages(draws))) == 6 * 21
    assert set(loads.values()) == {1}


def test_no_more_than_ahead_are_made_before_they_are_wanted() -> None:
    started: list[int] = []
    with closing(ordered(range(100), lambda i: started.append(i) or i, workers=3, ahead=5)) as made:
        assert next(made) == 0
        time.sleep(0.1)
        assert len(started) == 6  # the five ahead of the reader, and the one it has
        assert next(made) == 1


def test_an_error_comes_at_the_turn_of_its_draw() -> None:
    def load(document: Any) -> list[Any]:
        if document["i"] == 1:
            raise OSError("broken picture")
        return [document["image"]]

    made = prefetch_messages(draws_of(3, load))
    for _ in range(5):
        next(made)
    with pytest.raises(DataError, match=r"document .*: its picture cannot be read: broken picture"):
        next(made)
    assert list(made) == []
    assert no_threads_left()


def test_leaving_early_drops_what_is_pending() -> None:
    done: list[int] = []

    def make(i: int) -> int:
        time.sleep(0.02)
        done.append(i)
        return i

    with closing(ordered(range(1000), make, workers=2, ahead=500)) as made:
        next(made)
    finished = len(done)
    assert finished < 20
    assert no_threads_left()
    time.sleep(0.1)
    assert len(done) == finished
