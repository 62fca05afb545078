"""A local data set out of SHALE items and their images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hedge_tasks.data.local_data import ReadImage, image_faults, named, write_rows
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.shale.items import DATASET, DISCRIMINATIVE, SCENARIOS, TASKS, Item

FILES = {task: f"{'discriminative' if task in DISCRIMINATIVE else 'generative'}-{task}.parquet" for task in TASKS}
"""One file a type of question. A task's split is the beginning of a name, so "discriminative" is both closed types."""


@dataclass(frozen=True)
class Built:
    """What was written.

    Attributes:
        files: by type of question.
        rows: number of rows of each.
        missing: names of images that are not there or lie outside the folder.
        unreadable: names of images that are none.
    """

    files: dict[str, Path]
    rows: dict[str, int]
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]


def build(
    items: Sequence[Item],
    read_image: ReadImage,
    out: Path,
    more: Mapping[str, Callable[[Item], str]] | None = None,
) -> Built:
    """Write `OUT/BeiiiY__SHALE/<FILES>`. All scenarios of an item follow each other, so that --limit keeps pairs.

    Args:
        read_image: name of an image -> its bytes, None if there is none.
        out: what HEDGE_DATA_DIR will name; made if missing.
        more: further columns by name, such as where an item comes from.

    Raises:
        DataError: no item has an image, or the files cannot be written.
    """
    from datasets import Image, Value

    faults = image_faults((item.image for item in items), read_image)
    usable = [item for item in items if faults[item.image] is None]
    if not usable:
        raise DataError(f"none of the {len(faults)} images can be read")
    groups = scene_groups(usable)
    folder = out / DATASET.replace("/", "__")
    names = (
        *(field.name for field in fields(Item) if field.name != "image"),
        "pair",
        "group",
        "image_name",
        "known",
        *(more or {}),
    )
    columns = {**dict.fromkeys(names, Value("string")), "image": Image()}
    files, rows = {}, {}
    for task in TASKS:
        mine = _in_order([item for item in usable if item.task == task])
        if mine:
            files[task], rows[task] = folder / FILES[task], len(mine)
            write_rows(
                folder / FILES[task], (_row(item, groups, read_image) | _more(item, more) for item in mine), columns
            )
    return Built(files, rows, named(faults, "missing"), named(faults, "unreadable"))


def image_folder(folder: Path) -> ReadImage:
    """Reads images by their name relative to a folder; names that lead out of it are not there."""
    root = folder.resolve()

    def read(name: str) -> bytes | None:
        try:
            path = (root / name).resolve()
            if not (path.is_relative_to(root) and path.is_file()):
                return None
        except (OSError, ValueError):  # a name that cannot be one: with a null byte, or too long
            return None
        return path.read_bytes()

    return read


def _in_order(items: Iterable[Item]) -> list[Item]:
    place: dict[str, int] = {}
    listed = [(place.setdefault(item.id, len(place)), SCENARIOS.index(item.scenario), item) for item in items]
    return [item for _, _, item in sorted(listed, key=lambda entry: entry[:2])]


def scene_groups(items: Sequence[Item]) -> dict[str, str]:
    """What questions about one scene have in common, by the ids of the items: the name of its first clean image.

    Questions about one picture are of one scene, also when the picture is perturbed, and so are pictures of one
    description: copies of "a football" tell less than as many different scenes. Intervals resample whole scenes.
    """
    images = {item.id: item.image for item in items}
    images |= {item.id: item.image for item in items if item.scenario == SCENARIOS[0]}
    first: dict[str, str] = {image: image for image in images.values()}
    place = {image: i for i, image in enumerate(first)}

    def root(image: str) -> str:
        while first[image] != image:
            image = first[image]
        return image

    described: dict[str, str] = {}
    for item in items:
        image, text = root(images[item.id]), " ".join(item.description.lower().split())
        if text:
            one, other = sorted((image, root(described.setdefault(text, image))), key=place.__getitem__)
            first[other] = one
    return {id: root(image) for id, image in images.items()}


def _more(item: Item, more: Mapping[str, Callable[[Item], str]] | None) -> dict[str, str]:
    return {name: value(item) for name, value in (more or {}).items()}


def _row(item: Item, groups: dict[str, str], read_image: ReadImage) -> dict[str, Any]:
    return {
        **asdict(item),
        "id": f"{item.id}-{item.scenario}",
        "pair": item.id,
        "group": groups[item.id],
        "image_name": item.image,
        # The paper's judge reads both ("Image Information" and "Related Facts", Figure 4).
        "known": " ".join(filter(None, (item.description, item.facts))),
        "image": {"bytes": read_image(item.image), "path": item.image},
    }
