"""A drawn SHALE set that several test files share: three aspects, two pictures each, all scenarios."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from once import once

from hedge_tasks.making.shale.construction import ShaleMaking
from hedge_tasks.making.shale.drawn import DrawnGenerator
from hedge_tasks.making.shale.items import pictures_by_name
from hedge_tasks.making.shale.pictures import PictureMaking
from hedge_tasks.suites.shale.items import ShaleItem

ASPECTS = ("color", "count", "geography")


class SmallSet(NamedTuple):
    """Items, and PNG files by name."""

    items: Sequence[ShaleItem]
    images: Mapping[str, bytes]


def _write(folder: Path) -> None:
    making = PictureMaking(DrawnGenerator(48), (), seed=0)
    made = ShaleMaking(making, per_aspect=2, aspects=ASPECTS).run(folder / "making")
    pictures = pictures_by_name(made.scenes)
    images = {name: scene.pictures[kind].path.read_bytes() for name, (scene, kind) in pictures.items()}
    (folder / "set").write_bytes(pickle.dumps(SmallSet(tuple(made.made.rows), images)))


@cache
def small_set() -> SmallSet:
    """Made once a test run: attacks on pictures take their time."""
    found: SmallSet = pickle.loads((once("shale-set", _write) / "set").read_bytes())
    return found
