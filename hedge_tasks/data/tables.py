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
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row, parse_objects
from hedge_tasks.io.tables import parse_csv

KINDS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON lines"),
    ".json": "JSON",
    ".parquet": "parquet",
    ".xlsx": "spreadsheet",
}
"""Endings of the files that are read -> what they are. Those of texts may have .gz behind them."""

STDIN = Path("-")
"""Stands for the standard input."""

_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")
_ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class StoredTable:
    """Rows with named columns, read again on every pass: with pictures in it, a table may be larger than memory.

    Attributes:
        name: of the file or folder, for messages.
        columns: in their order.
        n_rows: how many there are.
        folder: from which names of pictures count.
        rows: makes a pass over all rows, or over the columns named alone.
        notes: choices that were made on the way to it, a line each.
        in_folder: whether the user named its folder, whose other files belong to it.
    """

    name: str
    columns: tuple[str, ...]
    n_rows: int
    folder: Path
    rows: Callable[[Sequence[str] | None], Iterator[Mapping[str, Any]]]
    notes: tuple[str, ...] = ()
    in_folder: bool = False

    def values(self, column: str) -> list[Any]:
        """The values of a column."""
        return [row[column] for row in self.rows([column])]

    def filled(self, column: str, most: int) -> list[Any]:
        """Return the first values of a column that are not empty, at most `most`."""
        values = (row[column] for row in self.rows([column]))
        return list(islice((value for value in values if not is_empty(value)), most))


def read_table(source: Path | str, *, split: str | None = None) -> StoredTable:
    """The table of a file or of a folder.

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
    return table


def kind_of(path: Path, default: str = "JSON lines") -> str:
    """Return the kind of a file by its ending, as `KINDS` has it.

    Raises:
        DataError: it is a pickle, which runs code when it is read.
    """
    if path.suffix.lower() in _PICKLES:
        convert = f"import pandas; pandas.read_pickle('{path}').to_parquet('{path.stem}.parquet')"
        raise DataError(f'{path}: a pickle runs code when it is read. If you trust it: python -c "{convert}"')
    return KINDS.get(Path(path.stem if path.suffix == ".gz" else path).suffix.lower(), default)


def read_rows(path: Path) -> list[Row]:
    """All rows of a file, or of the standard input, each with its place (`file:line`).

    The ending says what it is (`KINDS`); any other is taken for JSON lines.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    kind, name = kind_of(path), "<stdin>" if path == STDIN else str(path)
    if kind in ("spreadsheet", "parquet"):
        rows = _sheet_rows(path) if kind == "spreadsheet" else _parquet_table([path]).rows(None)
        return [(f"{name}: row {i}", row) for i, row in enumerate(rows)]
    if kind == "JSON lines" and path.suffix != ".gz":
        return parse_objects(
            outside.raw_lines(sys.stdin.buffer, name) if path == STDIN else outside.read_raw_lines(path), name
        )
    data = outside.read_bytes(path)
    if kind == "JSON lines":
        return parse_objects(enumerate(data.splitlines(), 1), name)
    if kind == "JSON":
        return [(f"{name}: item {i}", row) for i, row in enumerate(_json_rows(outside.parse_json(data, name), name), 1)]
    text, encoding = outside.table_text(data, name)
    if encoding:
        logger.warning("{}: not UTF-8, read as {}", name, encoding)
    return list(parse_csv(text, name, max(",;\t", key=text.split("\n", 1)[0].count)))


