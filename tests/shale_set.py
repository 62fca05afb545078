"""A drawn SHALE set that several test files share: three aspects, two pictures each, all scenarios."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.making import MadeSet, ShaleMaking
from hedge_tasks.making.shale.released import images_of
from hedge_tasks.suites.shale.items import ShaleItem

ASPECTS = ("color", "count", "geography")


class SmallSet(NamedTuple):
    """Items, PNG files by name, and what they were made of."""

    items: Sequence[ShaleItem]
    images: Mapping[str, bytes]
    made: MadeSet


@lru_cache(maxsize=1)
def small_set() -> SmallSet:
    making = ShaleMaking(DrawnGenerator(48), per_aspect=2, aspects=ASPECTS)
    with tempfile.TemporaryDirectory() as folder:
        made = making.run(Path(folder))
        return SmallSet(tuple(made.items), images_of(made), made)
