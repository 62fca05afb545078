"""The one reader of users' tables: CSV, TSV, JSON, JSON lines, Parquet and Excel, alone or in a folder with pictures.

Questions, answers, labels and weights of options all come in by it. Which column is what is told in
`hedge_tasks.data.roles`, and cells are read by `hedge_tasks.data.cells`.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data import inspect_logs
from hedge_tasks.data.cells import is_empty
from hedge_tasks.data.repositories import SPLITS, tables_in
from hedge_tasks.errors import DataError, HedgeError, check_names, first_line
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row, parse_objects
from hedge_tasks.io.tables import check_header, parse_csv

_IN_FOLDERS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson"), "JSON lines"),
    **{".json": "JSON", ".parquet": "parquet", ".xlsx": "spreadsheet"},
}
"""Of files that are the table of their folder."""

KINDS = {**_IN_FOLDERS, ".eval": "inspect_ai"}
"""Endings of the files that are read -> what they are."""

STDIN = Path("-")
"""Stands for the standard input, which holds JSON lines."""

_PICKLES = {
    **dict.fromkeys((".pkl", ".pickle"), "import pandas; pandas.read_pickle({0!r}).to_json({1!r})"),
    # of lm-polygraph, whose statistics of a text each are its columns
    ".man": "import pandas, torch; s = torch.load({0!r}, weights_only=False)['stats']; "
    "pandas.DataFrame({{k: list(s[k]) for k in s if k.endswith(('_texts', '_likelihoods'))}}).to_json({1!r})",
}
"""Endings of files that run code when they are read -> Python that makes a table of one."""

_HELP = {
    "spreadsheet": "; or save it as CSV",
    "inspect_ai": "; `inspect log convert FILE --to json --output-dir .` may do it",
}
_FAULTS = (
    *(ArithmeticError, AttributeError, EOFError, ImportError, LookupError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)
"""Exceptions of libraries, and of what is not as its tool writes it."""

_LINES = re.compile(rb"\s*\{.*\}[^\S\n]*\n\s*\{")
"""The begin of a file with an object a line."""

_ROWS_AT_ONCE = 64

LARGE = 32 << 20
"""Bytes of a file whose rows are not held; in memory they take four times as much."""


@dataclass(frozen=True)
class StoredTable:
    """Rows with named columns, read again on every pass: with pictures in it, a table may be larger than memory.

    Attributes:
        name: of the file or folder, for messages.
        columns: in their order.
        n_rows: how many there are.
        folder: from which names of pictures count.
        rows: makes a pass over all rows with their places, as they are, or with the columns named alone, each of them.
        notes: choices that were made on the way to it, a line each.
        in_folder: whether the user named its folder, whose other files belong to it.
        in_words: whether it is of texts alone, CSV or a spreadsheet, where a list has to be one, too.
    """

    name: str
    columns: tuple[str, ...]
    n_rows: int
    folder: Path
    rows: Callable[[Sequence[str] | None], Iterator[Row]]
    notes: tuple[str, ...] = ()
    in_folder: bool = False
    in_words: bool = False

    def values(self, column: str) -> Iterator[Any]:
        """The values of a column."""
        return (row[column] for _, row in self.rows([column]))

    def filled(self, column: str, most: int) -> list[Any]:
        """Return the first values of a column that are not empty, at most `most`."""
        return list(islice((value for value in self.values(column) if not is_empty(value)), most))


def read_table(source: Path | str, *, split: str | None = None) -> StoredTable:
    """The table of a file, of the standard input or of a folder.

    A folder holds one table, with pictures or without, or one a split (`hedge_tasks.data.repositories`).

    Args:
        split: which one, where there are several. By default the only one, or "test".

    Raises:
        DataError: there is none, or it cannot be read or is empty; says what to do.
        ConfigError: there are several splits, and it takes the user to say which.
    """
    path = Path(source)
    if path != STDIN and not path.exists():
        raise DataError(f"cannot read {path}: there is no such file or folder; `hf download` fetches one from the hub")
    table = replace(_folder_table(path, split), in_folder=True) if path.is_dir() else _files_table([path])
    if not table.columns or not table.n_rows:
        raise DataError(f"{table.name}: there are no rows in it")
    return table


def read_rows(path: Path) -> list[Row]:
    """All rows of a file, or of the standard input, each with its place (`file:line`).

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    return list(_files_table([path]).rows(None))


def is_large(file: Path) -> bool:
    """Whether a file is read anew on every pass; the standard input and pipes cannot be."""
    return file.is_file() and file.stat().st_size > LARGE


