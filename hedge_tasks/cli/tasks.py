"""`hedge list` and `hedge path`: the tasks of this package."""

from __future__ import annotations

import argparse

from hedge_tasks.io.commands import Parser, command, show


def add(commands: Parser) -> None:
    parser = command(commands, "list", _list, "list the tasks: size, modality, licence, and what each needs")
    parser.add_argument("--all", action="store_true", help="variants as well, with what sets each apart")
    command(commands, "path", _path, "print the folder of the tasks, for lmms-eval's --include_path")


def _list(arguments: argparse.Namespace) -> int:
    from hedge_tasks.lmms.catalogue import PACKAGE, list_tasks
    from hedge_tasks.numbers import Column, Table

    tasks = [task for task in list_tasks() if arguments.all or not task.variant]
    columns = [
        Column("task"),
        Column("documents"),
        Column("modality"),
        Column("licence"),
        Column("data"),
        Column("about"),
    ]
    blocks = []
    for title in dict.fromkeys(task.title for task in tasks):
        rows = [{column.key: getattr(task, column.key) for column in columns} for task in tasks if task.title == title]
        blocks.append(Table(columns, rows, title))
    hidden = sum(task.variant for task in list_tasks())
    notes = [f"data: {PACKAGE} needs no network, hub downloads, hedge data ... builds from your copies."]
    notes += [] if arguments.all else [f"{hidden} variants are not shown; hedge list --all shows them."]
    show(arguments, tasks, *blocks, "\n".join(notes))
    return 0


def _path(arguments: argparse.Namespace) -> int:
    from hedge_tasks.lmms.catalogue import task_folder

    show(arguments, {"path": str(task_folder())}, str(task_folder()))
    return 0