def memory_table(name: str, rows: Sequence[Mapping[str, Any]], folder: Path) -> StoredTable:
    """The table of rows that are in memory, with the columns that any of them has."""
    # pandas writes its row numbers into a column without a name
    columns = tuple(column for column in dict.fromkeys(column for row in rows for column in row) if column)

    def read(selected: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
        return ({name: row.get(name) for name in selected or columns} for row in rows)

    return StoredTable(name, columns, len(rows), folder, read)


def _files_table(files: Sequence[Path]) -> StoredTable:
    """The table in files of one kind, such as the shards of a split."""
    first = files[0]
    if not (kind := kind_of(first, "")):
        raise DataError(f"{first}: expected a file that ends in {', '.join(KINDS)}, or a folder with one")
    if kind == "parquet":
        return _parquet_table(files)
    return memory_table(str(first), [row for file in files for _, row in read_rows(file)], first.parent)


def _folder_table(folder: Path, split: str | None) -> StoredTable:
    tables = tables_in(folder, split=split, endings=tuple(KINDS)) or tables_in(folder, endings=tuple(KINDS))
    splits = ", ".join(tables)
    if not tables:
        raise DataError(
            f"{folder}: it holds no table. Put a CSV file into it, with a column of the pictures' names, the questions "
            "and the right answers: image,question,answer"
        )
    if split is not None and split not in tables:
        raise unknown(f"split of {folder}", split, tables)
    if split or len(tables) == 1:
        return _files_table(tables[split or splits])
    if not set(tables) <= {*SPLITS}:
        return _joined(folder, [file for named in tables.values() for file in named])
    if "test" not in tables:
        raise ConfigError(f"{folder}: which of its splits, {splits}? Say --split NAME")
    note = f"split: 'test' of {splits}; --split NAME takes another"
    return replace(_files_table(tables["test"]), notes=(note,))


def _joined(folder: Path, files: Sequence[Path]) -> StoredTable:
    """VQAv2's questions and annotations as one table.

    Raises:
        DataError: two files are not of the same questions.
    """
    if [*map(kind_of, files)] == ["JSON", "JSON"]:
        left, right = ({row.get("question_id"): row for _, row in read_rows(file)} for file in files)
        if left.keys() == right.keys() and None not in left:
            rows = [{**right[number], **row} for number, row in left.items()]
            return replace(memory_table(str(folder), rows, folder), notes=("two files, joined by 'question_id'",))
    raise DataError(f"{folder}: it holds several tables, name the one that is meant: {', '.join(map(str, files))}")


def _json_rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """The rows of a JSON value: a list of objects, alone or as the only one in an object, or a frame of pandas."""
    if isinstance(value, Mapping):
        lists = [item for item in value.values() if isinstance(item, list) and item and isinstance(item[0], Mapping)]
        first = next(iter(value.values()), None)
        if isinstance(first, Mapping) and first and list(first) == [str(i) for i in range(len(first))]:
            # to_json(): column -> number of the row -> cell
            lists = [[{column: cells.get(row) for column, cells in value.items()} for row in first]]
        value = lists[0] if len(lists) == 1 else None
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise DataError(f"{name}: expected a JSON list of objects, a row each (pandas: to_json(orient='records'))")
    return value


def _sheet_rows(file: Path) -> list[Mapping[str, Any]]:
    """The rows of the only sheet of a spreadsheet, but for empty ones."""
    import pandas

    try:
        outside.check_archive(file)
        sheets = pandas.read_excel(file, sheet_name=None, dtype=object, na_filter=False)
    except (ImportError, DataError) as error:
        raise DataError(f"{file}: {error}; or save its sheet as CSV") from None
    except Exception as error:  # of many kinds: no archive, no book, another version
        raise DataError(f"{file}: not readable as a spreadsheet ({type(error).__name__}); save it as CSV") from None
    if len(sheets) > 1:
        raise DataError(f"{file}: it has several sheets ({', '.join(sheets)}); save the one meant as CSV")
    [frame] = sheets.values()
    rows = frame.loc[:, [c for c in frame if not str(c).startswith("Unnamed:")]].to_dict("records")
    return [{str(c): None if is_empty(cell) else cell for c, cell in row.items()} for row in rows if not is_empty(row)]


def _parquet_table(files: Sequence[Path]) -> StoredTable:
    """The rows of files, a few in memory at a time."""
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    name = str(files[0] if len(files) == 1 else files[0].parent)
    with _readable(name):
        for file in files:
            stored = pq.read_metadata(file)
            outside.check_unpacked(file, sum(stored.row_group(i).total_byte_size for i in range(stored.num_row_groups)))
        data = ds.dataset([str(file) for file in files], format="parquet")
        n_rows = data.count_rows()
    columns = tuple(column for column in data.schema.names if not column.startswith("__index_level_"))
    rows = partial(_parquet_rows, name, data, columns, _class_names(data.schema.metadata))
    return StoredTable(name, columns, n_rows, files[0].parent, rows)


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, dict[int, str]]:
    """The names behind the numbers of a column, where `datasets` has written them beside the rows."""
    try:
        info = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {c: dict(enumerate(f["names"])) for c, f in info.items() if f.get("_type") == "ClassLabel"}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _parquet_rows(
    name: str,
    data: Any,
    columns: Sequence[str],
    classes: Mapping[str, Mapping[int, str]],
    selected: Sequence[str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """The rows of a data set of Arrow, with names in place of the numbers of classes; -1 is none."""
    chosen = list(selected or columns)
    size = 0
    with _readable(name):
        for batch in data.to_batches(columns=chosen, batch_size=_ROWS_AT_ONCE, batch_readahead=0, fragment_readahead=0):
            # A value that is stored once, and repeated by its number, is in every row that is read.
            size += sum(getattr(c, "dictionary_decode", lambda c=c: c)().nbytes for c in batch.columns)
            outside.check_unpacked(Path(data.files[0]), size)
            for row in batch.to_pylist():
                yield {**row, **{c: classes[c].get(row[c]) for c in chosen if c in classes}}


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [""])[0][:200]
        raise DataError(f"{name}: not readable as parquet ({reason})") from error