@contextmanager
def readable(name: Path | str, kind: str = "") -> Iterator[None]:
    """Within, what a library cannot read, or a tool does not write so, is said of the file."""
    try:
        yield
    except HedgeError:
        raise
    except _FAULTS as error:
        what = f"not readable as {kind}" if kind else "not as its tool writes it"
        raise DataError(f"{name}: {what} ({first_line(error)}){_HELP.get(kind, '')}") from error


def _files_table(files: Sequence[Path]) -> StoredTable:
    """The table in files of one kind, such as the shards of a split.

    Raises:
        DataError: the files are pickles, or none of `KINDS`, or cannot be read.
    """
    first, ending = files[0], files[0].suffix.lower()
    if ending in _PICKLES:
        convert = _PICKLES[ending].format(str(first), f"{first.stem}.json")
        raise DataError(f'{first}: a pickle runs code when it is read. If you trust it: python -c "{convert}"')
    kind = "JSON lines" if first == STDIN else KINDS.get(ending)
    if kind is None:
        raise DataError(f"{first}: expected a file that ends in {', '.join(KINDS)}, or a folder with one")
    if kind == "parquet":
        return _parquet_table(files)

    def read() -> Iterator[Row]:
        return chain.from_iterable(map(_READERS[kind], files))

    with readable(first, kind):
        is_held = kind != "JSON lines" or not any(map(is_large, files))
        table = _table_of(str(first), partial(iter, [*read()]) if is_held else read, first.parent)
    return replace(table, in_words=kind in ("CSV", "spreadsheet"))


def _table_of(name: str, rows: Callable[[], Iterator[Row]], folder: Path) -> StoredTable:
    """The table of rows, which each call goes through anew, with the columns that any of them has."""
    columns, n_rows = dict[str, None](), 0
    for _, row in rows():
        columns |= dict.fromkeys(row)
        n_rows += 1
    columns.pop("", None)  # pandas writes its row numbers into a column without a name

    def read(selected: Sequence[str] | None = None) -> Iterator[Row]:
        return rows() if selected is None else ((at, {c: row.get(c) for c in selected}) for at, row in rows())

    return StoredTable(name, tuple(columns), n_rows, folder, read)


def _folder_table(folder: Path, split: str | None) -> StoredTable:
    endings = tuple(_IN_FOLDERS)
    tables = tables_in(folder, split=split, endings=endings) or tables_in(folder, endings=endings)
    names = ", ".join(tables)
    if not tables:
        raise DataError(f"{folder}: it holds no table. Put a CSV file into it, of image,question,answer")
    if split is None and len(tables) > 1 and not set(tables) <= {*SPLITS}:
        return _joined(folder, [file for files in tables.values() for file in files])
    chosen = split or (names if len(tables) == 1 else "test")
    check_names(f"--split of {folder}", [chosen], tables)
    notes = () if split or len(tables) == 1 else (f"split: 'test' of {names}; --split NAME takes another",)
    return replace(_files_table(tables[chosen]), notes=notes)


def _joined(folder: Path, files: Sequence[Path]) -> StoredTable:
    """VQAv2's questions and annotations as one table.

    Raises:
        DataError: two files are not of the same questions.
    """
    if [file.suffix for file in files] == [".json", ".json"]:
        left, right = ({row.get("question_id"): row for _, row in read_rows(file)} for file in files)
        if left.keys() == right.keys() and None not in left:
            rows = [(f"{folder}: {number}", {**right[number], **row}) for number, row in left.items()]
            return replace(
                _table_of(str(folder), partial(iter, rows), folder), notes=("two files, joined by 'question_id'",)
            )
    raise DataError(f"{folder}: it holds several tables, name the one that is meant: {', '.join(map(str, files))}")


# --- kinds ------------------------------------------------------------------------------------------------------------


def _csv_rows(file: Path) -> list[Row]:
    text, encoding = outside.table_text(outside.read_bytes(file), str(file))
    if encoding:
        logger.warning("{}: not UTF-8, read as {}", file, encoding)
    return list(parse_csv(text, str(file), max(",;\t", key=text.split("\n", 1)[0].count)))


def _line_rows(file: Path) -> Iterator[Row]:
    if file == STDIN:
        return parse_objects(outside.raw_lines(sys.stdin.buffer, "<stdin>"), "<stdin>")
    return parse_objects(outside.read_raw_lines(file), str(file))


