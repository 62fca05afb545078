"""A drawn SHALE set that several test files share: three aspects, two pictures each, all scenarios."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from hedge_tasks.making.shale.construction import MadeScenes, ShaleMaking
from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.items import pictures_by_name
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.suites.shale.items import ShaleItem

ASPECTS = ("color", "count", "geography")


class SmallSet(NamedTuple):
    """Items, PNG files by name, and what they were made of."""

    items: Sequence[ShaleItem]
    images: Mapping[str, bytes]
    made: MadeScenes


def drawn(size: int = 48, *, seed: int = 0, **options: Any) -> ShaleMaking:
    return ShaleMaking(PictureMaking(DrawnGenerator(size), (), seed=seed), **options)


@lru_cache(maxsize=1)
def small_set() -> SmallSet:
    with tempfile.TemporaryDirectory() as folder:
        made = drawn(per_aspect=2, aspects=ASPECTS).run(Path(folder))
        pictures = pictures_by_name(made.scenes)
        images = {name: scene.pictures[kind].path.read_bytes() for name, (scene, kind) in pictures.items()}
        return SmallSet(tuple(made.made.rows), images, made)
