"""Tasks that this package and other packages bring, without importing lmms-eval (12 s) for it.

The folder of a task may hold a `catalogue.json`: licence and source of the data ("package", "hub", or the command that
builds it), and under `tasks` and `variants` the number of documents of each and what sets it apart:

    {"licence": "CC0-1.0", "data": "hub", "tasks": {"hedge_x": {"documents": 9, "about": "..."}}, "variants": {...}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.evaluation import own_folder, task_folders
from hedge_tasks.runs.trust import read_task

CATALOGUE = "catalogue.json"
PACKAGE = "package"
"""Source of data that need no network."""


@dataclass(frozen=True)
class ListedTask:
    """A task or group, as lists show it.

    Attributes:
        task: its name.
        title: of the evaluation, the first line of the folder's README.
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
    title: str
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
    listed = [_listed(path) for path in task_files()]
    by_name = {task.task: task for task in listed}
    listed = [replace(task, documents=_documents(task, by_name)) for task in listed]
    places = {task.yaml: i for i, task in enumerate(listed)}
    first = {folder: places[task.yaml] for task in reversed(listed) for folder in [Path(task.yaml).parent]}
    return tuple(sorted(listed, key=lambda task: (first[Path(task.yaml).parent], task.variant, not task.group)))


@cache
def titles() -> dict[str, str]:
    """Title of every task and group by its name."""
    return {task.task: f"group: {task.title}" if task.group else task.title for task in list_tasks()}


def task_files() -> list[Path]:
    """Every YAML of a task or group, ours first."""
    return [path for folder in task_folders() for path in sorted(folder.rglob("*.yaml"))]


def _listed(path: Path) -> ListedTask:
    own = _read(path)
    group = isinstance(own.get("task"), list)
    name = str(own["group"] if group else own["task"])
    catalogue = _catalogue(path.parent)
    main, variants = catalogue.get("tasks", {}), catalogue.get("variants", {})
    entry: dict[str, Any] = main.get(name) or variants.get(name) or {}
    prompt = (own.get("hedge_overrides") or {}).get("prompt")
    return ListedTask(
        name,
        _title(path.parent),
        entry.get("about") or (f"prompt {prompt}" if prompt else ""),
        name in variants,
        group,
        None if group else entry.get("documents"),
        _modality(path.parent) if group else _modality_of(read_task(path)),
        entry.get("licence", catalogue.get("licence")),
        entry.get("data", catalogue.get("data")),
        str(path),
    )


def _documents(task: ListedTask, by_name: Mapping[str, ListedTask]) -> int | None:
    if not task.group:
        return task.documents
    members = [by_name.get(str(name)) for name in _read(Path(task.yaml))["task"]]
    counts = [_documents(member, by_name) if member else None for member in members]
    return sum(n for n in counts if n is not None) if None not in counts else None


@cache
def _catalogue(folder: Path) -> dict[str, Any]:
    path = folder / CATALOGUE
    catalogue: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return catalogue


def _modality(folder: Path) -> str:
    """Modality of a folder's tasks, for its groups."""
    tasks = [path for path in sorted(folder.glob("*.yaml")) if not isinstance(_read(path).get("task"), list)]
    return _modality_of(read_task(tasks[0])) if tasks else "image"


def _modality_of(config: dict[str, Any]) -> str:
    return "image" if (config.get("hedge") or {}).get("images") else "text"


@cache
def _read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.load(path.read_text("utf-8"), Loader=_Loader)
    return config


def _title(folder: Path) -> str:
    readme = folder / "README.md"
    if not readme.is_file():
        return ""
    return readme.read_text("utf-8").lstrip().splitlines()[0].lstrip("# ")


class _Loader(yaml.SafeLoader):
    """Reads task YAML without running its !function tags."""


_Loader.add_constructor("!function", lambda loader, node: None)
