"""The one reader of users' tables: CSV, TSV, JSON, JSON lines, Parquet and Excel, alone or in a folder with pictures.

Questions, answers, labels and weights of options all come in by it. Which column is what is told in
`hedge_tasks.data.roles`, and cells are read by `hedge_tasks.data.cells`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.cells import is_empty
from hedge_tasks.data.repositories import SPLITS, tables_in
from hedge_tasks.data.turns import with_turns
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row, parse_objects
from hedge_tasks.io.tables import parse_csv

KINDS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON lines"),
    ".json": "JSON",
    ".parquet": "parquet",
    **dict.fromkeys((".xlsx", ".xlsm"), "spreadsheet"),
}
"""Endings of the files that are read -> what they are. Those of texts may have .gz behind them."""

STDIN = Path("-")
"""Stands for the standard input."""

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_ROWS_AT_ONCE = 64


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
        notes: choices that were made on the way to it, a line each.
        in_folder: whether the user named its folder, whose other files belong to it.
    """

    name: str
    read_as: str
    columns: tuple[str, ...]
    n_rows: int
    folder: Path
    rows: Callable[[Sequence[str] | None], Iterator[Mapping[str, Any]]]
    notes: tuple[str, ...] = ()
    in_folder: bool = False

    def values(self, column: str, most: int | None = None) -> list[Any]:
        """The values of a column, of the first rows only where a number is given."""
        return [row[column] for row in islice(self.rows([column]), most)]

    def filled(self, column: str, most: int) -> list[Any]:
        """Return the first values of a column that are not empty, at most `most`."""
        values = (row[column] for row in self.rows([column]))
        return list(islice((value for value in values if not is_empty(value)), most))


def read_table(source: Path | str, *, split: str | None = None) -> StoredTable:
    """The table of a file or of a folder; columns of conversations are opened (`hedge_tasks.data.turns`).

    A folder holds one table, with pictures or without, or one a split (`hedge_tasks.data.repositories`).

    Args:
        split: which one, where there are several. By default the only one, or "test".

    Raises:
        DataError: there is none, or it cannot be read or is empty; says what to do.
        ConfigError: there are several splits, and it takes the user to say which.
    """
    path = Path(source)
    if not path.exists():
        raise DataError(f"cannot read {path}: there is no such file or folder; `hf download` fetches one from the hub")
    table = replace(_folder_table(path, split), in_folder=True) if path.is_dir() else _files_table([path])
    if not table.columns or not table.n_rows:
        raise DataError(f"{table.name}: there are no rows in it")
    columns, rows, notes = with_turns(table.columns, table.rows)
    return replace(table, columns=columns, rows=rows, notes=(*table.notes, *notes))


def kind_of(path: Path, default: str = "JSON lines") -> str:
    """Return the kind of a file by its ending, as `KINDS` has it."""
    return KINDS.get(_ending(path), default)


