"""`hedge manifest`: which documents a task has, as digests."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from hedge_tasks.io.commands import Parser, add_out, command, say, show


def add(commands: Parser) -> None:
    text = "write the ids and digests of a task's documents, for the leaderboard; needs the data"
    parser = command(commands, "manifest", run, text)
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="tasks or groups")
    add_out(parser, "folder of the files (default: manifests/ beside each task's YAML)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.manifests import FOLDER, same_documents, write_manifest
    from hedge_tasks.lmms.manifests import folder_of, manifest_of, tasks_of

    names = list(dict.fromkeys(task for name in arguments.tasks for task in tasks_of(name)))
    facts: list[dict[str, Any]] = []
    for manifest in same_documents([manifest_of(name) for name in names]):
        folder = arguments.out or folder_of(manifest.tasks[0]) / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        revision = f"-{manifest.data.revision[:12]}" if manifest.data.revision else ""
        path = folder / f"{manifest.tasks[0]}{revision}.json"
        write_manifest(path, manifest)
        facts.append({"manifest": str(path), "tasks": list(manifest.tasks), "documents": len(manifest.documents)})
        if manifest.data.revision is None and "://" not in manifest.data.path:
            say(f"{path}: made from a local copy; that it is the published data set is for you to know", sys.stderr)
    show(
        arguments,
        facts,
        "\n".join(f"{f['manifest']}: {f['documents']} documents of {', '.join(f['tasks'])}" for f in facts),
    )
    return 0
