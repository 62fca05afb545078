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
_SPEAKER, _WORDS = ("role", "from"), ("content", "value")


@dataclass(frozen=True)
class StoredTable:
    """Rows with named columns, read again on every pass: with pictures in it, a table may be larger than memory.

    Attributes:
        name: of the file or folder, for messages.
        read_as: what kind of file it is.
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

    def values(self, column: str) -> list[Any]:
        """The values of a column."""
        return [row[column] for row in self.rows([column])]

    def filled(self, column: str, most: int) -> list[Any]:
        """Return the first values of a column that are not empty, at most `most`."""
        values = (row[column] for row in self.rows([column]))
        return list(islice((value for value in values if not is_empty(value)), most))


def read_table(source: Path | str, *, split: str | None = None) -> StoredTable:
    """The table of a file or of a folder, with conversations as columns (`with_turns`).

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
    return with_turns(table)


def kind_of(path: Path, default: str = "JSON lines") -> str:
    """Return the kind of a file by its ending, as `KINDS` has it."""
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
    data = sys.stdin.buffer.read(outside.LARGEST_TEXT) if path == STDIN else outside.read_bytes(path)
    if kind == "JSON lines":
        return parse_objects(enumerate(data.splitlines(), 1), name)
    if kind == "JSON":
        rows = iter(_json_rows(outside.parse_json(data, name), name))
        return [(f"{name}: item {i}", row) for i, row in enumerate(rows, 1)]
    text, encoding = outside.table_text(data, name)
    if encoding:
        logger.warning("{}: not UTF-8, read as {}", name, encoding)
    return list(parse_csv(text, name, max(",;\t", key=text.split("\n", 1)[0].count)))


