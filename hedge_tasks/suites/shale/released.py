"""The query files of SHALE as its authors hand them out, and which perturbed item belongs to which clean one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hedge_tasks.data.local_data import listed
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_json
from hedge_tasks.suites.shale.items import ALL_SCENARIOS, ASPECTS, CLEAN, SCENARIOS, ShaleItem, read_item

QUERIES = "query_json"
"""Folder of the query files in SHALE's code; its README has `Query`."""

_FILES = {"style": "sty", "corruption": "crp", "adversarial": "adv", "scenetext": "txt"}
"""Scenarios whose files have other names in SHALE's code than in its tables; of the others nothing is public."""


def read_released(folder: Path) -> tuple[list[ShaleItem], list[str]]:
    """Read `FOLDER/query_json/*.json`, `FOLDER/Query/*.json` or `FOLDER/*.json`, one file a scenario.

    A perturbed item belongs to the clean one with the same `clean_id`, or else the same `id`, of its task and aspect;
    the resistance rate leaves those without one out.

    Returns:
        All items that could be read, clean ones first, and what is not as it should be, a line each.

    Raises:
        DataError: there is no clean query file, or a file is damaged.
    """
    files, other_files = _query_files(folder)
    if CLEAN not in files:
        hint = f"; there is {', '.join(other_files)}" if other_files else ""
        raise DataError(
            f"{folder}: no query file of the clean scenario (expected {QUERIES}/Clean.json or Query/Clean.json{hint})"
        )
    problems: list[str] = []
    clean = _read_file(files[CLEAN], CLEAN, problems)
    clean_by_id = {item.id: item for item in clean}
    items, unpaired = [*clean], dict[str, list[str]]()
    for scenario in ALL_SCENARIOS[1:]:
        if scenario in files:
            noisy = _read_file(files[scenario], scenario, problems)
            without_clean = {item.id for item in noisy if _question_of(item) != _question_of(clean_by_id.get(item.id))}
            # Of another id, or the item of another question would be taken for the perturbed form of this one.
            items += [replace(item, id=f"{item.id}-unpaired") if item.id in without_clean else item for item in noisy]
            unpaired[f"{scenario}: no clean item for"] = sorted(without_clean)
    lines: Mapping[str, Sequence[str]] = {
        "no query file for": [scenario for scenario in SCENARIOS if scenario not in files],
        "files whose name is no scenario's": other_files,
        "left out": problems,
        "aspects that are in no row of the table": sorted({item.aspect for item in items} - {*ASPECTS}),
        **unpaired,
    }
    return items, [f"{text}: {listed(names)}" for text, names in lines.items() if names]


def scenario_of(stem: str) -> str | None:
    """Return the scenario that a file's name means, in the words of SHALE's code or its tables; None where it is none.

    Example:
        >>> scenario_of("SceneText"), scenario_of("Style-P"), scenario_of("notes")
        ('txt', 'sty_p', None)
    """
    first, *more = re.split(r"[\W_]+", stem.lower())
    name = "_".join((_FILES.get(first, first), *more))
    return name if name in ALL_SCENARIOS else None


def _query_files(folder: Path) -> tuple[dict[str, Path], list[str]]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    folders = [path for path in folder.iterdir() if path.is_dir() and path.name.lower() in (QUERIES, "query")]
    place = folders[0] if len(folders) == 1 else folder
    files: dict[str, Path] = {}
    other_files = []
    for path in sorted(place.glob("*.json")):
        scenario = scenario_of(path.stem)
        if scenario is None:
            other_files.append(path.name)
        elif scenario in files:
            raise DataError(f"{path} and {files[scenario].name} are both of the scenario {scenario!r}")
        else:
            files[scenario] = path
    return files, other_files


def _read_file(path: Path, scenario: str, problems: list[str]) -> list[ShaleItem]:
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a list of items, got {type(rows).__name__}")
    items: dict[str, ShaleItem] = {}
    for number, row in enumerate(rows):
        where = f"{path.name}[{number}]"
        try:
            item = read_item(row, scenario, where)
        except DataError as error:
            problems.append(str(error))
            continue
        if item.id in items:
            problems.append(f"{where}: the id {item.id!r} occurs twice; the first one counts")
        else:
            items[item.id] = item
    return list(items.values())


def _question_of(item: ShaleItem | None) -> tuple[str, str] | None:
    return None if item is None else (item.task, item.aspect)
