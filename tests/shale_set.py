"""A synthesised SHALE set that several test files share: three aspects, two pictures each, all scenarios."""

from __future__ import annotations

from functools import lru_cache

from hedge_tasks.evaluations.shale.synthesis import Synthesised, synthesise

ASPECTS = ("color", "count", "geography")


@lru_cache(maxsize=1)
def small_set() -> Synthesised:
    return synthesise(2, aspects=ASPECTS, size=48)
