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
    """The manifest of a task.

    Raises:
        ConfigError: there is no such task; names the nearest one.
        DataError: its data cannot be had.
    """
    return load_task(task).manifest()


def load_task(task: str) -> HedgeTask:
    """A task with its documents, as an evaluation loads it.

    Raises:
        ConfigError: there is no such task of ours.
        DataError: its data cannot be had.
    """
    from lmms_eval.tasks import TaskManager, get_task_dict

    from hedge_tasks.lmms.plugin import entry_point
    from hedge_tasks.lmms.task import HedgeTask

    entry_point()
    made = get_task_dict([task], TaskManager(include_defaults=False), "chat")[task]
    if not isinstance(made, HedgeTask):
        raise ConfigError(f"{task} is none of these tasks")
    return made


def tasks_of(name: str) -> list[str]:
    """The tasks of a group, or the task itself.

    Raises:
        ConfigError: there is neither; names the nearest one.
    """
    known = _tasks_and_groups()
    if name not in known:
        raise unknown("task", name, known)
    members = known[name]
    return [name] if members is None else [task for member in members for task in tasks_of(member)]


def folder_of(task: str) -> Path:
    """Folder of a task's YAML."""
    return file_of(task).parent


def file_of(task: str) -> Path:
    """A task's YAML."""
    return next(file for file, config in _configs() if config.get("task") == task)


def _tasks_and_groups() -> dict[str, Sequence[str] | None]:
    found: dict[str, Sequence[str] | None] = {}
    for _, config in _configs():
        members = config.get("task")
        if isinstance(members, list):
            found[str(config["group"])] = [str(member) for member in members]
        else:
            found[str(members)] = None
    return found


def _configs() -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in task_files():
        yield file, read_task(file)
