"""`hedge leaderboard`: entries from runs, what of them is refused, their replay, and a static site."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

from hedge_tasks.cli.choices import add_adapter, add_run, add_task
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, say, show
from hedge_tasks.numbers import count_of


def add(commands: Parser) -> None:
    actions = commands.add_command("leaderboard", "make, check, replay and show leaderboard entries")
    starting = command(actions, "init", init, "make a repository for a leaderboard: entries, workflow, README")
    starting.add_argument("folder", type=Path, metavar="DIR", help="folder to make")
    starting.add_argument("--title", default="HEDGE leaderboard", help="of its README (default: %(default)s)")
    making = command(actions, "submit", submit, "write a run as an entry, and say how to open the pull request")
    add_run(making)
    add_out(making, "a folder, or a clone of the leaderboard's repository", default=Path("board"))
    making.add_argument("--model", metavar="ID", help="the model's id on the Hub, or local/NAME (default: the run's)")
    making.add_argument("--revision", metavar="REVISION", help="of the model's weights")
    add_task(making)
    checking = command(actions, "check", check, "say whether entries have a place on a board; exit code 1 if not")
    checking.add_argument("entries", type=Path, nargs="+", metavar="ENTRY.json")
    checking.add_argument("--beside", type=Path, metavar="DIR", help="board whose entries they must not repeat")
    replaying = command(actions, "replay", replay, "have the model read an entry's answers again, and draw fresh ones")
    replaying.add_argument("entry", type=Path, metavar="ENTRY.json")
    replaying.add_argument("--documents", type=int, default=24, metavar="K", help="questions picked (default: 24)")
    add_adapter(replaying, None, "pretrained=... or base_url=...,model=...")
    add_out(replaying, "file of the outcome (default: replays/ beside the entries)")
    building = command(actions, "build", build, "make a static site from a folder of entries")
    building.add_argument("folder", type=Path, metavar="DIR", help="a board's repository, or a folder with *.json")
    add_out(building, "folder of the site", default=Path("site"))
    building.add_argument(
        "--cache", type=Path, metavar="DIR", help="where what was measured is kept (default: .cache in DIR)"
    )


def init(arguments: argparse.Namespace) -> int:
    from hedge_tasks.leaderboard.repository import make_repository

    files = [str(path) for path in make_repository(arguments.folder, title=arguments.title)]
    where = shlex.quote(str(arguments.folder))
    then = f"git -C {where} init --initial-branch main, commit, push it to GitHub, and choose Pages from GitHub Actions"
    show(arguments, {"folder": str(arguments.folder), "files": files}, "\n".join([*files, f"Next: {then}"]))
    return 0


def submit(arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.choices import chosen_run
    from hedge_tasks.leaderboard.entry import entry_of, place_of, write_entry
    from hedge_tasks.leaderboard.repository import commands_for

    entry = entry_of(chosen_run(arguments), arguments.model, arguments.revision)
    out = place_of(arguments.out, entry)
    write_entry(out, entry)
    commands = commands_for(out, f"Entry: {entry.title} on {entry.task}")
    facts = {"entry": str(out), "model": entry.model, "revision": entry.revision, "edition": entry.edition}
    lines = [
        f"{out}: the answers of {entry.title} to {count_of(len(entry.documents), 'question')} of {entry.task}",
        f"Has it a place?  hedge leaderboard check {shlex.quote(str(out))}",
        "The pull request:",
        *(f"  {line}" for line in commands),
    ]
    show(arguments, {**facts, "documents": len(entry.documents), "commands": commands}, "\n".join(lines))
    return 0


def check(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import HedgeError
    from hedge_tasks.leaderboard.board import Rules, entries_folder, faults, repeats
    from hedge_tasks.leaderboard.entry import Entry, read_entry

    rules = Rules()
    own = {path.resolve() for path in arguments.entries}
    others: dict[str, Entry] = {}
    if arguments.beside is not None:
        files = sorted(entries_folder(arguments.beside).glob("*.json"))
        others = {file.name: read_entry(file) for file in files if file.resolve() not in own}
    wrong: dict[str, list[str]] = {}
    for path in arguments.entries:
        try:
            entry = read_entry(path)
            repeated = repeats(entry, others)
            wrong[str(path)] = [*faults(entry, rules), *([repeated] if repeated else [])]
            others[path.name] = entry
        except HedgeError as error:
            wrong[str(path)] = [str(error)]
    lines = [f"{path}: {'; '.join(reasons) or 'has a place on a board'}" for path, reasons in wrong.items()]
    show(arguments, {path: {"refused": reasons} for path, reasons in wrong.items()}, "\n".join(lines))
    return PROBLEMS_FOUND if any(wrong.values()) else 0


def replay(arguments: argparse.Namespace) -> int:
    import json
    import secrets
    from functools import partial

    from hedge_tasks.errors import DataError
    from hedge_tasks.io import options
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.progress import progress
    from hedge_tasks.leaderboard.board import Rules, faults
    from hedge_tasks.leaderboard.entry import read_entry
    from hedge_tasks.leaderboard.replay import replay_entry
    from hedge_tasks.leaderboard.repository import REPLAYS
    from hedge_tasks.lmms.identity import display_name
    from hedge_tasks.lmms.manifests import load_task
    from hedge_tasks.models import adapter_class

    options.count("documents", arguments.documents, at_least=1)
    adapter = adapter_class(arguments.model)  # a wrong name is told before anything is read
    entry = read_entry(arguments.entry)
    if wrong := faults(entry, Rules()):
        raise DataError(f"{arguments.entry}: {'; '.join(wrong)}")
    name = display_name(SimpleNamespace(model=arguments.model, model_args=arguments.model_args)) or arguments.model
    model = adapter.create_from_arg_string(arguments.model_args)
    steps = partial(progress, name="Replaying", unit="question")
    # The seed is drawn here: whoever wrote the entry could not know which questions would be read.
    seed = secrets.randbelow(1 << 40)
    outcome = replay_entry(entry, load_task(entry.task), model, name, arguments.documents, seed, steps)
    out = arguments.out or arguments.entry.resolve().parent.parent / REPLAYS / f"{entry.name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, json.dumps(outcome.model_dump(), indent=1) + "\n")
    show(arguments, {"file": str(out), "replayed": outcome.holds, **outcome.model_dump()}, f"{out}: {outcome.in_words}")
    return 0 if outcome.holds else PROBLEMS_FOUND


def build(arguments: argparse.Namespace) -> int:
    from functools import partial

    from hedge_tasks.io.progress import progress
    from hedge_tasks.leaderboard.board import read_board
    from hedge_tasks.leaderboard.site import build_site

    steps = partial(progress, name="Measuring", unit="entry")
    board = read_board(arguments.folder, arguments.cache or arguments.folder / ".cache", steps)
    files = build_site(board, arguments.out)
    for path, reason in board.refused.items():
        say(f"refused {path}: {reason}", sys.stderr)
    refused = {str(path): reason for path, reason in board.refused.items()}
    n_replayed = sum(entry.replayed for entry in board.entries)
    facts = {"site": str(arguments.out), "pages": len(files), "entries": len(board.entries), "replayed": n_replayed}
    text = f"{arguments.out}: {len(board.entries)} entries, {n_replayed} of them replayed, {len(files)} pages, "
    show(arguments, {**facts, "refused": refused}, f"{text}{len(refused)} refused")
    return PROBLEMS_FOUND if refused else 0
