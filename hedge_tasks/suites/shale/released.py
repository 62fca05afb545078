"""The query files of SHALE as its authors hand them out, and which perturbed item belongs to which clean one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_json
from hedge_tasks.suites.shale.items import (
    ALL_SCENARIOS,
    CLEAN,
    CONTROLS,
    IMAGE_SCENARIOS,
    SCENARIOS,
    ShaleItem,
    read_item,
)

QUERIES = "query_json"
"""Folder of the query files in SHALE's code, and of those that we write."""

_FOLDERS = (QUERIES, "query", "queries")
"""Names of that folder in any case: its README has `Query`."""

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "clean": ("clean",),
    "sty": ("sty", "style", "stylized", "styletransfer"),
    "crp": ("crp", "corruption", "corrupted", "imagecorruption"),
    "adv": ("adv", "adversarial", "adversarialnoise"),
    "txt": ("txt", "scenetext", "text", "scenetextinsertion"),
    "syn": ("syn", "synonym", "synonyms", "confusingsynonyms"),
    "pfx": ("pfx", "prefix", "misleadingprefix", "misleadingprefixes"),
}
_COMBINED = ("p", "pfx", "prefix", "misleadingprefix")


@dataclass(frozen=True)
class Released:
    """The contents of a folder.

    Attributes:
        items: all that could be read, clean ones first.
        unpaired: by scenario, ids of perturbed items without a clean one; the resistance rate leaves them out.
        problems: what could not be read and is left out, one line each.
        missing: scenarios without a query file.
        other_files: JSON files whose name is no scenario's.
    """

    items: tuple[ShaleItem, ...]
    unpaired: Mapping[str, tuple[str, ...]]
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    other_files: tuple[str, ...]


def read_released(folder: Path) -> Released:
    """Read `FOLDER/query_json/*.json`, `FOLDER/Query/*.json` or `FOLDER/*.json`, one file a scenario.

    A perturbed item belongs to the clean one with the same `clean_id`, or else the same `id`, of its task and aspect.

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
    items, unpaired = [*clean], {}
    for scenario in ALL_SCENARIOS[1:]:
        if scenario in files:
            noisy = _read_file(files[scenario], scenario, problems)
            without_clean = {item.id for item in noisy if not _fits(item, clean_by_id.get(item.id))}
            # Of another id, or the item of another question would be taken for the perturbed form of this one.
            items += [replace(item, id=f"{item.id}-unpaired") if item.id in without_clean else item for item in noisy]
            unpaired.update({scenario: tuple(sorted(without_clean))} if without_clean else {})
    missing = tuple(scenario for scenario in SCENARIOS if scenario not in files)
    return Released(tuple(items), unpaired, tuple(problems), missing, tuple(other_files))


def scenario_of(stem: str) -> str | None:
    """Return the scenario that a file's name means, None where it means none.

    Example:
        >>> scenario_of("SceneText"), scenario_of("Style-P"), scenario_of("notes")
        ('txt', 'sty_p', None)
    """
    name = re.sub(r"[\W_]+", "", stem.lower())
    for control, controlled in CONTROLS.items():
        kind = control.removeprefix(f"{controlled}_")
        if name.endswith(kind) and scenario_of(stem[: -len(kind)]) == controlled:
            return control
    for scenario, spellings in _SPELLINGS.items():
        if name in spellings:
            return scenario
        combined = {spelling + ending for spelling in spellings for ending in _COMBINED}
        if scenario in IMAGE_SCENARIOS and name in combined:
            return f"{scenario}_p"
    return None


def _query_files(folder: Path) -> tuple[dict[str, Path], list[str]]:
    place = _place(folder)
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


def _place(folder: Path) -> Path:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    folders = [path for path in sorted(folder.iterdir()) if path.is_dir() and path.name.lower() in _FOLDERS]
    return folders[0] if len(folders) == 1 else folder


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


def _fits(item: ShaleItem, clean: ShaleItem | None) -> bool:
    return clean is not None and (item.task, item.aspect) == (clean.task, clean.aspect)
