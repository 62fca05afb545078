"""A made set in the files that SHALE is handed out in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.making.shale.items import pictures_by_name
from hedge_tasks.making.shale.making import MadeSet
from hedge_tasks.making.shale.report import png
from hedge_tasks.suites.shale.items import ALL_SCENARIOS, CONTROLS, SCENARIOS, ShaleItem
from hedge_tasks.suites.shale.released import QUERIES

_TASK_NAMES = {"mcq": "MCQ", "ffq": "OpenVQA", "ic": "Caption"}
_WORDS = {"clean": "Clean", "sty": "Style", "crp": "Corruption", "adv": "Adversarial", "txt": "SceneText"}
_WORDS |= {"syn": "Synonyms", "pfx": "Prefix"}
FILE_NAMES = {name: _WORDS[name.removesuffix("_p")] + ("-P" if name.endswith("_p") else "") for name in SCENARIOS}
"""Names of query files by scenario: those of SHALE's code, and our guess for the others."""
FILE_NAMES |= {
    name: f"{FILE_NAMES[base]}-{name.removeprefix(f'{base}_').capitalize()}" for name, base in CONTROLS.items()
}


def write_released(made_set: MadeSet, folder: Path) -> list[Path]:
    """Write a set the way SHALE is handed out: `query_json/<Scenario>.json` and `Image/<name>.png`.

    Returns:
        The query files.

    Raises:
        DataError: The folder cannot be written.
    """
    return write_queries(made_set.items, images_of(made_set), folder)


def images_of(made_set: MadeSet) -> dict[str, bytes]:
    """The pictures that the items show, as PNG files by name."""
    names = {item.image for item in made_set.items}
    pictures = pictures_by_name(made_set.scenes)
    return {name: png(scene.pictures[scenario]) for name, (scene, scenario) in pictures.items() if name in names}


def write_queries(items: Sequence[ShaleItem], images: Mapping[str, bytes], folder: Path) -> list[Path]:
    """Write items and images as `write_released`."""
    try:
        for place in {(folder / name).parent for name in images} | {folder / QUERIES}:
            place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror or error}") from error
    for name, content in images.items():
        write_whole(folder / name, content)
    files = []
    for scenario in ALL_SCENARIOS:
        rows = [_released_row(item) for item in items if item.scenario == scenario]
        if rows:
            files.append(folder / QUERIES / f"{FILE_NAMES[scenario]}.json")
            write_whole(files[-1], json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return files


def _released_row(item: ShaleItem) -> dict[str, Any]:
    task = ("PosYNQ" if item.answer == "Yes" else "NegYNQ") if item.task == "ynq" else _TASK_NAMES[item.task]
    row: dict[str, Any] = {
        "id": int(item.id),
        "task": task,
        "hallucination_type": item.kind,
        "evaluation_dimension": item.aspect,
        "entity_type": item.entity,
        "images": [f"./{item.image}"],
        "instruction": item.question,
        "ground_truth": item.answer,
        "image_prompt": item.description,
        "distractor": item.distractor,
    }
    row |= {"Ground Truth Option": item.answer[:3]} if item.task == "mcq" else {}
    return row | ({"Facts": item.facts} if item.facts else {})
