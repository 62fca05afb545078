"""Local data sets out of released files and a user's own copies of the images. Nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from hedge_tasks.data.pictures import PICTURE_FILES, image_file_fault
from hedge_tasks.errors import DataError

ReadImage = Callable[[str], bytes | None]
"""Name of an image -> its bytes, None if there is none."""

_ROWS_AT_ONCE = 64


class ImageFolder:
    """The images below a folder, found by the end of their names.

    "rad/synpic1.jpg" is found as `.../synpic1.jpg`; "slake/xmlab1/source.jpg", whose file name says nothing, as
    `.../xmlab1/source.jpg`. Capitals and the kind of image file (jpg, png, ...) do not matter.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder")
        self._files: dict[str, list[Path]] = {}
        for place, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place) / name
                if path.suffix.lower() in PICTURE_FILES:
                    self._files.setdefault(_key(path.as_posix()), []).append(path)

    def read(self, name: str) -> bytes | None:
        """The bytes of an image; None if there is none of that name.

        Raises:
            DataError: several files fit and differ.
        """
        found = self._files.get(_key(name), [])
        contents = {path: path.read_bytes() for path in found}
        if len(set(contents.values())) > 1:
            places = ", ".join(map(str, found[:3]))
            raise DataError(f"the image {name!r} may be one of several that differ: {places}")
        return next(iter(contents.values()), None)


def _key(name: str) -> str:
    path = PurePosixPath(name.lower()).with_suffix("")
    return "/".join(path.parts[-2:] if path.name == "source" else path.parts[-1:])


def image_fault(content: bytes | None) -> str | None:
    """What is wrong with an image file: "missing", "unreadable", or None if nothing is."""
    if content is None:
        return "missing"
    return "unreadable" if image_file_fault(content, decode=False) else None


def image_faults(names: Iterable[str], read_image: ReadImage) -> dict[str, str | None]:
    """`image_fault` of every distinct image, by name; read one by one, for all of them may be larger than memory."""
    return {name: image_fault(read_image(name)) for name in dict.fromkeys(names)}


def named(faults: Mapping[str, str | None], kind: str) -> tuple[str, ...]:
    """Names of the images with this fault."""
    return tuple(name for name, fault in faults.items() if fault == kind)


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, Any]) -> None:
    """Write a parquet file, as a whole or not at all, in pieces: a released set may be larger than memory.

    Args:
        columns: types of `datasets` by the names of the columns.

    Raises:
        DataError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features

    schema = Features(columns).arrow_schema
    remaining = iter(rows)
    partial = file.with_name(f".{file.name}.partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(partial, schema) as writer:
            while piece := list(islice(remaining, _ROWS_AT_ONCE)):
                writer.write_table(pa.Table.from_pylist(piece, schema=schema))
        partial.replace(file)
    except OSError as error:
        raise DataError(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
