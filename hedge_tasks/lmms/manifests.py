"""Manifests out of tasks: the data is loaded as an evaluation loads it, and nothing is asked of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.data.manifests import Manifest
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.lmms.catalogue import task_files
from hedge_tasks.runs.trust import read_task

if TYPE_CHECKING:
    from hedge_tasks.lmms.task import HedgeTask


def manifest_of(task: str) -> Manifest:
    """Return the manifest of a task.

    Raises:
        ConfigError: there is no such task; names the nearest one.
        DataError: its data cannot be had.
    """
    return load_task(task).manifest()


def load_task(task: str) -> HedgeTask:
    """Return a task with its documents, as an evaluation loads it.

    Raises:
        ConfigError: there is no such task of ours.
        DataError: its data cannot be had.
    """
    from lmms_eval.tasks import TaskManager, get_task_dict

    from hedge_tasks.lmms.plugin import entry_point
    from hedge_tasks.lmms.task import HedgeTask

    entry_point()
    loaded = get_task_dict([task], TaskManager(include_defaults=False), "chat")[task]
    if not isinstance(loaded, HedgeTask):
        raise ConfigError(f"{task} is none of these tasks")
    return loaded


def tasks_of(name: str) -> list[str]:
    """Return the tasks of a group, or the task itself.

    Raises:
        ConfigError: there is neither; names the nearest one.
    """
    members_by_name = _tasks_and_groups()
    if name not in members_by_name:
        raise unknown("task", name, members_by_name)
    members = members_by_name[name]
    return [name] if members is None else [task for member in members for task in tasks_of(member)]


def folder_of(task: str) -> Path:
    """Folder of a task's YAML."""
    return file_of(task).parent


def file_of(task: str) -> Path:
    """Return a task's YAML."""
    return next(file for file, config in _configs() if config.get("task") == task)


def _tasks_and_groups() -> dict[str, Sequence[str] | None]:
    members_by_name: dict[str, Sequence[str] | None] = {}
    for _, config in _configs():
        members = config.get("task")
        if isinstance(members, list):
            members_by_name[str(config["group"])] = [str(member) for member in members]
        else:
            members_by_name[str(members)] = None
    return members_by_name


def _configs() -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in task_files():
        yield file, read_task(file)