def read_rows(path: Path, kind: str | None = None) -> list[Row]:
    """All rows of a file, or of the standard input, each with its place (`file:line`).

    Args:
        kind: one of `KINDS`; None goes by the ending, and takes others for JSON lines.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    kind, name = kind or kind_of(path), "<stdin>" if path == STDIN else str(path)
    if kind == "spreadsheet":
        return [(f"{name}: row {i}", row) for i, row in enumerate(_sheet_rows(path), start=2)]
    if kind == "parquet":
        if path.stat().st_size > outside.LARGEST_TEXT:
            raise DataError(f"{path}: larger than {outside.LARGEST_TEXT >> 30} GiB")
        return [(f"{name}: row {i}", row) for i, row in enumerate(_parquet_table([path]).rows(None))]
    if kind == "JSON lines":
        if path == STDIN:
            return parse_objects(outside.raw_lines(sys.stdin.buffer, name), name)
        if path.suffix != ".gz":
            return parse_objects(outside.read_raw_lines(path), name)
        return parse_objects(enumerate(outside.read_bytes(path).splitlines(), 1), name)
    return _text_rows(path, kind, name)[0]


def _text_rows(path: Path, kind: str, name: str) -> tuple[list[Row], str]:
    """The rows of a CSV or JSON file, and how it was read."""
    data = sys.stdin.buffer.read(outside.LARGEST_TEXT) if path == STDIN else outside.read_bytes(path)
    if kind == "JSON":
        rows = _json_rows(outside.parse_json(data, name), name)
        return [(f"{name}: item {i}", row) for i, row in enumerate(rows, start=1)], kind
    text, encoding = outside.table_text(data, name)
    if encoding:
        logger.warning("{}: not UTF-8, read as {}", name, encoding)
    header = text.split("\n", 1)[0]
    separator = max(_SEPARATORS, key=header.count)
    read_as = f"CSV, separated by {_SEPARATORS[separator]}{f', in {encoding}' if encoding else ''}"
    return list(parse_csv(text, name, separator)), read_as


def _json_rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """The rows of a JSON value: a list of objects, alone or as the only one in an object, or a frame of pandas."""
    if isinstance(value, Mapping) and {"columns", "data"} <= value.keys():  # to_json(orient="split")
        value = [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
    elif isinstance(value, Mapping) and value and all(isinstance(item, Mapping) for item in value.values()):
        places = list(next(iter(value.values())))
        if places == list(map(str, range(len(places)))):  # to_json(): column -> number of the row -> cell
            value = [{column: cells.get(place) for column, cells in value.items()} for place in places]
        else:
            value = [{"id": id, **row} for id, row in value.items()]
    elif isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list) and item and isinstance(item[0], Mapping)]
        if (
            all(isinstance(item, list) for item in value.values())
            and len(set(map(len, value.values()))) == 1
            and not lists
        ):
            value = [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
        else:
            value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise DataError(f"{name}: expected a JSON list of objects, a row each")
    return value


def _ending(path: Path) -> str:
    return Path(path.stem if path.suffix == ".gz" else path).suffix.lower()


def _files_table(files: Sequence[Path]) -> StoredTable:
    """The table in files of one kind, such as the shards of a split."""
    first = files[0]
    kind = KINDS.get(_ending(first))
    if _ending(first) in _PICKLES:
        convert = f"import pandas; pandas.read_pickle('{first}').to_parquet('{first.stem}.parquet')"
        raise DataError(f'{first}: a pickle runs code when it is read. If you trust it: python -c "{convert}"')
    if kind is None:
        raise DataError(f"{first}: expected a file that ends in {', '.join(KINDS)}, or a folder with one")
    if kind == "parquet":
        return _parquet_table(files)
    if kind == "CSV":
        read = [_text_rows(file, kind, str(file)) for file in files]
        return _memory_table(first, read[0][1], [row for rows, _ in read for _, row in rows], first.parent)
    return _memory_table(first, kind, [row for file in files for _, row in read_rows(file)], first.parent)


def _folder_table(folder: Path, split: str | None) -> StoredTable:
    endings = tuple(KINDS)
    tables = tables_in(folder, split=split, endings=endings) or tables_in(folder, endings=endings)
    if not tables:
        raise DataError(
            f"{folder}: it holds no table. Put a CSV file into it, with a column of the pictures' names, the questions "
            "and the right answers: image,question,answer"
        )
    if split is not None or len(tables) == 1 or set(tables) <= {*SPLITS}:
        name, note = _choose_split(folder, tables, split)
        return replace(_files_table(tables[name]), notes=note)
    files = [file for named in tables.values() for file in named]
    if [*map(kind_of, files)] == ["JSON", "JSON"] and (joined := _joined(folder, files)):
        return joined
    raise DataError(f"{folder}: it holds several tables, name the one that is meant: {', '.join(map(str, files))}")


def _choose_split(folder: Path, tables: Mapping[str, object], split: str | None) -> tuple[str, tuple[str, ...]]:
    """The split that is meant, and what is to be said of it."""
    names = ", ".join(tables)
    if split is not None and split not in tables:
        raise unknown(f"split of {folder}", split, list(tables))
    if split is None and len(tables) > 1 and "test" not in tables:
        raise ConfigError(f"{folder}: which of its splits, {names}? Say --split NAME")
    name = split or ("test" if len(tables) > 1 else next(iter(tables)))
    return name, (f"split: {name!r} of {names}; --split NAME takes another",) if len(tables) > 1 else ()


def _joined(folder: Path, files: Sequence[Path]) -> StoredTable | None:
    """Two tables of the same questions, such as VQAv2's questions and annotations, as one; None for other tables."""
    left, right = ([row for _, row in read_rows(file)] for file in files)
    shared = [key for key in left[0] if key in right[0]] if left and right else []
    for key in ("question_id", "id", "qid"):
        beside = {row.get(key): row for row in right}
        if key in shared and {row.get(key) for row in left} == beside.keys() and len(beside) == len(left) == len(right):
            pairs = [(row, beside[row[key]]) for row in left]
            if any(a.get(column) != b.get(column) for a, b in pairs for column in shared):
                raise DataError(f"{folder}: {files[0].name} and {files[1].name} contradict each other")
            joined = _memory_table(folder, "JSON", [{**b, **a} for a, b in pairs], folder)
            return replace(joined, notes=(f"two files, joined by {key!r}",))
    return None


