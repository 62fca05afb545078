"""`hedge store`: what is in an answer store, and getting it out, in, and checked."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import PROBLEMS_FOUND
from hedge_tasks.io.places import Place


def info(store: Place) -> dict[str, Any]:
    """Say what is in a store, by definition.

    Args:
        store: Folder or URL of the store, or lmms-eval's output folder.
    """
    from hedge_tasks.io.places import size_of
    from hedge_tasks.sampling import archive

    opened = archive.open_store(store)
    files = [*opened.files(), *opened.segments()]
    return {
        "store": str(opened.folder),
        "files": len(files),
        "bytes": sum(size_of(file) for file in files),
        "answers": len(opened),
        "without_definition": archive.orphans(opened),
        "dropped": len(opened.dropped),
        "definitions": [
            {"id": d.id, **d.model_dump(), **vars(archive.progress(opened, d))} for d in opened.definitions.values()
        ],
    }


def export(store: Place, *, out: Path, definition: str | None = None, draws: int | None = None) -> dict[str, Any]:
    """Write complete answer sets as JSONL, for hedge score or another store.

    Args:
        store: Folder or URL of the store, or lmms-eval's output folder.
        out: A file of answers (JSON lines).
        definition: Which one, where the store holds several (see info).
        draws: Only so many clean and noisy answers of each question.
    """
    from hedge_tasks.errors import DataError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.sampling import archive

    opened = archive.open_store(store)
    chosen = archive.choose_definition(opened, definition)
    exported = archive.export(opened, chosen, draws)
    if not exported.lines:
        raise DataError(f"{opened.folder}: no document of {chosen.id} has all its answers; nothing was written")
    write_whole(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in exported.lines))
    facts = {"out": str(out), "definition": chosen.id, "documents": len(exported.lines), "n": exported.n}
    return {**facts, "n_noisy": exported.n_noisy, "incomplete": list(exported.incomplete)}


def import_(answers: Path, *, into: Place) -> dict[str, Any]:
    """Put exported answers into a store.

    Args:
        answers: File of `hedge store export`.
        into: Folder or URL of the store, made if missing.
    """
    from hedge_tasks.io.json_lines import read_objects
    from hedge_tasks.sampling import archive
    from hedge_tasks.sampling.store import AnswerStore

    lines = read_objects(answers)
    with closing(AnswerStore(into)) as store:
        added, conflicts = archive.import_lines(store, lines)
    return {"into": str(into), "added": added, "conflicts": conflicts}


def merge(stores: list[Place], *, into: Place) -> dict[str, Any]:
    """Copy the answers of stores into one.

    Args:
        stores: Folders or URLs.
        into: Folder or URL of the store, made if missing.
    """
    from hedge_tasks.sampling import archive
    from hedge_tasks.sampling.store import AnswerStore

    sources = [archive.open_store(folder) for folder in stores]
    with closing(AnswerStore(into)) as store:
        added, conflicts = archive.merge_into(store, sources)
    return {"into": str(into), "added": added, "conflicts": conflicts}


def compact(store: Place, *, all_: bool = False) -> dict[str, Any]:
    """Make Parquet of what processes that have ended have written.

    Args:
        store: Folder or URL of the store, or lmms-eval's output folder.
        all_: Also what other machines have written: you know that none is still writing.
    """
    from hedge_tasks.sampling.archive import store_place
    from hedge_tasks.sampling.compaction import compact as compact_store
    from hedge_tasks.sampling.inside_files import compact_inside

    folder = store_place(store)
    done = compact_store(folder, everything=all_)
    inside = compact_inside(folder, everything=all_)
    return {"store": str(folder), **vars(done), "left": {**done.left, **inside.left}, "inside": inside}


def verify(store: Place) -> tuple[dict[str, Any], int]:
    """Check every record; exit code 1 if something is wrong.

    Args:
        store: Folder or URL of the store, or lmms-eval's output folder.
    """
    from hedge_tasks.numbers import Column, Table
    from hedge_tasks.sampling import archive
    from hedge_tasks.sampling.inside_files import problems_inside

    opened = archive.open_store(store)
    kinds = [("damaged", line) for line in opened.dropped] + [("conflict", line) for line in opened.conflicts]
    problems = [
        {"place": f"{line.file.name}:{line.number}", "kind": kind, "problem": str(line.problem)} for kind, line in kinds
    ]
    arrays, wrong = problems_inside(opened.folder) if opened.folder is not None else (0, [])
    problems += wrong
    facts = {"store": str(opened.folder), "answers": len(opened), "without_definition": archive.orphans(opened)}
    table = Table([*map(Column, ("place", "kind", "problem"))], problems, f"{len(problems)} problems")
    return {**facts, "arrays_from_inside": arrays, "problems": table}, PROBLEMS_FOUND if problems else 0


COMMANDS = {"info": info, "export": export, "import": import_, "merge": merge, "compact": compact, "verify": verify}
