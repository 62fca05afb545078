"""Local data sets out of released files and a user's own copies of the images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Protocol, TypeVar

from hedge_tasks.data.picture_files import PictureFiles
from hedge_tasks.data.pictures import image_file_fault
from hedge_tasks.errors import DataError

ReadImage = Callable[[str], bytes | None]
"""Name of an image -> its bytes, None if there is none."""

_ROWS_AT_ONCE = 64


def image_reader(folder: Path) -> ReadImage:
    """Return what reads the images below a folder, found by the end of their names.

    "rad/synpic1.jpg" is found as `.../synpic1.jpg`; "slake/xmlab1/source.jpg", whose file name says nothing, as
    `.../xmlab1/source.jpg`. Capitals and the kind of image file (jpg, png, ...) do not matter. It raises DataError
    where several files fit and differ.

    Raises:
        DataError: it is no folder.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    files = PictureFiles(folder)

    def read(name: str) -> bytes | None:
        path = PurePosixPath(name).with_suffix("")
        file = files.path("/".join(path.parts[-2:] if path.name == "source" else path.parts[-1:]))
        return None if file is None else file.read_bytes()

    return read


class HasImage(Protocol):
    """An item of a set, with the name of its image."""

    @property
    def image(self) -> str: ...


Item = TypeVar("Item", bound=HasImage)


@dataclass(frozen=True)
class BuiltSet:
    """A local data set as it was written, or as it would be.

    Attributes:
        files: by part of the set; a part of whose items none has an image is not there.
        rows: number of rows of each file.
        items: how many there are, with an image or without.
        built: how many have one.
        missing, unreadable: names of images that were not found, or are none.
    """

    files: Mapping[str, Path]
    rows: Mapping[str, int]
    items: int
    built: int
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]


def build(
    dataset: str,
    items: Sequence[Item],
    rows_of: Callable[[Sequence[Item]], Mapping[str, Sequence[Mapping[str, Any]]]],
    read_image: ReadImage,
    out: Path | None,
) -> BuiltSet:
    """Write the items that have an image as a data set, `OUT/<dataset with / written __>/<part>.parquet`.

    Images are read one by one, for all of them may be larger than memory.

    Args:
        dataset: its name in task YAMLs.
        rows_of: from the items with an image to the rows of each part, all with the same columns; the column `image`
            has the name of the image, in whose place its bytes are written; any other one texts, or lists of them.
        read_image: name of an image -> its bytes, None if there is none.
        out: what HEDGE_DATA_DIR will name; made if missing. None only looks at the images.

    Raises:
        DataError: a file cannot be written, or a name fits images that differ.
    """
    from datasets import Image, List, Value

    contents = ((name, read_image(name)) for name in dict.fromkeys(item.image for item in items))
    faults = {n: "missing" if file is None else image_file_fault(file, decode=False) for n, file in contents}
    usable = [item for item in items if faults[item.image] is None]
    missing = tuple(name for name, fault in faults.items() if fault == "missing")
    unreadable = tuple(name for name, fault in faults.items() if fault not in (None, "missing"))
    files, n_rows = {}, {}
    for part, rows in rows_of(usable).items() if out else ():
        if not rows:
            continue
        texts: Any = {True: List(Value("string")), False: Value("string")}
        columns = {name: texts[isinstance(value, list)] for name, value in rows[0].items()}
        files[part] = Path(out or "") / dataset.replace("/", "__") / f"{part}.parquet"
        n_rows[part] = len(rows)
        rows_with_bytes = ({**row, "image": {"bytes": read_image(row["image"]), "path": row["image"]}} for row in rows)
        write_rows(files[part], rows_with_bytes, {**columns, "image": Image()})
    return BuiltSet(files, n_rows, len(items), len(usable), missing, unreadable)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Names for a message, not all of them where there are many."""
    others = f" and {len(names) - most} more (--json lists all)" if len(names) > most else ""
    return ", ".join(names[:most]) + others


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
