"""A table as somebody has it: CSV, TSV, JSON lines, JSON or parquet, alone or in a folder with pictures.

The one reader of such files: answers, labels, weights of options, questions. What its cells say is in
`hedge_tasks.data.cells`, which column is what in `hedge_tasks.data.columns`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from hedge_tasks.data.pictures import PICTURE_FILES
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row, parse_objects
from hedge_tasks.io.outside import shown
from hedge_tasks.io.tables import parse_csv

KINDS = {
    ".csv": "CSV",
    ".tsv": "CSV",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".json": "JSON",
    ".parquet": "parquet",
}
"""Endings of the files that are read -> what they are."""

STDIN = Path("-")
"""Stands for the standard input."""

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ROWS_AT_ONCE = 64


T = TypeVar("T")


@dataclass(frozen=True)
class StoredTable:
    """Rows with named columns, read again on every pass: with pictures in it, a table may be larger than memory.

    Attributes:
        name: of the file or folder, for messages.
        read_as: how it was read, for messages.
        columns: in their order.
        n_rows: how many there are.
        folder: from which names of pictures count.
        rows: makes a pass over all rows, or over the columns named alone.
    """

    name: str
    read_as: str
    columns: tuple[str, ...]
    n_rows: int
    folder: Path
    rows: Callable[[Sequence[str] | None], Iterator[Mapping[str, Any]]]

    def values(self, column: str, most: int | None = None) -> list[Any]:
        """The values of a column, of the first rows only where a number is given."""
        return [row[column] for row in islice(self.rows([column]), most)]


def read_table(path: Path) -> StoredTable:
    """The table of a file, or the only one of a folder.

    Raises:
        DataError: there is none, there are several, or it cannot be read or is empty; says what to do.
    """
    if not path.exists():
        raise DataError(f"cannot read {path}: there is no such file or folder")
    files = _files_of(path) if path.is_dir() else [path]
    kind = KINDS.get(files[0].suffix.lower())
    if kind is None:
        raise DataError(f"{files[0]}: expected a file that ends in {', '.join(KINDS)}, or a folder with one")
    table = _parquet(files) if kind == "parquet" else _in_memory(files[0], kind)
    if not table.columns or not table.n_rows:
        raise DataError(f"{table.name}: there are no rows in it")
    return table


def _files_of(folder: Path) -> list[Path]:
    """The table of a folder: one file, or all parquet files."""
    entries = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    tables = [path for path in entries if path.suffix.lower() in KINDS]
    if not tables:
        what = (
            "pictures but no table" if any(p.suffix.lower() in PICTURE_FILES for p in folder.rglob("*")) else "no table"
        )
        raise DataError(
            f"{folder}: it holds {what}. Put a CSV file into it, with a column of the pictures' names, the questions "
            "and the right answers: image,question,answer"
        )
    if len(tables) > 1 and {path.suffix.lower() for path in tables} != {".parquet"}:
        raise DataError(f"{folder}: it holds several tables, name the one that is meant: {', '.join(map(str, tables))}")
    return tables


def kind_of(path: Path, default: str = "JSON lines") -> str:
    """Return what a file is by its ending."""
    return KINDS.get(path.suffix.lower(), default)


def read_rows(path: Path, kind: str | None = None) -> list[Row]:
    """All rows of a file, or of the standard input, each with its place (`file:line`).

    Args:
        kind: one of `KINDS`; None goes by the ending, and takes others for JSON lines.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    kind = kind or kind_of(path)
    if kind == "parquet":
        table = _parquet([path])
        if path.stat().st_size > outside.LARGEST_TEXT:
            raise DataError(f"{path}: larger than {outside.LARGEST_TEXT >> 30} GiB")
        return [(f"{path}: row {i}", row) for i, row in enumerate(_read_parquet(str(path), lambda: table.rows(None)))]
    name = "<stdin>" if path == STDIN else str(path)
    lines = outside.raw_lines(sys.stdin.buffer, name) if path == STDIN else outside.read_raw_lines(path)
    if kind == "JSON lines":
        return parse_objects(lines, name)
    data = b"".join(line for _, line in lines) if path == STDIN else None
    text = outside.read_text(path) if data is None else outside.clean(outside.decode(data, name))
    if kind == "CSV":
        return list(parse_csv(text, name, _separator(text)))
    value = outside.parse_json(text, name)
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise DataError(f"{name}: expected a JSON list of objects, one a question, got {shown(value)}")
    return [(f"{name}: item {i}", row) for i, row in enumerate(value, start=1)]


def _in_memory(file: Path, kind: str) -> StoredTable:
    rows = [row for _, row in read_rows(file, kind)]
    read_as = kind
    if kind == "CSV":
        first = next(outside.read_raw_lines(file), (0, b""))[1]
        read_as = f"CSV, separated by {_SEPARATORS[_separator(outside.decode(first, str(file)))]}"
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    if "" in columns:  # pandas writes its row numbers so
        columns = tuple(name for name in columns if name)
    return StoredTable(str(file), read_as, columns, len(rows), file.parent, partial(_of_memory, rows, columns))


def _of_memory(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], wanted: Sequence[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    return ({name: row.get(name) for name in wanted or columns} for row in rows)


def _separator(text: str) -> str:
    """Return what separates the columns: the header's most frequent one of those that are usual."""
    header = text.split("\n", 1)[0]
    return max(_SEPARATORS, key=header.count)


def _parquet(files: Sequence[Path]) -> StoredTable:
    import pyarrow.parquet as pq

    name = str(files[0] if len(files) == 1 else files[0].parent)
    opened = _read_parquet(name, lambda: [pq.ParquetFile(file) for file in files])
    columns = tuple(column for column in opened[0].schema_arrow.names if not column.startswith("__index_level_"))
    for file, other in zip(files, opened, strict=True):
        if missing := set(columns) - set(other.schema_arrow.names):
            raise DataError(f"{file}: there is no column {sorted(missing)[0]!r}, which {files[0].name} has")
    n_rows = sum(file.metadata.num_rows for file in opened)
    read_as = "parquet" if len(files) == 1 else f"{len(files)} parquet files"
    return StoredTable(name, read_as, columns, n_rows, files[0].parent, partial(_of_parquet, files, columns))


def _read_parquet(name: str, read: Callable[[], Iterable[T]]) -> list[T]:
    try:
        return list(read())
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [""])[0][:200]
        raise DataError(f"{name}: not readable as parquet ({reason})") from error


def _of_parquet(
    files: Sequence[Path], columns: Sequence[str], wanted: Sequence[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    import pyarrow.parquet as pq

    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE, columns=list(wanted or columns)):
            yield from batch.to_pylist()
