"""`hedge data SUITE`: released files and a user's own copies of the images made into a local data set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.data.local_data import BuiltSet, HasImage, ReadImage, listed
from hedge_tasks.io.commands import PROBLEMS_FOUND


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


@dataclass(frozen=True)
class ImportChoice:
    """The images of a benchmark, and its data set.

    Attributes:
        images: Folder with the images, searched with its folders; that of the files if not given.
        out: Folder that HEDGE_DATA_DIR will name; without it there is only the check.
    """

    images: Path | None = None
    out: Path | None = None


def imported(read: Callable[[Path, Path], Release], files: Path, choice: ImportChoice) -> tuple[dict[str, Any], int]:
    """Check a download, build the data set if a folder is named, and return facts and exit code of the command.

    Args:
        read: From the released files and a folder of images to a `Release`.
        files: The released file or folder.
    """
    parts, read_image = read(files, choice.images or (files if files.is_dir() else files.parent))
    out, notes, facts = choice.out, list[str](), dict[str, Any]()
    complete, built = True, False
    for name, part in parts.items():
        images = part.build(read_image, out)
        facts[name] = {"items": len(part.items), **asdict(images), "faults": part.faults}
        notes += [f"{name}: {line}" for line in (*_unseen(images), *part.faults)]
        complete = complete and images.built == len(part.items) and not part.faults
        built = built or bool(images.files)
    if out is not None:
        notes += _judged(parts.values(), out)
        notes.append(f"Now set HEDGE_DATA_DIR={out}" if built else "No data set was written.")
    return {**facts, "notes": notes}, 0 if complete else PROBLEMS_FOUND


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
