"""How long evidence and detectors take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter

from hedge_tasks.detectors.base import Detector

RELEVANCE = ("baseline_relevance", "clean_relevance")
EVIDENCE = ("clusters", "relations", "cosines", *RELEVANCE)
"""Needs of detectors that take time to meet; the others come with the answers."""


class Clock:
    """Adds up seconds, by need and by detector.

    Example:
        >>> clock = Clock()
        >>> with clock.on("clusters"):
        ...     pass
        >>> 0 <= clock.spent["clusters"] < 1
        True
    """

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count the time of a block."""
        start = perf_counter()
        try:
            yield
        finally:
            self.spent[what] += perf_counter() - start

    def of(self, detector: Detector) -> float:
        """Seconds of a detector: of the evidence that it looks at, and of itself."""
        return self.spent[detector.name] + sum(self.spent[need] for need in EVIDENCE if need in detector.needs)


def on(clock: Clock | None, what: str) -> AbstractContextManager[None]:
    """Count the time of a block where there is a clock."""
    return nullcontext() if clock is None else clock.on(what)
