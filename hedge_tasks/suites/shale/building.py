"""A local data set out of SHALE items and their images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from hedge_tasks.data import local_data
from hedge_tasks.data.groups import find_groups
from hedge_tasks.data.local_data import BuiltSet, ReadImage
from hedge_tasks.errors import DataError
from hedge_tasks.suites.importing import ImportChoice, Release, ReleasedPart, imported
from hedge_tasks.suites.shale.items import ALL_SCENARIOS, CLEAN, DATASET, DISCRIMINATIVE, TASKS, ShaleItem
from hedge_tasks.suites.shale.released import read_released

PARTS = {f"{'discriminative' if task in DISCRIMINATIVE else 'generative'}-{task}": task for task in TASKS}
"""One file a type of question. A task's split is the beginning of a name, so "discriminative" is both closed types."""


def build(
    items: Sequence[ShaleItem],
    read_image: ReadImage,
    out: Path | None,
    columns: Mapping[str, Callable[[ShaleItem], str]] = {},
) -> BuiltSet:
    """Write `OUT/BeiiiY__SHALE/<PARTS>.parquet`; see `local_data.build`.

    All scenarios of an item follow each other, so that --limit keeps pairs.

    Args:
        columns: further ones by name, such as where an item comes from.

    Raises:
        DataError: no item has an image, or the files cannot be written.
    """

    def rows(usable: Sequence[ShaleItem]) -> dict[str, list[dict[str, str]]]:
        if not usable:
            raise DataError(f"none of the {len({item.image for item in items})} images can be read")
        groups = scene_groups(usable)
        of_task = {part: _in_order([item for item in usable if item.task == task]) for part, task in PARTS.items()}
        return {
            part: [_row(item, groups) | {name: value(item) for name, value in columns.items()} for item in task_items]
            for part, task_items in of_task.items()
        }

    built = local_data.build(DATASET, items, rows, read_image, out)
    by_task = {task: part for part, task in PARTS.items() if part in built.files}
    return replace(
        built,
        files={task: built.files[part] for task, part in by_task.items()},
        rows={task: built.rows[part] for task, part in by_task.items()},
    )


def released(folder: Path, images: Path) -> Release:
    """Read SHALE's download: a folder with Query/*.json (or query_json/) and Image/."""
    items, faults = read_released(folder)
    return {"SHALE": ReleasedPart(items, partial(build, items), faults)}, image_folder(images)


def image_folder(folder: Path) -> ReadImage:
    """Return a reader of images by their name relative to a folder; names that lead out of it are not there."""
    root = folder.resolve()

    def read(name: str) -> bytes | None:
        with suppress(OSError, ValueError):  # a name that cannot be one: with a null byte, or too long
            path = (root / name).resolve()
            return path.read_bytes() if path.is_relative_to(root) and path.is_file() else None
        return None

    return read


def _in_order(items: Iterable[ShaleItem]) -> list[ShaleItem]:
    place: dict[str, int] = {}
    listed = [(place.setdefault(item.id, len(place)), ALL_SCENARIOS.index(item.scenario), item) for item in items]
    return [item for _, _, item in sorted(listed, key=lambda entry: entry[:2])]


def scene_groups(items: Sequence[ShaleItem]) -> dict[str, str]:
    """Return the group of questions about one scene, by the ids of the items: the name of its first clean image.

    Questions about one picture are of one scene, also when the picture is perturbed, and so are pictures of one
    description: copies of "a football" tell less than as many different scenes. Intervals resample whole scenes.
    """
    images = {item.id: item.image for item in items}
    images |= {item.id: item.image for item in items if item.scenario == CLEAN}
    described = [" ".join(item.description.lower().split()) or None for item in items]
    scenes = find_groups([images[item.id] for item in items], described)
    return {item.id: str(scene) for item, scene in zip(items, scenes, strict=True)}


def _row(item: ShaleItem, groups: Mapping[str, str]) -> dict[str, str]:
    return {
        **asdict(item),
        "id": f"{item.id}-{item.scenario}",
        "pair": item.id,
        "group": groups[item.id],
        "image_name": item.image,
        # The paper's judge reads both ("Image Information" and "Related Facts", Figure 4).
        "known": " ".join(filter(None, (item.description, item.facts))),
    }


def shale(files: Path, choice: ImportChoice) -> tuple[dict[str, Any], int]:
    """Check your download of SHALE, and build the data set from it.

    Args:
        files: Folder with Query/*.json (or query_json/) and Image/.
    """
    return imported(released, files, choice)
