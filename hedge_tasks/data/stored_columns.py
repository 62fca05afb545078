"""Columns and pictures of a split as they are stored, without the library that makes data sets of them.

`hedge report` shows the pictures of a run: the files of some rows. For a split in a package or a local folder parquet
is all that it takes; importing `datasets` would take as long as the report. Splits on the hub are read by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hedge_tasks.data import splits

Result = TypeVar("Result")


class Columns(Protocol):
    """A split of a data set, of which some columns are looked at."""

    @property
    def names(self) -> Sequence[str]:
        """Of all columns."""

    def __len__(self) -> int:
        """Number of rows."""

    def values(self, column: str) -> list[Any]:
        """A column without images."""

    def images(self, rows: Sequence[int], columns: Sequence[str]) -> Iterator[list[bytes]]:
        """The picture files of some rows, in their order; a row has none where nothing is stored.

        Args:
            rows: ascending.
            columns: with images, or with names of image files; see `hedge_tasks.data.splits.fetch_images`.
        """


def open_columns(
    path: str, name: str | None, split: str, revision: str | None, files: splits.DataFiles | None = None
) -> Columns:
    """The columns of a split, found as `hedge_tasks.data.splits.load_split` finds it.

    Raises:
        DataError: the split cannot be had; the same where columns are read.
    """
    local = None if path in splits.FILE_KINDS else splits.local_files(path, name, split)
    if local is not None and local[0].suffix != splits.LINES:
        return _Parquet(local, path, revision)
    return _Loaded(splits.load_split(path, name, split, revision=revision, files=files), path, revision, files)


class _Parquet:
    def __init__(self, files: Sequence[Path], path: str, revision: str | None) -> None:
        from pyarrow import parquet

        self._path, self._revision, self._paths = path, revision, files
        self._files = self._read(lambda: [parquet.ParquetFile(file) for file in files])

    @property
    def names(self) -> Sequence[str]:
        names: Sequence[str] = self._files[0].schema_arrow.names
        return names

    def __len__(self) -> int:
        return sum(file.metadata.num_rows for file in self._files)

    def values(self, column: str) -> list[Any]:
        return self._read(lambda: [v for file in self._files for v in file.read([column]).column(column).to_pylist()])

    def images(self, rows: Sequence[int], columns: Sequence[str]) -> Iterator[list[bytes]]:
        stored = self._read(lambda: list(self._rows(rows, columns)))
        for column in columns:
            names = [_name(row[column]) for row in stored]
            if any(names):
                files = splits.fetch_files(names, self._path, column, self._revision)
                stored = [{**row, column: files[n] if n else row[column]} for row, n in zip(stored, names, strict=True)]
        return (_files(row) for row in stored)

    def _rows(self, rows: Sequence[int], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Some rows, a part of the file in memory at a time: pictures are large."""
        row_numbers, start = list(rows), 0
        for file in self._files:
            for batch in file.iter_batches(batch_size=64, columns=list(columns)):
                in_batch = (row - start for row in row_numbers if start <= row < start + batch.num_rows)
                # One by one: `take` would import pandas to see whether it was given one of its columns.
                yield from (row for place in in_batch for row in batch.slice(place, 1).to_pylist())
                start += batch.num_rows

    def _read(self, read: Callable[[], Result]) -> Result:
        try:
            return read()
        except Exception as error:  # pyarrow raises many kinds; all mean the same to the user
            raise splits.cannot_read(self._path, self._paths, error) from error


class _Loaded:
    def __init__(self, dataset: Any, path: str, revision: str | None, files: splits.DataFiles | None) -> None:
        self._dataset, self._path, self._revision, self._data_files = dataset, path, revision, files

    @property
    def names(self) -> Sequence[str]:
        names: Sequence[str] = self._dataset.column_names
        return names

    def __len__(self) -> int:
        return len(self._dataset)

    def values(self, column: str) -> list[Any]:
        return list(self._dataset[column][:])

    def images(self, rows: Sequence[int], columns: Sequence[str]) -> Iterator[list[bytes]]:
        source = (self._path, self._revision, self._data_files)
        chosen = splits.fetch_images(self._dataset.select(list(rows)), columns, *source)
        return map(_files, splits.undecoded(chosen, columns))


def _files(row: Mapping[str, Any]) -> list[bytes]:
    contents = (image.get("bytes") if isinstance(image, Mapping) else image for image in row.values())
    return [file for file in contents if isinstance(file, bytes) and file]


def _name(image: object) -> str | None:
    """The name of a picture that is not stored in the row itself."""
    if isinstance(image, Mapping):
        image = None if image.get("bytes") else image.get("path")
    return image if isinstance(image, str) and image else None
