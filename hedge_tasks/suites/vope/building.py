"""A local data set out of VOPE's JSON file and a user's own copies of the COCO images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from hedge_tasks.data import local_data
from hedge_tasks.data.local_data import BuiltSet, ReadImage
from hedge_tasks.errors import DataError
from hedge_tasks.io.records import Items, OpenRecord
from hedge_tasks.suites import documents
from hedge_tasks.suites.importing import ImportChoice, Release, ReleasedPart, imported
from hedge_tasks.suites.vope.documents import truth_of

DATASET = "qqwsad5/VOPE"
"""Name of the data set in task YAMLs: that of its repository on GitHub. It is not on the hub."""

_YEAR = "COCO_val2014_"


@dataclass(frozen=True)
class VopeImage:
    """One image of the benchmark: its id, the name of its file, and the COCO categories in it."""

    id: str
    image: str
    objects: tuple[str, ...]


def read_items(path: Path) -> list[VopeImage]:
    """The items of `coco_captioning.json`, `coco_reasoning.json` or `coco_writing.json`; all three have the same.

    Raises:
        DataError: the file cannot be read, or an item is damaged; names it.
    """
    items: dict[str, VopeImage] = {}
    for number, row in enumerate(documents.read_items(path), 1):
        where = f"{path}, item {number}"
        record = _Item.read(row, where)
        item = VopeImage(str(record.id), record.images[0], tuple(truth_of(record.truth, where)))
        if items.setdefault(item.id, item) is not item:
            raise DataError(f"{where}: the id {item.id} is there twice")
    return list(items.values())


def image_reader(folder: Path) -> ReadImage:
    """Return a reader of COCO images, by their name with the year ("COCO_val2014_0...42.jpg") or without.

    Raises:
        DataError: it is no folder.
    """
    images = local_data.image_reader(folder)

    def read(name: str) -> bytes | None:
        content = images(name)
        return images(name.removeprefix(_YEAR)) if content is None else content

    return read


def build(items: Sequence[VopeImage], read_image: ReadImage, out: Path | None) -> BuiltSet:
    """Write `OUT/qqwsad5__VOPE/test.parquet` with the columns of `tsunghanwu/mscoco_chair`; see `local_data.build`."""

    def rows(usable: Sequence[VopeImage]) -> dict[str, list[dict[str, Any]]]:
        return {"test": [{"question_id": i.id, "image": i.image, "gt_object": list(i.objects)} for i in usable]}

    return local_data.build(DATASET, items, rows, read_image, out)


def released(file: Path, images: Path) -> Release:
    """Read `coco_captioning.json` and a folder with val2014."""
    items = read_items(file)
    return {"test": ReleasedPart(items, partial(build, items))}, image_reader(images)


class _Item(OpenRecord):
    """An item as the files have it."""

    id: int | str
    images: Annotated[Items[str], Field(min_length=1, max_length=1)]
    truth: Any = None


def vope(files: Path, choice: ImportChoice) -> tuple[dict[str, Any], int]:
    """Build VOPE from its JSON file and your copies of COCO's images.

    Args:
        files: File coco_captioning.json (all three have the same items).
    """
    return imported(released, files, choice)