def memory_table(name: str, read_as: str, rows: Sequence[Mapping[str, Any]], folder: Path) -> StoredTable:
    """The table of rows that are in memory, with the columns that any of them has."""
    # pandas writes its row numbers into a column without a name
    columns = tuple(column for column in dict.fromkeys(column for row in rows for column in row) if column)

    def read(selected: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
        return ({name: row.get(name) for name in selected or columns} for row in rows)

    return StoredTable(name, read_as, columns, len(rows), folder, read)


def with_turns(table: StoredTable) -> StoredTable:
    """Return a table with its conversations as columns: `messages` becomes `messages.system`, `messages.user`, ...

    What else a turn holds, such as a rating, becomes `messages.assistant.rating`. A conversation in which somebody
    speaks twice is left as it is: which turn is meant, its table does not say.
    """
    first = next(table.rows(None), {})
    inner: dict[str, list[str]] = {}
    for column in (name for name in table.columns if _turns(name, first[name])):
        opened = [_turns(column, cell) for cell in table.values(column)]
        if all(opened):
            inner[column] = list(dict.fromkeys(name for cells in opened for name in cells))
    if not inner:
        return table
    columns = tuple(name for column in table.columns for name in inner.get(column, (column,)))
    notes = tuple(f"conversations: column {column!r} became {', '.join(names)}" for column, names in inner.items())
    return replace(table, columns=columns, rows=partial(_opened, table, inner, columns), notes=(*table.notes, *notes))


def _opened(
    table: StoredTable,
    inner: Mapping[str, Sequence[str]],
    columns: Sequence[str],
    selected: Sequence[str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """The rows of a table with its conversations opened."""
    chosen = selected or columns
    for row in table.rows([c for c in table.columns if c in chosen or {*inner.get(c, ())} & {*chosen}]):
        cells = dict(row)
        for column in inner.keys() & row.keys():
            cells |= _turns(column, row[column])
        yield {name: cells.get(name) for name in chosen}


def _turns(column: str, cell: object) -> dict[str, Any]:
    """The columns of a conversation in which each speaks once; empty for anything else."""
    turns = cell if isinstance(cell, list) and all(isinstance(turn, Mapping) for turn in cell) else []
    by_speaker = {next((str(turn[key]) for key in _SPEAKER if turn.get(key)), ""): turn for turn in turns}
    if "" in by_speaker or len(by_speaker) < len(turns):
        return {}
    return {
        f"{column}.{who}" if key in _WORDS else f"{column}.{who}.{key}": value
        for who, turn in by_speaker.items()
        for key, value in turn.items()
        if key not in _SPEAKER and value is not None
    }


def _files_table(files: Sequence[Path]) -> StoredTable:
    """The table in files of one kind, such as the shards of a split."""
    first = files[0]
    if first.suffix.lower() in _PICKLES:
        convert = f"import pandas; pandas.read_pickle('{first}').to_parquet('{first.stem}.parquet')"
        raise DataError(f'{first}: a pickle runs code when it is read. If you trust it: python -c "{convert}"')
    if not (kind := kind_of(first, "")):
        raise DataError(f"{first}: expected a file that ends in {', '.join(KINDS)}, or a folder with one")
    if kind == "parquet":
        return _parquet_table(files)
    return memory_table(str(first), kind, [row for file in files for _, row in read_rows(file)], first.parent)


def _folder_table(folder: Path, split: str | None) -> StoredTable:
    tables = tables_in(folder, split=split, endings=tuple(KINDS)) or tables_in(folder, endings=tuple(KINDS))
    if not tables:
        raise DataError(
            f"{folder}: it holds no table. Put a CSV file into it, with a column of the pictures' names, the questions "
            "and the right answers: image,question,answer"
        )
    if split is None and len(tables) > 1 and not set(tables) <= {*SPLITS}:
        files = [file for named in tables.values() for file in named]
        if joined := _joined(folder, files):
            return joined
        raise DataError(f"{folder}: it holds several tables, name the one that is meant: {', '.join(map(str, files))}")
    name = _chosen_split(folder, list(tables), split)
    note = f"split: {name!r} of {', '.join(tables)}; --split NAME takes another"
    return replace(_files_table(tables[name]), notes=(note,) if len(tables) > 1 else ())


def _chosen_split(folder: Path, splits: Sequence[str], split: str | None) -> str:
    """The split that is meant: the one that is named, or the only one, or "test".

    Raises:
        ConfigError: there is no such split, or it takes the user to say which.
    """
    if split is not None and split not in splits:
        raise unknown(f"split of {folder}", split, splits)
    if split is None and len(splits) > 1 and "test" not in splits:
        raise ConfigError(f"{folder}: which of its splits, {', '.join(splits)}? Say --split NAME")
    return split or ("test" if len(splits) > 1 else splits[0])


def _joined(folder: Path, files: Sequence[Path]) -> StoredTable | None:
    """VQAv2's questions and annotations as one table; None where two files are not of the same questions."""
    if [*map(kind_of, files)] != ["JSON", "JSON"]:
        return None
    left, right = ({row.get("question_id"): row for _, row in read_rows(file)} for file in files)
    if left.keys() != right.keys() or None in left:
        return None
    rows = [{**right[number], **row} for number, row in left.items()]
    return replace(memory_table(str(folder), "JSON", rows, folder), notes=("two files, joined by 'question_id'",))


def _json_rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """The rows of a JSON value: a list of objects, alone or as the only one in an object, or a frame of pandas."""
    rows = _frame_rows(value) if isinstance(value, Mapping) else value
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{name}: expected a JSON list of objects, a row each (pandas: to_json(orient='records'))")
    return rows


def _frame_rows(value: Mapping[str, Any]) -> Any:
    """The rows in an object: its only list of objects, or a frame as pandas writes it; None where there are none."""
    if {"columns", "data"} <= value.keys():  # to_json(orient="split")
        return [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
    first = next(iter(value.values()), None)
    if isinstance(first, Mapping) and first and list(first) == [str(i) for i in range(len(first))]:
        # to_json(): column -> number of the row -> cell
        return [{column: cells.get(row) for column, cells in value.items()} for row in first]
    lists = [item for item in value.values() if isinstance(item, list) and item and isinstance(item[0], Mapping)]
    return lists[0] if len(lists) == 1 else None


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
    return StoredTable(name, "parquet", columns, n_rows, files[0].parent, rows)


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names behind the numbers of a column, where `datasets` has written them beside the rows."""
    try:
        info = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {c: f["names"] for c, f in info.items() if isinstance(f, dict) and f.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, ValueError):
        return {}


def _parquet_rows(
    name: str,
    data: Any,
    columns: Sequence[str],
    classes: Mapping[str, Sequence[str]],
    selected: Sequence[str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    """The rows of a data set of Arrow, with names in place of the numbers of classes; -1 is none."""
    chosen = list(selected or columns)
    named = {column: dict(enumerate(classes[column])) for column in chosen if column in classes}
    size = 0
    with _readable(name):
        for batch in data.to_batches(columns=chosen, batch_size=_ROWS_AT_ONCE, batch_readahead=0, fragment_readahead=0):
            # A value that is stored once, and repeated by its number, is in every row that is read.
            size += sum(getattr(c, "dictionary_decode", lambda c=c: c)().nbytes for c in batch.columns)
            outside.check_unpacked(Path(data.files[0]), size)
            for row in batch.to_pylist():
                yield {**row, **{column: names.get(row[column]) for column, names in named.items()}}


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [""])[0][:200]
        raise DataError(f"{name}: not readable as parquet ({reason})") from error
