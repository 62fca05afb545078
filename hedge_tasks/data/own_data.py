"""A user's own table as the data of a task: what is wrong with its rows, and a parquet file with all pictures in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.columns import Roles
from hedge_tasks.data.groups import find_groups
from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.pictures import image_file_fault
from hedge_tasks.data.splits import download_picture
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown
from hedge_tasks.io.progress import progress

_SHOWN = 5


@dataclass
class RowFindings:
    """Findings of a look at all rows.

    Attributes:
        faults: number of a row from 0 -> why it cannot be asked or judged.
        repeated: rows that ask and show the same as one before.
        pictures: number of different pictures (several columns count as one).
        groups: number of groups of questions that belong together.
    """

    faults: dict[int, str] = field(default_factory=dict)
    repeated: int = 0
    pictures: int = 0
    groups: int = 0


def look_at(table: StoredTable, roles: Roles, folder: Path) -> RowFindings:
    """Read every row and every picture.

    Args:
        folder: from which names of pictures count.
    """
    found = RowFindings()
    pictures = _Pictures(folder)
    seen: set[str] = set()
    shown: set[str] = set()
    declared: list[str | None] = []
    pictured: list[str | None] = []
    columns = [*roles.texts(), *roles.images]
    for row, values in enumerate(progress(table.rows(columns), total=table.n_rows, name="Reading", unit="row")):
        try:
            texts = {column: cells.text(values[column]) for column in roles.texts()}
            digests = [pictures.digest(values[column]) for column in roles.images]
        except DataError as error:
            found.faults[row] = str(error)
            continue
        empty = [what for what, column in (("question", roles.question), ("answer", roles.answer)) if not texts[column]]
        if empty:
            found.faults[row] = f"no {empty[0]}"
            continue
        picture = "".join(digests)
        key = f"{texts[roles.question]}\0{texts[roles.answer]}\0{picture}"
        found.repeated += key in seen
        seen.add(key)
        shown.add(picture)
        declared.append(texts[roles.group] or None if roles.group else None)
        pictured.append(picture or f"text {texts[roles.question]}")
    found.pictures = len(shown) if roles.images else 0
    found.groups = find_groups(declared, pictured).found
    return found


def describe(faults: Mapping[int, str], n_rows: int) -> str:
    """The first rows that cannot be used, with the reasons."""
    first = "; ".join(f"row {row + 1}: {why}" for row, why in list(faults.items())[:_SHOWN])
    more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    return f"{len(faults)} of {n_rows} rows cannot be used: {first}{more}"


def write_data(table: StoredTable, roles: Roles, folder: Path, without: Sequence[int], file: Path) -> None:
    """Write the columns that are used as a parquet file, pictures as they are in their files.

    Args:
        folder: from which names of pictures count.
        without: rows that are left out.

    Raises:
        DataError: the file cannot be written.
    """
    from datasets import Image, Value

    columns = {**{column: Value("string") for column in roles.texts()}, **{column: Image() for column in roles.images}}
    left_out = frozenset(without)

    def rows() -> Iterator[Mapping[str, Any]]:
        for row, values in enumerate(table.rows(list(columns))):
            if row not in left_out:
                pictures = {
                    column: {"bytes": content_of(values[column], folder), "path": None} for column in roles.images
                }
                yield {**{column: cells.text(values[column]) for column in roles.texts()}, **pictures}

    write_rows(file, rows(), columns)


def content_of(value: object, folder: Path) -> bytes:
    """The bytes of a picture's file.

    Args:
        value: bytes, `{"bytes", "path"}`, an https:// address, or the name of a file.
        folder: from which names count.

    Raises:
        DataError: there is none, or the file cannot be had.
    """
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise DataError("no picture")
    if not isinstance(value, str):
        raise DataError(f"expected a picture, got {shown(value)}")
    try:
        return download_picture(value) if "://" in value else (folder / value).read_bytes()
    except DataError:
        raise
    except Exception as error:  # file system or network: many kinds, and all mean the same to the user
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        where = "" if "://" in value else f" (from {folder})"
        raise DataError(f"the picture {value[:200]!r}{where} cannot be had: {reason}") from None


class _Pictures:
    """Digests of pictures that can be shown; a file is read once however many rows name it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str | DataError] = {}

    def digest(self, value: object) -> str:
        """A digest of the file.

        Raises:
            DataError: there is no picture, or it cannot be shown.
        """
        if not isinstance(value, str):
            return self._digest(value)
        if value not in self._known:
            try:
                self._known[value] = self._digest(value)
            except DataError as error:
                self._known[value] = error
        found = self._known[value]
        if isinstance(found, DataError):
            raise DataError(str(found))
        return found

    def _digest(self, value: object) -> str:
        content = content_of(value, self._folder)
        if fault := image_file_fault(content, decode=True):
            raise DataError(f"{value!r}: {fault}" if isinstance(value, str) else fault)
        return hashlib.sha256(content).hexdigest()
