"""`hedge store`: what is in an answer store, and getting it out, in, and checked."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, place_argument, show
from hedge_tasks.numbers import count_of


def add(commands: Parser) -> None:
    parts = commands.add_command("store", "look into an answer store, export, import, merge, compact and verify")

    info = command(parts, "info", _info, "say what is in a store, by definition")
    _store_argument(info)

    export = command(parts, "export", _export, "write complete answer sets as JSONL, for hedge score or another store")
    _store_argument(export)
    add_out(export, "a file of answers (JSON lines)", required=True)
    export.add_argument("--definition", metavar="ID", help="which one, where the store holds several (see info)")
    export.add_argument("--n", type=int, help="only the first n clean and n noisy answers")

    load = command(parts, "import", _import, "put exported answers into a store")
    load.add_argument("answers", type=Path, metavar="ANSWERS.jsonl")
    load.add_argument(
        "--into", type=place_argument, required=True, metavar="STORE", help="folder or URL, made if missing"
    )

    merge = command(parts, "merge", _merge, "copy the answers of stores into one")
    merge.add_argument("stores", type=place_argument, nargs="+", metavar="STORE")
    merge.add_argument(
        "--into", type=place_argument, required=True, metavar="STORE", help="folder or URL, made if missing"
    )

    compact = command(parts, "compact", _compact, "make Parquet of what processes that have ended have written")
    _store_argument(compact)
    compact.add_argument(
        "--all", action="store_true", help="also what other machines have written: you know that none is still writing"
    )

    verify = command(parts, "verify", _verify, "check every record; exit code 1 if something is wrong")
    _store_argument(verify)


def _store_argument(parser: argparse.ArgumentParser) -> None:
    help_ = "folder or URL of the store, or lmms-eval's output folder"
    parser.add_argument("store", type=place_argument, metavar="STORE", help=help_)


def _info(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.places import size_of
    from hedge_tasks.sampling import archive

    store = archive.open_store(arguments.store)
    definitions = [
        {"id": d.id, **d.model_dump(), **vars(archive.progress(store, d))} for d in store.definitions.values()
    ]
    files = [*store.files(), *store.segments()]
    facts = {
        "store": str(store.folder),
        "files": len(files),
        "bytes": sum(size_of(file) for file in files),
        "answers": len(store),
        "without_definition": archive.orphans(store),
        "dropped": len(store.dropped),
        "definitions": definitions,
    }
    show(arguments, facts, _info_text(facts))
    return 0


def _info_text(facts: dict[str, Any]) -> str:
    from hedge_tasks.numbers import Format

    size = Format(digits=1, suffix=" MB")(facts["bytes"] / 1e6)
    lines = [
        f"{facts['store']}: {facts['answers']} answers in {facts['files']} files, {size}"
        + (f"; {facts['dropped']} damaged records dropped" if facts["dropped"] else ""),
    ]
    if facts["without_definition"]:
        lines.append(f"{facts['without_definition']} answers belong to no definition in the store")
    for d in facts["definitions"]:
        sampling, noise = d["sampling"], d["sampling"]["perturbation"]
        lines += [
            "",
            f"{d['id']}  {d['task']}, prompt {d['prompt'].get('name')}, model {d['model']}",
            f"  T {sampling['temperature']:g} (baseline {sampling['baseline_temperature']:g}), perturbation "
            f"{noise['name']}, strength {noise.get('strength', 1):g}, seed {sampling['seed']}",
            f"  {d['complete']} of {d['documents']} documents complete: "
            f"1 baseline, {d['n']} clean, {d['n_noisy']} noisy answers each",
        ]
    return "\n".join(lines)


def _export(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.sampling import archive

    store = archive.open_store(arguments.store)
    definition = archive.choose_definition(store, arguments.definition)
    exported = archive.export(store, definition, arguments.n)
    if not exported.lines:
        raise DataError(f"{store.folder}: no document of {definition.id} has all its answers; nothing was written")
    write_whole(arguments.out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in exported.lines))
    facts = {
        "out": str(arguments.out),
        "definition": definition.id,
        "documents": len(exported.lines),
        "n": exported.n,
        "n_noisy": exported.n_noisy,
        "incomplete": list(exported.incomplete),
    }
    text = (
        f"{facts['documents']} documents of {definition.task} written to {arguments.out}: "
        f"1 baseline, {exported.n} clean, {exported.n_noisy} noisy answers each"
    )
    if exported.incomplete:
        text += f"\npartial: {count_of(len(exported.incomplete), 'document')} without all answers yet, left out"
    show(arguments, facts, text)
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.json_lines import read_objects
    from hedge_tasks.sampling import archive
    from hedge_tasks.sampling.store import AnswerStore

    lines = read_objects(arguments.answers)
    with closing(AnswerStore(arguments.into)) as store:
        added, conflicts = archive.import_lines(store, lines)
    return _report_added(arguments, added, conflicts)


def _merge(arguments: argparse.Namespace) -> int:
    from hedge_tasks.sampling import archive
    from hedge_tasks.sampling.store import AnswerStore

    sources = [archive.open_store(folder) for folder in arguments.stores]
    with closing(AnswerStore(arguments.into)) as store:
        added, conflicts = archive.merge_into(store, sources)
    return _report_added(arguments, added, conflicts)


def _report_added(arguments: argparse.Namespace, added: int, conflicts: int) -> int:
    text = f"{count_of(added, 'answer')} added to {arguments.into}"
    if conflicts:
        text += f"; {conflicts} left out, because the store has other answers to the same draws"
    show(arguments, {"into": str(arguments.into), "added": added, "conflicts": conflicts}, text)
    return 0


def _compact(arguments: argparse.Namespace) -> int:
    from hedge_tasks.sampling.archive import store_place
    from hedge_tasks.sampling.compaction import compact
    from hedge_tasks.sampling.inside_files import compact_inside

    folder = store_place(arguments.store)
    done = compact(folder, everything=arguments.all)
    text = f"{folder}: {count_of(done.rows, 'record')} of {count_of(done.replaced, 'file')} in "
    text += count_of(done.segments, "new segment") if done.segments else "no new segment: there was nothing to do"
    inside = compact_inside(folder, everything=arguments.all)
    if inside.replaced:
        text += f"\narrays from inside of {count_of(inside.documents, 'document')}: one file of {inside.replaced}"
    left = {**done.left, **inside.left}
    facts = {"store": str(folder), **vars(done), "left": left, "inside": inside}
    show(arguments, facts, text, *(f"{name}: {why}" for name, why in left.items()))
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from hedge_tasks.numbers import Column, Table
    from hedge_tasks.sampling import archive
    from hedge_tasks.sampling.inside_files import problems_inside

    store = archive.open_store(arguments.store)
    kinds = [("damaged", line) for line in store.dropped] + [("conflict", line) for line in store.conflicts]
    problems = [
        {"place": f"{line.file.name}:{line.number}", "kind": kind, "problem": str(line.problem)} for kind, line in kinds
    ]
    arrays, wrong = problems_inside(store.folder) if store.folder is not None else (0, [])
    problems += wrong
    facts = {
        "store": str(store.folder),
        "answers": len(store),
        "without_definition": archive.orphans(store),
        "arrays_from_inside": arrays,
        "problems": problems,
    }
    columns = [Column("place"), Column("kind"), Column("problem")]
    arrays_note = f" and {count_of(arrays, 'array')} from inside" if arrays else ""
    title = f"{store.folder}: {count_of(len(store), 'answer')}{arrays_note}, {count_of(len(problems), 'problem')}"
    show(arguments, facts, Table(columns, problems, title))
    return PROBLEMS_FOUND if problems else 0
