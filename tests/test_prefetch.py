"""Inputs made ahead of the model: the same as without, in order, bounded, and gone when nobody wants them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from PIL import Image

from hedge_tasks.errors import DataError
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.prefetch import ordered, prefetch_messages
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest


def draw_requests(
    documents: int, n: int = 2, *, load: Callable[[Any], list[Any]] | None = None, **plan: Any
) -> list[DrawRequest]:
    found = []
    for i in range(documents):
        request = SampleRequest(
            id=f"q{i}",
            key=f"key{i}",
            question=f"question {i}?",
            prompt=Prompt("test", "<image>{question}"),
            plan=SamplingPlan(n=n, probe=False, **plan),
            load_images=load or (lambda document: [document["image"]]),
        )
        document = {"image": Image.new("RGB", (24, 20), (100, 20 * i, 50)), "i": i}
        draws = request.plan.draws(request.key)
        found += [DrawRequest(request, draw, lambda document=document: document, ("t", "s", i)) for draw in draws]
    return found


def no_threads_left() -> bool:
    return not any(thread.name.startswith("hedge-prefetch") for thread in threading.enumerate())


def test_a_document_is_decoded_once_for_its_draws() -> None:
    loads: Counter[int] = Counter()

    def load(document: Any) -> list[Any]:
        loads[document["i"]] += 1
        return [document["image"]]

    draws = draw_requests(6, n=10, load=load)
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

    made = prefetch_messages(draw_requests(3, load=load))
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
