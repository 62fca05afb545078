"""A local data set out of Med-HallMark's JSON files and a user's own copies of the images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hedge_tasks.data import local_data
from hedge_tasks.data.local_data import BuiltSet, ReadImage, image_reader
from hedge_tasks.suites.importing import ImportChoice, Release, ReleasedPart, imported
from hedge_tasks.suites.medhallmark.released import PARTS, MedHallMarkItem, read_part

DATASET = "ydk122024/Med-HallMark"
"""Name of the data set in task YAMLs: that of its repository on GitHub. It is not on the hub."""


def released(folder: Path, images: Path) -> Release:
    """Read the four released files of a folder, and a folder of images that is searched with all its folders.

    Raises:
        DataError: a JSON file or folder is missing or damaged.
    """
    return {part: _part(part, read_part(folder, part)) for part in PARTS}, image_reader(images)


def _part(part: str, items: Sequence[MedHallMarkItem]) -> ReleasedPart:
    def build(read_image: ReadImage, out: Path | None) -> BuiltSet:
        return build_items({part: items}, read_image, out)[part]

    judged = [asdict(item) | {"label": item.category} for item in items if item.category is not None]
    return ReleasedPart(items, build, judged=judged)


def build_items(
    items: Mapping[str, Sequence[MedHallMarkItem]], read_image: ReadImage, out: Path | None
) -> dict[str, BuiltSet]:
    """Write items, one folder a part, as the tasks read them.

    Args:
        items: by part.
        read_image: name of an image -> its bytes, None if there is none.

    Raises:
        DataError: a file cannot be written.
    """

    def built(part: str) -> BuiltSet:
        def rows(usable: Sequence[MedHallMarkItem]) -> dict[str, list[dict[str, Any]]]:
            return {f"{part}/test": [asdict(item) | {"image_name": item.image} for item in usable]}

        return local_data.build(DATASET, items[part], rows, read_image, out)

    return {part: built(part) for part in items}


def medhallmark(files: Path, choice: ImportChoice) -> tuple[dict[str, Any], int]:
    """Build Med-HallMark from its JSON files and your copies of its images.

    Args:
        files: Folder with Conventional..json, Counterfactual..json, Confidence_weakening.json and Irg.json.
    """
    return imported(released, files, choice)