def _json_rows(file: Path) -> Iterable[Row]:
    """The rows of a JSON value: a list of objects, alone or as the only one in an object, or a frame; or of lines."""
    data = outside.read_bytes(file)
    if _LINES.match(data):
        return parse_objects(enumerate(data.splitlines(), 1), str(file))
    value = outside.parse_json(data, str(file))
    if isinstance(value, Mapping) and {"eval", "status", "version"} <= {*value}:
        return inspect_logs.rows_of(value, file)
    value = _list_in(value) if isinstance(value, Mapping) else value
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise DataError(f"{file}: expected a JSON list of objects, a row each (pandas: to_json(orient='records'))")
    return [(f"{file}: item {i}", row) for i, row in enumerate(value, 1)]


def _list_in(value: Mapping[str, Any]) -> Any:
    """The only list of objects in an object, or the rows of a frame as pandas' `to_json` writes it."""
    first = next(iter(value.values()), None)
    if isinstance(first, Mapping) and first and list(first) == [str(i) for i in range(len(first))]:
        return [{column: cells.get(row) for column, cells in value.items()} for row in first]
    lists = [item for item in value.values() if isinstance(item, list) and item and isinstance(item[0], Mapping)]
    return lists[0] if len(lists) == 1 else None


def _sheet_rows(file: Path) -> list[Row]:
    """The rows of the only sheet of a spreadsheet, but for empty ones."""
    import pandas

    outside.check_archive(file)
    sheets = pandas.read_excel(file, sheet_name=None, header=None, dtype=object, na_filter=False)
    if len(sheets) > 1:
        raise DataError(f"{file}: it has several sheets ({', '.join(sheets)}); save the one meant as CSV")
    [frame] = sheets.values()
    names, *rows = frame.values.tolist() or [[]]
    columns = {i: str(name) for i, name in enumerate(names) if not is_empty(name)}
    check_header([*columns.values()], str(file))
    plain = ({name: None if is_empty(row[i]) else row[i] for i, name in columns.items()} for row in rows)
    return [(f"{file}: row {i}", row) for i, row in enumerate(row for row in plain if not is_empty(row))]


_READERS: Mapping[str, Callable[[Path], Iterable[Row]]] = {
    **{"CSV": _csv_rows, "spreadsheet": _sheet_rows, "JSON lines": _line_rows, "JSON": _json_rows},
    "inspect_ai": inspect_logs.archive_rows,
}


def _parquet_table(files: Sequence[Path]) -> StoredTable:
    """The rows of files, a few in memory at a time, with names in place of the numbers of classes; -1 is none."""
    import pyarrow.parquet as pq

    name = str(files[0] if len(files) == 1 else files[0].parent)
    at_once, n_rows = _ROWS_AT_ONCE, 0
    with readable(name, "parquet"):
        schema = pq.read_schema(files[0])
        for file in files:
            stored = pq.read_metadata(file)
            sizes = [stored.row_group(i).total_byte_size for i in range(stored.num_row_groups)]
            outside.check_unpacked(file, sum(sizes))
            # A value that is stored once may be in every row: no more rows at once than the budget has room for.
            at_once = max(1, min(at_once, outside.most_unpacked(file) // max(1, *sizes)))
            n_rows += stored.num_rows
    columns = tuple(column for column in schema.names if not column.startswith("__index_level_"))
    classes = _class_names(schema.metadata)

    def read(selected: Sequence[str] | None = None) -> Iterator[Row]:
        wanted = list(selected or columns)
        size, numbers = 0, count()
        with readable(name, "parquet"):
            # Not by a data set of pyarrow, whose scanner unpacks a group of rows as a whole.
            parts = (pq.ParquetFile(file).iter_batches(at_once, columns=wanted) for file in files)
            for batch in chain.from_iterable(parts):
                # A value that is stored once, and repeated by its number, is in every row that is read.
                size += sum(getattr(c, "dictionary_decode", lambda c=c: c)().nbytes for c in batch.columns)
                outside.check_unpacked(files[0], size)
                for row in batch.to_pylist():
                    named = {c: classes[c].get(row[c]) for c in classes if c in row}
                    yield f"{name}: row {next(numbers)}", {**dict.fromkeys(wanted), **row, **named}

    return StoredTable(name, columns, n_rows, files[0].parent, read)


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, dict[int, str]]:
    """The names behind the numbers of a column, where `datasets` has written them beside the rows."""
    try:
        info = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {c: dict(enumerate(f["names"])) for c, f in info.items() if f.get("_type") == "ClassLabel"}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
