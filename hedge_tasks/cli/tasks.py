"""`hedge list` and `hedge path`: the tasks of this package."""

from __future__ import annotations

import argparse

from hedge_tasks.io.commands import Parser, command, show


def add(commands: Parser) -> None:
    command(commands, "list", _list, "list the tasks of this package")
    command(commands, "path", _path, "print the folder of the tasks, for lmms-eval's --include_path")


def _list(arguments: argparse.Namespace) -> int:
    from hedge_tasks.lmms.catalogue import list_tasks

    tasks = list_tasks()
    width = max(len(task["task"]) for task in tasks)
    show(arguments, tasks, "\n".join(f"{task['task']:<{width}}  {task['title']}" for task in tasks))
    return 0


def _path(arguments: argparse.Namespace) -> int:
    from hedge_tasks.lmms.catalogue import task_folder

    show(arguments, {"path": str(task_folder())}, str(task_folder()))
    return 0
