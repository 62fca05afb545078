"""Tasks that this package and other packages bring, without importing lmms-eval (12 s) for it.

The folder of a task may hold a `catalogue.json`: licence and source of the data ("package", "hub", or the command that
builds it), and under `tasks` and `variants` the number of documents of each and what sets it apart:

    {"licence": "CC0-1.0", "data": "hub", "tasks": {"hedge_x": {"documents": 9, "about": "..."}}, "variants": {...}}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hedge_tasks.evaluation import own_folder, task_folders
from hedge_tasks.runs.trust import read_task

CATALOGUE = "catalogue.json"
PACKAGE = "package"
HUB = "hub"
"""Sources of data: those that need no network, and those that are downloaded."""


@dataclass(frozen=True)
class ListedTask:
    """A task or group, as lists show it.

    Attributes:
        task: its name.
        about: what sets it apart from the evaluation's other tasks.
        variant: whether it is a variant of another task.
        group: whether it is a group of tasks.
        documents: how many it has, a group those of its members; None where the data have to be read to know.
        modality: "image" or "text".
        licence: of the data.
        data: where the data come from: "package" (offline), "hub", or the command that builds them.
        yaml: its file.
    """

    task: str
    about: str
    variant: bool
    group: bool
    documents: int | None
    modality: str
    licence: str | None
    data: str | None
    yaml: str


def task_folder() -> Path:
    """Folder of the tasks, as lmms-eval's `--include_path` wants it."""
    return own_folder("")


@cache
def list_tasks() -> tuple[ListedTask, ...]:
    """Return every task and group, those of an evaluation together, its main ones first."""
    tasks = list(map(_listed, _files()))
    folders = list(dict.fromkeys(Path(task.yaml).parent for task in tasks))
    return tuple(sorted(tasks, key=lambda task: (folders.index(Path(task.yaml).parent), task.variant, not task.group)))


def how_built(task: str) -> str:
    """Return how a user gets the data of a task that the hub does not have, as a sentence; empty where it has."""
    data = next((listed.data for listed in list_tasks() if listed.task == task), None)
    return "" if data in (None, PACKAGE, HUB) else f" It is not on the hub: `{data}` builds it (see the task's README)."


@cache
def _files() -> dict[str, tuple[Path, dict[str, Any]]]:
    """YAML and configuration of every task and group by its name, ours first."""
    files = [path for folder in task_folders() for path in sorted(folder.rglob("*.yaml"))]
    configs = [(path, read_task(path)) for path in files]
    return {str(config.get("group") or config["task"]): (path, config) for path, config in configs}


def _listed(name: str) -> ListedTask:
    (path, config), members = _files()[name], _members(name)
    entry, (_, shown) = _entry(name), _files().get(members[0], (Path(), {}))
    counts: list[Any] = [_entry(member).get("documents") for member in members]
    prompt = (config.get("hedge_overrides") or {}).get("prompt")
    return ListedTask(
        name,
        entry.get("about") or (f"prompt {prompt}" if prompt else ""),
        entry["variant"],
        "group" in config,
        None if None in counts else sum(counts),
        "image" if (shown.get("hedge") or {}).get("images") else "text",
        entry.get("licence"),
        entry.get("data"),
        str(path),
    )


def _members(name: str) -> list[str]:
    """Tasks of a group, those of the groups in it included; of a task itself."""
    _, config = _files().get(name, (None, {}))
    if "group" not in config:
        return [name]
    return [task for member in config["task"] for task in _members(str(member))]


def _entry(name: str) -> dict[str, Any]:
    """Return what the catalogue of its folder says of a task, and whether it is a variant."""
    path, _ = _files().get(name, (Path(), {}))
    catalogue = _catalogue(path.parent)
    variants = catalogue.get("variants", {})
    shared = {key: catalogue.get(key) for key in ("licence", "data")}
    return {**shared, **{**catalogue.get("tasks", {}), **variants}.get(name, {}), "variant": name in variants}


@cache
def _catalogue(folder: Path) -> dict[str, Any]:
    path = folder / CATALOGUE
    catalogue: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return catalogue
