"""`hedge data SUITE`: released files and a user's own copies of the images made into a local data set."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hedge_tasks.data.local_data import BuiltSet, HasImage, ReadImage, listed
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import Cell, Table


@dataclass(frozen=True)
class ReleasedPart:
    """One part of a benchmark, as it was read.

    Attributes:
        items: each with the name of its image.
        build: writes items below a folder, given what reads an image; no folder: looks at the images.
        faults: what is not as it should be, a line each.
        judged: answers that people judged, a row each, as `hedge judge --check` reads them.
    """

    items: Sequence[HasImage]
    build: Callable[[ReadImage, Path | None], BuiltSet]
    faults: Sequence[str] = ()
    judged: Sequence[Mapping[str, Any]] = ()


Release = tuple[Mapping[str, ReleasedPart], ReadImage]
"""Parts of a benchmark by name, and what reads an image."""


def add_release(name: str, text: str, files: str, read: Callable[[Path, Path], Release], commands: Parser) -> None:
    """Add the command that imports a benchmark.

    Args:
        name: of the suite.
        text: what the command does, one line that begins in lower case.
        files: the released file or folder, for its help.
        read: from the released files and a folder of images to a `Release`.
    """
    parser = command(commands, name, partial(_import, read), text)
    parser.add_argument("files", type=Path, metavar="FILES", help=files)
    text = "folder with the images, searched with its folders (default: that of the files)"
    parser.add_argument("--images", type=Path, metavar="DIR", help=text)
    add_out(parser, "folder that HEDGE_DATA_DIR will name; without it there is only the check")


def _import(read: Callable[[Path, Path], Release], arguments: argparse.Namespace) -> int:
    files, out = arguments.files, arguments.out
    parts, read_image = read(files, arguments.images or (files if files.is_dir() else files.parent))
    rows: list[dict[str, Cell]] = []
    lines: list[str] = []
    facts: dict[str, Any] = {}
    for name, part in parts.items():
        images = part.build(read_image, out)
        rows.append({"part": name, "items": len(part.items), "with an image": images.built})
        facts[name] = {**rows[-1], **asdict(images), "faults": part.faults}
        lines += [f"{name}: {line}" for line in (*_unseen(images), *part.faults)]
    if out is not None:
        built = any(fact["files"] for fact in facts.values())
        lines += _judged(parts.values(), out)
        lines.append(f"Now set HEDGE_DATA_DIR={out}" if built else "No data set was written.")
    show(arguments, facts, Table.of(list(rows[0]), [list(row.values()) for row in rows]), "\n".join(lines))
    complete = all(row["items"] == row["with an image"] for row in rows)
    return PROBLEMS_FOUND if not complete or any(part.faults for part in parts.values()) else 0


def _unseen(images: BuiltSet) -> list[str]:
    by_kind = {"images missing": images.missing, "images unreadable": images.unreadable}
    return [f"{kind}: {listed(names)}" for kind, names in by_kind.items() if names]


def _judged(parts: Iterable[ReleasedPart], out: Path) -> list[str]:
    """Write the answers that people judged, and say where."""
    from hedge_tasks.io.files import write_whole

    judged = [row for part in parts for row in part.judged]
    if not judged:
        return []
    write_whole(out / "judged.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in judged))
    return [f"{len(judged)} answers that people judged: {out / 'judged.jsonl'}"]
