"""`hedge edition`: how a task is run, fixed and hashed."""

from __future__ import annotations

import argparse
from typing import Any

from hedge_tasks.cli.choices import add_manifests
from hedge_tasks.io.commands import Parser, add_out, command, show


def add(commands: Parser) -> None:
    text = "write how a task is run (draws, judge, clusterings, ...), hashed, for the leaderboard; needs no data"
    parser = command(commands, "edition", run, text)
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="tasks or groups")
    add_out(parser, "folder of the files (default: editions/ beside each task's YAML)")
    add_manifests(parser)
    parser.add_argument(
        "--seeds", type=int, nargs="+", metavar="SEED", help="base seeds, the one that counts first (default: 0 1 2)"
    )


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.lmms.editions import edition_of_file
    from hedge_tasks.lmms.manifests import file_of, tasks_of
    from hedge_tasks.runs.editions import FOLDER, SEEDS, write_edition

    facts: list[dict[str, Any]] = []
    for task in dict.fromkeys(task for name in arguments.tasks for task in tasks_of(name)):
        file = file_of(task)
        edition = edition_of_file(file, arguments.manifests, tuple(arguments.seeds or SEEDS))
        folder = arguments.out or file.parent / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        write_edition(folder / f"{task}.json", edition)
        facts.append({"edition": str(folder / f"{task}.json"), "task": task, "hash": edition.hash})
    show(arguments, facts, "\n".join(f"{f['edition']}: edition {f['hash']} of {f['task']}" for f in facts))
    return 0
