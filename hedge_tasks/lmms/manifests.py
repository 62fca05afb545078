"""Tasks by name: their YAML, and the task as an evaluation loads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.lmms.catalogue import task_files
from hedge_tasks.runs.trust import read_task

if TYPE_CHECKING:
    from hedge_tasks.lmms.task import HedgeTask


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


def file_of(task: str) -> Path:
    """Return a task's YAML.

    Raises:
        ConfigError: there is no such task; names the nearest one.
    """
    configs = {file: read_task(file) for file in task_files()}
    files = {str(config.get("task")): file for file, config in configs.items() if "group" not in config}
    if task not in files:
        raise unknown("task", task, files)
    return files[task]
