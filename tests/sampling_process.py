"""Samples into a store with a slow, seeded fake model, as a process that can be killed. Prints the answers."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from requested import PICTURE, instances, request

from hedge_tasks.sampling import Answer
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.requests import DrawRequest

DOCUMENTS = 12


class SeededModel:
    """Answers from the draw's seed alone, a batch of five at a time."""

    rank = 1  # no progress bar
    is_simple = False
    answer_identity = "seeded"

    def __init__(self, seconds_a_batch: float) -> None:
        self.task_dict = {"task": {"test": [{"image": PICTURE}] * DOCUMENTS}}
        self._seconds = seconds_a_batch

    def generate_draws(self, draws: Sequence[DrawRequest]) -> Iterator[list[tuple[int, Answer]]]:
        for start in range(0, len(draws), 5):
            time.sleep(self._seconds)
            batch = range(start, min(start + 5, len(draws)))
            yield [(i, answer_of(draws[i].draw.seed)) for i in batch]


def answer_of(seed: int) -> Answer:
    digest = hashlib.sha256(str(seed).encode()).hexdigest()
    return Answer(digest[:12], -int(digest[12:16], 16) / 65536, 3)


def requests(store: Path, n: int) -> list[Any]:
    return instances(request(i, plan={"n": n}, store=store) for i in range(DOCUMENTS))


if __name__ == "__main__":
    folder, n_answers, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    sys.stdout.write("\n".join(generate_samples(SeededModel(seconds), requests(folder, n_answers))) + "\n")
