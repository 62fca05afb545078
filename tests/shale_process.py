"""Models that play every part in the making of a SHALE set, by fixed rules; also in a process that is killed.

The writer proposes kites of four colours; image generators make one colour for a prompt; checkers take pictures
of one colour for right. So what becomes of every scene is known by the number of its kite.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from making import asked_of
from PIL import Image

from hedge_tasks.llm.models import ServedModel
from hedge_tasks.making.pictures.base import Order, PictureQuestion
from hedge_tasks.making.shale.making import MadeSet, ShaleMaking
from hedge_tasks.making.shale.report import write
from hedge_tasks.making.shale.scenes import prompted_scenes

COLORS = ("red", "green", "blue", "black")
SCENARIOS = ("sty", "txt", "pfx", "sty_p", "txt_p")

prompted_scenes("color", 1)  # what every process of a test would read anew


def number_of(text: str) -> int:
    return int(text.partition("kite ")[2].split()[0].rstrip("?,."))


def play(body: dict[str, Any]) -> str:
    fields = asked_of(body)
    if "candidate_answer" in fields:
        same = fields["candidate_answer"] == fields["reference_answer"]
        return json.dumps({"verdict": "supported" if same else "contradicted", "sentence": 1})
    return _records() if "guide" in fields else json.dumps({"answer": _blindly(fields["question"])})


def _records() -> str:
    """Seven scenes: the eighth is the seventh again, the ninth and the tenth are no usable records."""
    records = [_record(number) for number in range(7)]
    records += [_record(6), {**_record(8), "counterfactual": ["red", "Red.", "green"]}, {**_record(9), "entity": "{x}"}]
    return json.dumps({"records": records})


def _record(number: int) -> dict[str, Any]:
    wrong = [color for color in COLORS if color != COLORS[number % 4]]
    place = {"entity": f"a kite {number}", "relation": "in a room", "facts": ""}
    return {**place, "attribute": COLORS[number % 4], "counterfactual": [*wrong, "white"]}


def _blindly(question: str) -> str:
    """Of the fourth kite it knows the colour; of others it says yes."""
    if number_of(question) != 4:
        return "Yes"
    right = COLORS[0]
    if "(A)" in question:
        return next(letter for letter in "ABCD" if f"({letter}) {right}" in question)
    if question.startswith("What"):
        return right.capitalize()
    return "Yes" if f" {right}?" in question else "No"


class Plain:
    """One colour for a prompt."""

    name = "plain"

    def __init__(self, seconds: float = 0.0) -> None:
        self.asked: list[Order] = []
        self._seconds = seconds

    def generate(self, orders: Sequence[Order]) -> list[Image.Image]:
        time.sleep(self._seconds * len(orders))
        self.asked += orders
        digests = (hashlib.sha256(order.prompt.encode()).digest() for order in orders)
        return [Image.new("RGB", (48, 48), (d[0], d[1], d[2])) for d in digests]


class PlainChecker:
    """Scores by the number of the kite; 0.5 where a picture is not of one colour and `strict` names its number."""

    def __init__(self, name: str, scores: Mapping[int, float | None], strict: Sequence[int] = ()) -> None:
        self.name = name
        self._scores, self._strict = scores, strict

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        return [self._score(*pair) for pair in zip(pictures, questions, strict=True)]

    def _score(self, picture: Image.Image, question: PictureQuestion) -> float | None:
        number = number_of(question.statement)
        if number in self._strict and len(picture.getcolors(picture.width * picture.height)) > 1:
            return 0.5
        return self._scores.get(number, 1.0)


CHECKERS = (PlainChecker("one", {0: 0.8, 3: 1.0}, strict=(2,)), PlainChecker("other", {0: 0.8, 1: None, 3: 0.7}, (2,)))
"""Kite 0 is in doubt, of kite 1 only one can speak, kite 2 with a text on it is in doubt, over kite 3 they differ."""


def making(url: str, seconds: float = 0.0, **options: Any) -> ShaleMaking:
    settings: dict[str, Any] = {
        "generator": Plain(seconds),
        "checkers": CHECKERS,
        "per_aspect": 8,
        "aspects": ["color"],
        "scenarios": SCENARIOS,
        "writer": ServedModel("writer", url, max_retries=0),
        "verifiers": [ServedModel("verifier", url, max_retries=0)],
        "blind": [ServedModel("reader", url, max_retries=0)],
        "batch": 1,
        "concurrency": 2,
    }
    return ShaleMaking(**{**settings, **options})


def make(url: str, folder: Path, seconds: float = 0.0, **options: Any) -> MadeSet:
    making_ = making(url, seconds, **options)
    made = making_.run(folder)
    write(folder, making_, made)
    return made
