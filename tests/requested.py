"""Requests of documents with a picture, as a task makes them, what a model draws for them, and pictures as files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from PIL import Image

from hedge_tasks.data.answers import Draw
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prefetch import prefetch_messages
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

PICTURE = Image.new("RGB", (32, 24), (120, 60, 30))


def png(colour: int | tuple[int, int, int], size: tuple[int, int] = (8, 6)) -> bytes:
    """A file of one colour; a number is its red."""
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def request(i: int = 0, *, plan: dict[str, Any] | None = None, **fields: Any) -> SampleRequest:
    """The request of document `i`; `plan` are settings of its plan, which has no probe, `fields` are its own."""
    usual = {
        "id": f"q{i}",
        "key": f"key{i}",
        "question": "is it normal?",
        "prompt": Prompt("test", "<image>{question}"),
    }
    usual |= {"load_images": lambda row: [row["image"]]}
    usual |= {"plan": SamplingPlan(**{"probe": False, **(plan or {})})}
    return SampleRequest(**{**usual, **fields})


def instances(requests: Iterable[SampleRequest]) -> list[Any]:
    """The instances of lmms-eval that carry the requests, one a row."""
    return [SimpleNamespace(args=("text", {}, request, i, "task", "test")) for i, request in enumerate(requests)]


def draw_requests(asked: SampleRequest, draws: Iterable[Draw], picture: Any = PICTURE, i: int = 0) -> list[DrawRequest]:
    return [DrawRequest(asked, draw, lambda: {"image": picture, "i": i}, ("task", "test", i)) for draw in draws]


def sample(model: Any, draws: Sequence[DrawRequest]) -> list[Any]:
    """Every draw's outcome, in order."""
    outcomes = dict(pair for batch in model.generate_draws(draws) for pair in batch)
    return [outcomes[i] for i in range(len(draws))]


class FakeModel:
    """One of our adapters: it looks at the pictures of each draw, and answers by a function of the draw.

    Attributes:
        asked: draws that it was asked for.
    """

    rank, is_simple, answer_identity = 1, False, "m"

    def __init__(self, answer: Callable[[DrawRequest], Any], task_dict: Any = None) -> None:
        self.answer, self.asked = answer, list[DrawRequest]()
        self.task_dict = task_dict or {"task": {"test": [{"image": PICTURE}] * 3}}

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Any]]]:
        for i, _ in enumerate(prefetch_messages(draws)):
            self.asked.append(draws[i])
            yield [(i, self.answer(draws[i]))]
