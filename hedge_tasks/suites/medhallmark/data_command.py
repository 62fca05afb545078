"""`hedge data medhallmark`: Med-HallMark out of its JSON files and your copies of the images."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import Cell, Table

if TYPE_CHECKING:
    from hedge_tasks.data.local_data import BuiltSet

_PARTS = ("conventional", "confidence", "counterfactual", "irg")


def add(commands: Parser) -> None:
    parser = command(
        commands, "medhallmark", _build, "build Med-HallMark from its JSON files and your copies of its images"
    )
    parser.add_argument(
        "--json-files",
        type=Path,
        metavar="DIR",
        required=True,
        help="folder with Conventional..json, Counterfactual..json, Confidence_weakening.json and Irg.json",
    )
    parser.add_argument("--images", type=Path, metavar="DIR", help="folder with the images, searched with its folders")
    add_out(parser, "folder that HEDGE_DATA_DIR will name")
    parser.add_argument("--part", action="append", choices=_PARTS, help="only this part (repeat for several)")
    parser.add_argument(
        "--judged",
        type=Path,
        metavar="FILE.jsonl",
        help="write the answers that people judged, for hedge judge --check FILE --scheme medhallmark",
    )


def _build(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.suites.medhallmark.building import SOURCES, build
    from hedge_tasks.suites.medhallmark.released import oddities, read_part

    parts = arguments.part or list(_PARTS)
    facts: dict[str, Any] = {}
    lines: list[str] = []
    incomplete = False
    if arguments.out is None and arguments.judged is None:
        raise ConfigError("nothing to do: give --out for a data set, or --judged for the judged answers")
    if arguments.out is not None and arguments.images is None:
        raise ConfigError("a data set needs --images, too")
    if arguments.judged is not None:
        facts["labels"] = _write_labels(arguments.json_files, arguments.judged, parts)
        lines.append(f"{facts['labels']} judged answers written to {arguments.judged}")
    if arguments.out is not None:
        built = build(arguments.json_files, arguments.images, arguments.out, parts)
        odd = {part: oddities(part, read_part(arguments.json_files, part)) for part in parts}
        facts["parts"] = [_facts(part, built[part], odd[part]) for part in parts]
        lines.append(_text(built, odd, SOURCES))
        lines.append(
            f"Now set HEDGE_DATA_DIR={arguments.out}"
            if any(p.files for p in built.values())
            else "Nothing was written."
        )
        incomplete = any(part.built < part.items for part in built.values())
    show(arguments, facts, "\n".join(lines))
    return PROBLEMS_FOUND if incomplete else 0


def _facts(part: str, built: BuiltSet, oddities: Sequence[str]) -> dict[str, Any]:
    file = next(iter(built.files.values()), None)
    return {"part": part, "file": str(file) if file else None, **built.facts(), "oddities": list(oddities)}


def _text(built: Mapping[str, BuiltSet], odd: Mapping[str, Sequence[str]], sources: Mapping[str, str]) -> str:
    header = ["part", "items", "built", "images missing", "unreadable"]
    rows: list[list[Cell]] = [[n, b.items, b.built, len(b.missing), len(b.unreadable)] for n, b in built.items()]
    lines = [str(Table.of(header, rows))]
    for name, part in built.items():
        lines += [f"{name}: {line}; from {sources[name]}" for line in part.faults()]
        lines += [f"{name}: {line}" for line in odd[name]]
    return "\n".join(lines)


def _write_labels(folder: Path, out: Path, parts: list[str]) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.suites.medhallmark.released import read_part

    items = [item for part in parts for item in read_part(folder, part) if item.category is not None]
    rows = [
        {
            "id": item.id,
            "image": item.image,
            "question": item.question,
            "reference": item.reference or None,
            "answer": item.answer,
            "label": item.category,
            "suspect": item.suspect,
        }
        for item in items
    ]
    write_whole(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)
