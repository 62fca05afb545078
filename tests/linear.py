"""Whether work grows in proportion to the size of its input, by comparing processor times with each other.

No bound in seconds: a slow or busy machine makes the small and the large piece of work slow alike.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import pairwise

FACTOR = 4
"""From one size to the next."""

LIMIT = 8.0
"""Most that `FACTOR` times the size may cost: halfway between linear (4) and quadratic (16) work, as ratios go."""

FEWEST, MOST = 2, 15
"""Rounds of measurement: so many at least, and so many before growth is believed."""


def sizes(least: int, most: int) -> list[int]:
    """Sizes up to the largest, each `FACTOR` times the one before it; the first is not below the least.

    Example:
        >>> sizes(50, 1600)
        [100, 400, 1600]
    """
    found = [most]
    while found[0] // FACTOR >= least:
        found.insert(0, found[0] // FACTOR)
    return found


def first_growth(work: Callable[[int], Callable[[], object]], steps: list[int]) -> int | None:
    """Return the first size that costs more than `LIMIT` times what the size before it costs; None if none does.

    Both are measured in turns, and the least time of each is compared: what else runs on the machine only adds to a
    time, so the least of many is near the true one. Linear work passes as soon as one round was undisturbed; quadratic
    work is above the limit however often it is measured. Sizes are tried from the smallest on, so that quadratic work
    fails before it takes long.

    Args:
        work: makes the work of a size, to be called once or more. What making it takes is not measured.
        steps: ascending sizes, such as those of `sizes`.
    """
    for small, large in pairwise(steps):
        pair = work(small), work(large)
        least = [float("inf")] * 2
        for done in range(1, MOST + 1):
            least = [min(known, _seconds(one)) for known, one in zip(least, pair, strict=True)]
            if done >= FEWEST and least[1] <= LIMIT * least[0]:
                break
        else:
            return large
    return None


def is_linear(read: Callable[[str], object], shape: Callable[[int], str], steps: list[int]) -> bool:
    """Whether reading a text takes time in proportion to its length.

    Args:
        shape: makes a text of about so many characters.
    """

    def work(size: int) -> Callable[[], object]:
        text = shape(size)
        return lambda: read(text)

    return first_growth(work, steps) is None


def _seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread."""
    gc.disable()
    try:
        begin = time.thread_time()
        work()
        return time.thread_time() - begin
    finally:
        gc.enable()
