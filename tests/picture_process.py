"""Paints and checks pictures in a process of its own, in children that are killed again and again."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

from killing import child, killed
from PIL import Image

from hedge_tasks.making.pictures.base import Order, PictureQuestion
from hedge_tasks.making.pictures.inspection import inspect
from hedge_tasks.making.pictures.store import PictureStore

SIDE = 24


def orders(count: int) -> list[Order]:
    return [Order(f"o{i}", f"a picture of {i}", i, {"number": i}) for i in range(count)]


def question(number: int) -> PictureQuestion:
    return PictureQuestion(f"a picture of {number}", "statement", {})


class Slow:
    """Paints noise out of the seed, writes down what it makes, and takes its time."""

    name = "slow"

    def __init__(self, diary: Path, pause: float) -> None:
        self._diary, self._pause = diary, pause

    def generate(self, given: Sequence[Order]) -> list[Image.Image]:
        images = []
        for order in given:
            images.append(Image.frombytes("RGB", (SIDE, SIDE), random.Random(order.seed).randbytes(SIDE * SIDE * 3)))
            write(self._diary, f"make {order.id}")
            time.sleep(self._pause)
        return images


class Brightness:
    """Scores a picture by its pixels, and writes down what it is asked."""

    name = "brightness"

    def __init__(self, diary: Path, pause: float) -> None:
        self._diary, self._pause = diary, pause

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        for asked in questions:
            write(self._diary, f"check {asked.statement}")
            time.sleep(self._pause)
        return [sum(picture.tobytes()[:30]) / (30 * 255) for picture in pictures]


def write(diary: Path, line: str) -> None:
    with diary.open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def work(folder: Path, diary: Path, count: int, pause: float, batch: int) -> None:
    with PictureStore(folder) as store:
        pictures = store.generate(Slow(diary, pause), orders(count), batch=batch)
        asked = [[question(i)] for i in range(count)]
        verdicts = inspect(store, [Brightness(diary, pause)], pictures, asked, batch=batch)
    result = [[p.digest, v.mean, v.outcome] for p, v in zip(pictures, verdicts, strict=True)]
    (folder / f"result-{os.getpid()}.json").write_text(json.dumps(result))


def run_killed(folder: str, diary: str, kills: int) -> None:
    """40 pictures and their scores take 0.32 s in one go; a child lives for 2 to 20 ms."""
    print(killed(lambda: work(Path(folder), Path(diary), 40, 0.004, 2), kills, 0.002, 0.02))


def run_together(folder: str, diary: str, workers: int) -> None:
    processes = [child(lambda: work(Path(folder), Path(diary), 40, 0.004, 2)) for _ in range(workers)]
    assert [os.waitpid(process, 0)[1] for process in processes] == [0] * workers