def _memory_table(name: Path, read_as: str, rows: Sequence[Mapping[str, Any]], folder: Path) -> StoredTable:
    """The table of rows that are in memory, with the columns that any of them has."""
    # pandas writes its row numbers into a column without a name
    columns = tuple(column for column in dict.fromkeys(column for row in rows for column in row) if column)

    def read(selected: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
        return ({name: row.get(name) for name in selected or columns} for row in rows)

    return StoredTable(str(name), read_as, columns, len(rows), folder, read)


def _sheet_rows(file: Path) -> list[Mapping[str, Any]]:
    """The rows of the only sheet of a spreadsheet, but for empty ones."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise DataError(f"{file}: reading a spreadsheet needs openpyxl; or save its sheet as CSV") from None
    try:
        outside.check_archive(file)
        book = load_workbook(file, read_only=True, data_only=True)
    except DataError:
        raise
    except Exception as error:  # of many kinds: no archive, no book, another version
        raise DataError(f"{file}: not readable as a spreadsheet ({type(error).__name__}); save it as CSV") from None
    if len(book.sheetnames) > 1:
        raise DataError(f"{file}: it has several sheets ({', '.join(book.sheetnames)}); save the one meant as CSV")
    header, *cells = book.active.iter_rows(values_only=True) or [()]
    names = ["" if name is None else str(name).strip() for name in header]
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise DataError(f"{file}: the header names a column twice")
    blank = dict.fromkeys(named)  # a row may be shorter than the header
    filled = (zip(names, row, strict=False) for row in cells if not is_empty(list(row)))
    return [blank | {name: value for name, value in row if name} for row in filled]


def _parquet_table(files: Sequence[Path]) -> StoredTable:
    import pyarrow.parquet as pq

    name = str(files[0] if len(files) == 1 else files[0].parent)
    with _readable(name):
        opened = [pq.ParquetFile(file) for file in files]
    schema = opened[0].schema_arrow
    columns = tuple(column for column in schema.names if not column.startswith("__index_level_"))
    for file, parquet in zip(files, opened, strict=True):
        if missing := set(columns) - set(parquet.schema_arrow.names):
            raise DataError(f"{file}: there is no column {sorted(missing)[0]!r}, which {files[0].name} has")
    n_rows = sum(file.metadata.num_rows for file in opened)
    read_as = "parquet" if len(files) == 1 else f"{len(files)} parquet files"
    rows = partial(_parquet_rows, files, columns, _class_names(schema.metadata))
    return StoredTable(name, read_as, columns, n_rows, files[0].parent, rows)


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names behind the numbers of a column, where `datasets` has written them beside the rows."""
    try:
        info = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {c: f["names"] for c, f in info.items() if isinstance(f, dict) and f.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, ValueError):
        return {}


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [""])[0][:200]
        raise DataError(f"{name}: not readable as parquet ({reason})") from error


def _parquet_rows(
    files: Sequence[Path],
    columns: Sequence[str],
    classes: Mapping[str, Sequence[str]],
    selected: Sequence[str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """The rows of files, a few in memory at a time, with names in place of the numbers of classes; -1 is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(selected or columns)
    classes = {column: classes[column] for column in names if column in classes}
    for file in files:
        with _readable(str(file)):
            opened, unpacked = pq.ParquetFile(file), 0
            groups = [opened.metadata.row_group(i).total_byte_size for i in range(opened.num_row_groups)]
            outside.check_unpacked(file, sum(groups))
            # A value that is stored once, and repeated by its number, is in every row that is read.
            at_once = max(1, min(_ROWS_AT_ONCE, outside.most_unpacked(file) // max([1, *groups])))
            for batch in opened.iter_batches(at_once, columns=names):
                columns_read = (c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns)
                unpacked += sum(column.nbytes for column in columns_read)
                outside.check_unpacked(file, unpacked)
                for row in batch.to_pylist():
                    for column, names_of in classes.items():
                        number = row[column]
                        row[column] = names_of[number] if number is not None and 0 <= number < len(names_of) else None
                    yield row
