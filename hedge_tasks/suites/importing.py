"""`hedge data SUITE`: released files and a user's own copies of the images made into a local data set."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.numbers import Cell, Table
from hedge_tasks.registry import OWN, Registration

if TYPE_CHECKING:
    from hedge_tasks.data.local_data import BuiltSet, HasImage, ReadImage


@dataclass(frozen=True)
class ReleasedPart:
    """One part of a benchmark, as it was read.

    Attributes:
        items: each with the name of its image.
        build: writes items below a folder, given what reads an image.
        faults: what is not as it should be, a line each.
        remarks: what a user should know besides, a line each.
        judged: answers that people judged, a row each, as `hedge judge --check` reads them.
    """

    items: Sequence[HasImage]
    build: Callable[[ReadImage, Path], BuiltSet]
    faults: Sequence[str] = ()
    remarks: Sequence[str] = ()
    judged: Sequence[Mapping[str, Any]] = ()


Release = tuple[Mapping[str, ReleasedPart], "ReadImage"]
"""Parts of a benchmark by name, and what reads an image."""


def add_release(name: str, text: str, files: str, read: str, commands: Parser) -> None:
    """Add the command that imports a benchmark.

    Args:
        name: of the suite.
        text: what the command does, one line that begins in lower case.
        files: the released file or folder, for its help.
        read: `"module:function"`: from the released files and a folder of images to a `Release`.
    """
    parser = command(commands, name, partial(_import, read), text)
    parser.add_argument("files", type=Path, metavar="FILES", help=files)
    text = "folder with the images, searched with its folders (default: that of the files)"
    parser.add_argument("--images", type=Path, metavar="DIR", help=text)
    add_out(parser, "folder that HEDGE_DATA_DIR will name; without it there is only the check")


def _import(read: str, arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.local_data import listed, look_at_images
    from hedge_tasks.io.files import write_whole

    folder = arguments.files if arguments.files.is_dir() else arguments.files.parent
    parts, read_image = Registration(read, OWN).load()(arguments.files, arguments.images or folder)
    rows: list[dict[str, Cell]] = []
    lines: list[str] = []
    facts: dict[str, Any] = {}
    for name, part in parts.items():
        if arguments.out is None:
            images = look_at_images(part.items, read_image)
            usable, files = len(images.usable), {}
        else:
            images = part.build(read_image, arguments.out)
            usable, files = images.built, dict(images.files)
        unseen = {"images missing": images.missing, "images unreadable": images.unreadable}
        rows.append({"part": name, "items": len(part.items), "with an image": usable})
        facts[name] = {**rows[-1], **asdict(images), "files": files, "faults": part.faults, "remarks": part.remarks}
        lines += [f"{name}: {kind}: {listed(names)}" for kind, names in unseen.items() if names]
        lines += [f"{name}: {line}" for line in (*part.faults, *part.remarks)]
    if arguments.out is not None:
        if judged := [row for part in parts.values() for row in part.judged]:
            file = arguments.out / "judged.jsonl"
            write_whole(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in judged))
            lines.append(f"{len(judged)} answers that people judged: {file}")
        built = any(fact["files"] for fact in facts.values())
        lines.append(f"Now set HEDGE_DATA_DIR={arguments.out}" if built else "No data set was written.")
    show(arguments, facts, Table.of(list(rows[0]), [list(row.values()) for row in rows]), "\n".join(lines))
    complete = all(row["items"] == row["with an image"] for row in rows)
    return PROBLEMS_FOUND if not complete or any(part.faults for part in parts.values()) else 0
