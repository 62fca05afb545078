"""`hedge store`: look into an answer store and check it, export, import."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.printing import Details
from hedge_tasks.io.commands import PROBLEMS_FOUND
from hedge_tasks.io.places import Place

if TYPE_CHECKING:
    from hedge_tasks.sampling.definition import Definition
    from hedge_tasks.sampling.store import AnswerStore


def info(store: Place) -> tuple[dict[str, Any], int]:
    """Say what is in a store, by definition, and check every record; exit code 1 if something is wrong.

    Args:
        store: Folder or URL of the store, or lmms-eval's output folder.
    """
    from hedge_tasks.io.places import size_of
    from hedge_tasks.sampling import archive

    opened = archive.open_store(store)
    files = [*opened.files(), *opened.segments()]
    kinds = [("damaged", line) for line in opened.dropped] + [("conflict", line) for line in opened.conflicts]
    problems = [
        {"place": f"{line.file.name}:{line.number}", "kind": kind, "problem": str(line.problem)} for kind, line in kinds
    ]
    return {
        "store": opened.folder,
        "files": len(files),
        "bytes": sum(map(size_of, files)),
        "answers": len(opened),
        "definitions": [_about(opened, definition) for definition in opened.definitions.values()],
        "problems": problems,
    }, PROBLEMS_FOUND if problems else 0


def _about(opened: AnswerStore, definition: Definition) -> dict[str, Any]:
    """Return a definition, and how far it is."""
    from hedge_tasks.sampling import archive

    n, n_noisy = archive.requested_numbers(opened, definition)
    sets = archive.complete_sets(opened, definition)
    complete, incomplete = len(sets.answer_sets), len(sets.incomplete)
    counts = {"documents": complete + incomplete, "complete": complete, "n": n, "n_noisy": n_noisy}
    settings = definition.model_dump().items()
    return {"id": definition.id, **{k: Details(v) if isinstance(v, dict) else v for k, v in settings}, **counts}


def export(store: Place, *, out: Place) -> dict[str, Any]:
    """Write a whole store as one Parquet file, for another store.

    Args:
        store: Folder or URL of the store, or lmms-eval's output folder.
        out: A file or URL that ends in .parquet.
    """
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.sampling.archive import records_of
    from hedge_tasks.sampling.segments import SUFFIX, write_segment

    if not out.name.endswith(SUFFIX):
        raise ConfigError(f"--out {out}: expected a name that ends in {SUFFIX}")
    return {"out": out, "records": write_segment(out, records_of(store))}


def import_(sources: list[Place], *, into: Place) -> dict[str, Any]:
    """Put what stores or exported files hold into a store; of two answers to a draw the one that is there stays.

    Args:
        sources: Folders or URLs of stores, or files of `hedge store export`.
        into: Folder or URL of the store, made if missing.
    """
    from hedge_tasks.sampling.archive import records_of
    from hedge_tasks.sampling.store import AnswerStore

    with closing(AnswerStore(into)) as store:
        counts = [store.add(records_of(source)) for source in sources]
    return {"into": into, "added": sum(n for n, _ in counts), "conflicts": sum(n for _, n in counts)}


COMMANDS = {"info": info, "export": export, "import": import_}
