"""`hedge leaderboard`: make, check, replay and show leaderboard entries."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hedge_tasks.cli.choices import RunChoice
from hedge_tasks.cli.printing import typed
from hedge_tasks.io.commands import PROBLEMS_FOUND


def init(folder: Path) -> dict[str, Any]:
    """Make a repository for a leaderboard: entries, workflow, README.

    Args:
        folder: Folder to make.
    """
    from hedge_tasks.leaderboard.repository import make_repository

    files = make_repository(folder)
    start = shlex.join(["git", "-C", str(folder), "init", "--initial-branch", "main"])
    then = f"Next: {start}; commit, push it to GitHub, and choose Pages from GitHub Actions"
    return {"folder": folder, "files": files, "notes": [then]}


def submit(
    run: RunChoice, *, out: Path = Path("board"), model_name: str | None = None, revision: str | None = None
) -> dict[str, Any]:
    """Write a run as an entry, and say how to open the pull request.

    Args:
        out: A folder, or a clone of the leaderboard's repository.
        model_name: The model's id on the Hub, or local/NAME, in place of the run's.
        revision: Of the model's weights.
    """
    from hedge_tasks.leaderboard.entry import entry_of, place_of, write_entry
    from hedge_tasks.leaderboard.repository import commands_for

    entry = entry_of(run.load(), model_name, revision)
    file = place_of(out, entry)
    write_entry(file, entry)
    facts = {"entry": file, "model": entry.model, "revision": entry.revision, "edition": entry.edition}
    notes = ["Has it a place?", typed("leaderboard", "check", file), "The pull request:"]
    notes += commands_for(file, f"Entry: {entry.title} on {entry.task}")
    return {**facts, "documents": len(entry.documents), "notes": notes}


def check(entries: list[Path], *, beside: Path | None = None) -> tuple[dict[str, Any], int]:
    """Say whether entries have a place on a board; exit code 1 if not.

    Args:
        entries: Files of `hedge leaderboard submit`.
        beside: Board whose entries they must not repeat.
    """
    from hedge_tasks.errors import ConfigError, HedgeError
    from hedge_tasks.leaderboard.board import Rules, entries_folder, faults, repeats
    from hedge_tasks.leaderboard.entry import Entry, read_entry
    from hedge_tasks.numbers import Table

    own = {path.resolve() for path in entries}
    files = sorted(entries_folder(beside).glob("*.json")) if beside is not None else []
    others: dict[str, Entry] = {file.name: read_entry(file) for file in files if file.resolve() not in own}
    rows = []
    for path in entries:
        if path.is_dir():
            raise ConfigError(f"{path}: a folder; give files of `hedge leaderboard submit`, as in {path}/*.json")
        try:
            entry = read_entry(path)
            refused = "; ".join(filter(None, [*faults(entry, Rules()), repeats(entry, others)]))
            others[path.name] = entry
        except HedgeError as error:
            refused = str(error)
        rows.append([str(path), "none" if refused else "as not replayed", refused])
    table = Table.of(("entry", "place", "refused"), rows)
    return {"entries": table}, PROBLEMS_FOUND if any(refused for *_, refused in rows) else 0


def replay(
    entry: Path, *, model: str, model_args: str = "", documents: int = 24, out: Path | None = None
) -> tuple[dict[str, Any], int]:
    """Have the model read an entry's answers again, and draw fresh ones.

    Args:
        entry: File of `hedge leaderboard submit`.
        model: Adapter, such as hedge_hf, hedge_vllm or hedge_openai.
        model_args: Of the adapter, as for lmms-eval: pretrained=... or base_url=...,model=...
        documents: Questions picked.
        out: File of the outcome, in place of replays/ beside the entries.
    """
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
    from hedge_tasks.lmms.measured import load_task
    from hedge_tasks.models import adapter_class

    options.count("documents", documents, at_least=1)
    adapter = adapter_class(model)  # a wrong name is told before anything is read
    submitted = read_entry(entry)
    if wrong := faults(submitted, Rules()):
        raise DataError(f"{entry}: {'; '.join(wrong)}")
    name = display_name(SimpleNamespace(model=model, model_args=model_args)) or model
    replayer = adapter.create_from_arg_string(model_args)
    steps = partial(progress, name="Replaying", unit="question")
    # The seed is drawn here: whoever wrote the entry could not know which questions would be read.
    seed = secrets.randbelow(1 << 40)
    outcome = replay_entry(submitted, load_task(submitted.task), replayer, name, documents, seed, steps)
    file = out or entry.resolve().parent.parent / REPLAYS / f"{submitted.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(outcome.model_dump(), indent=1) + "\n")
    facts = {"file": file, "replayed": outcome.holds, **outcome.model_dump(), "notes": [outcome.in_words]}
    return facts, 0 if outcome.holds else PROBLEMS_FOUND


def build(folder: Path, *, out: Path = Path("site"), cache: Path | None = None) -> tuple[dict[str, Any], int]:
    """Make a static site from a folder of entries.

    Args:
        folder: A board's repository, or a folder with *.json.
        out: Folder of the site.
        cache: Where what was measured is kept, in place of .cache in the folder.
    """
    from functools import partial

    from hedge_tasks.io.progress import progress
    from hedge_tasks.leaderboard.board import read_board
    from hedge_tasks.leaderboard.site import build_site
    from hedge_tasks.numbers import Table

    steps = partial(progress, name="Measuring", unit="entry")
    board = read_board(folder, cache or folder / ".cache", steps)
    files = build_site(board, out)
    refused = Table.of(("entry", "refused"), [(str(path), reason) for path, reason in board.refused.items()])
    n_replayed = sum(entry.replayed for entry in board.entries)
    facts = {"site": out, "pages": len(files), "entries": len(board.entries), "replayed": n_replayed}
    return {**facts, "refused": refused}, PROBLEMS_FOUND if board.refused else 0


COMMANDS = {"init": init, "submit": submit, "check": check, "replay": replay, "build": build}
