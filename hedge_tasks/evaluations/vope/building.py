"""A local data set out of VOPE's JSON file and a user's own copies of the COCO images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.data.local_data import ImageFolder, ReadImage, image_faults, named, write_rows
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.vope.documents import truth_of
from hedge_tasks.io.outside import read_json

DATASET = "qqwsad5/VOPE"
"""Name of the data set in task YAMLs: that of its repository on GitHub. It is not on the hub."""

_YEAR = "COCO_val2014_"


@dataclass(frozen=True)
class Item:
    """One image of the benchmark: its id, the name of its file, and the COCO categories in it."""

    id: str
    image: str
    objects: tuple[str, ...]


@dataclass(frozen=True)
class Built:
    """What was written.

    Attributes:
        file: None where no item had an image.
        items: in the JSON file.
        built: with an image.
        missing, unreadable: names of images that were not found, or are none.
    """

    file: Path | None
    items: int
    built: int
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]


def read_items(path: Path) -> list[Item]:
    """The items of `coco_captioning.json`, `coco_reasoning.json` or `coco_writing.json`; all three have the same.

    Raises:
        DataError: the file cannot be read, or an item is damaged; names it.
    """
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{path}: expected a list of items")
    items = [_item(row, f"{path}, item {number}") for number, row in enumerate(rows, 1)]
    seen: set[str] = set()
    for number, item in enumerate(items, 1):
        if item.id in seen:
            raise DataError(f"{path}, item {number}: the id {item.id} is there twice")
        seen.add(item.id)
    return items


def image_reader(folder: Path) -> ReadImage:
    """Finds COCO images below a folder, by their name with the year ("COCO_val2014_0...42.jpg") or without.

    Raises:
        DataError: it is no folder.
    """
    images = ImageFolder(folder)

    def read(name: str) -> bytes | None:
        found = images.read(name)
        return images.read(name.removeprefix(_YEAR)) if found is None else found

    return read


def build(items: Sequence[Item], read_image: ReadImage, out: Path) -> Built:
    """Write `OUT/qqwsad5__VOPE/test.parquet`, in pieces, with the columns of `tsunghanwu/mscoco_chair`.

    Args:
        read_image: name of an image -> its bytes, None if there is none.
        out: what HEDGE_DATA_DIR will name; made if missing.

    Raises:
        DataError: the file cannot be written, or a name fits images that differ.
    """
    from datasets import Image, List, Value

    faults = image_faults((item.image for item in items), read_image)
    usable = [item for item in items if faults[item.image] is None]
    file = out / DATASET.replace("/", "__") / "test.parquet" if usable else None
    if file is not None:
        columns = {"question_id": Value("string"), "image": Image(), "gt_object": List(Value("string"))}
        write_rows(file, (_row(item, read_image) for item in usable), columns)
    return Built(file, len(items), len(usable), named(faults, "missing"), named(faults, "unreadable"))


def _item(row: object, where: str) -> Item:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected an object, got {type(row).__name__}")
    number, images = row.get("id"), row.get("images")
    if isinstance(number, bool) or not isinstance(number, (int, str)):
        raise DataError(f"{where}: 'id' is missing")
    if not isinstance(images, list) or len(images) != 1 or not isinstance(images[0], str):
        raise DataError(f"{where}: expected one image under 'images', got {images!r}")
    return Item(str(number), images[0], tuple(truth_of(row.get("truth"), where)))


def _row(item: Item, read_image: ReadImage) -> dict[str, Any]:
    return {
        "question_id": item.id,
        "image": {"bytes": read_image(item.image), "path": item.image},
        "gt_object": list(item.objects),
    }
