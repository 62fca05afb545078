"""Tables of users: CSV, TSV, JSON lines, JSON or parquet, alone or in a folder with pictures.

The one reader of such files: answers, labels, weights of options, questions. What its cells say is in
`hedge_tasks.data.cells`, which column is what in `hedge_tasks.data.columns`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from loguru import logger

from hedge_tasks.data import repositories
from hedge_tasks.data import splits as splits_module
from hedge_tasks.data.cells import is_question
from hedge_tasks.data.conversations import flatten_conversations
from hedge_tasks.data.nested import flat_rows, join_by_key, with_coco_images
from hedge_tasks.data.pictures import PICTURE_FILES
from hedge_tasks.errors import ConfigError, DataError, first_line, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row, parse_objects
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

_BOOKS = {".xlsx", ".xlsm"}
_RUNS_CODE = {".pkl", ".pickle", ".pt", ".pth", ".joblib"}
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_MOST_FILES = 10_000

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
        return list(islice((value for value in values if not _is_empty(value)), most))


def _is_empty(value: object) -> bool:
    """Whether a cell is null, blank, or a record or list of nothing else."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_empty, value))
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def read_table(source: Path | str, *, split: str | None = None, config: str | None = None) -> StoredTable:
    """The table of a file, of a folder, or of a data set on the hub.

    A folder holds one table (with pictures or without), is laid out as the hub lays out its repositories, or was
    written by `save_to_disk`. A name such as `org/name` that is no path means a data set of the hub.

    Args:
        split: which one, where there are several. By default the only one, or "test".
        config: which one, where a data set of the hub has several.

    Raises:
        DataError: there is none, or it cannot be read or is empty; says what to do.
        ConfigError: there are several splits or configs, and it takes the user to say which.
    """
    path = Path(source)
    if not path.exists():
        if _HUB_ID.fullmatch(str(source)):
            return _hub_table(str(source), config, split)
        raise DataError(f"cannot read {path}: there is no such file or folder")
    table = replace(_folder_table(path, split, config), in_folder=True) if path.is_dir() else _file_table(path)
    if not table.columns or not table.n_rows:
        raise DataError(f"{table.name}: there are no rows in it")
    return table


def table_of_frame(frame: Any, folder: Path = Path(), name: str = "data frame") -> StoredTable:
    """The table of a data frame of pandas or polars, or of an Arrow table.

    Args:
        folder: from which names of pictures count.
        name: for messages.
    """
    import pyarrow as pa

    table = pa.Table.from_pandas(frame, preserve_index=False) if hasattr(frame, "iloc") else pa.table(frame)
    return _arrow_table([table], name, "data frame", folder)


def _file_table(file: Path) -> StoredTable:
    suffix = file.suffix.lower()
    if suffix in _RUNS_CODE:
        raise DataError(f"{file}: a pickle runs code when it is read; write it as parquet (frame.to_parquet) or CSV")
    if suffix in _BOOKS:
        return _spreadsheet_table(file)
    if suffix == ".arrow":
        return _saved_table(file.parent, None)
    kind = KINDS.get(suffix)
    if kind is None:
        raise DataError(f"{file}: expected a file that ends in {', '.join(KINDS)}, or a folder with one")
    return _parquet_table([file]) if kind == "parquet" else _text_table([file], kind)


def _folder_table(folder: Path, split: str | None, config: str | None) -> StoredTable:
    if (folder / "dataset_dict.json").is_file():
        splits = {path.name: [path] for path in sorted(folder.iterdir()) if (path / "state.json").is_file()}
        name, note = _choose_split(folder, splits, split)
        return replace(_saved_table(folder / name, None), notes=note)
    if (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file():
        return _saved_table(folder, split)
    splits = repositories.splits_of(folder, config)
    if not splits:
        raise DataError(f"{folder}: {_why_no_table(folder)}")
    name, note = _choose_split(folder, splits, split)
    files = splits[name]
    kinds = {KINDS[file.suffix.lower()] for file in files}
    if kinds == {"parquet"}:
        return replace(_parquet_table(files), notes=note)
    if (two := _pair_table(files)) is not None:
        return replace(two, notes=(*two.notes, *note))
    if len(files) > 1 and (name == "" or len(kinds) > 1):
        raise DataError(f"{folder}: it holds several tables, name the one that is meant: {', '.join(map(str, files))}")
    table = _text_table(files, kinds.pop())
    return replace(table, notes=(*table.notes, *note))


def _choose_split(folder: Path, splits: Mapping[str, object], split: str | None) -> tuple[str, tuple[str, ...]]:
    """The split that is meant, and what is to be said of it."""
    if split is not None:
        if split not in splits:
            raise unknown(f"split of {folder}", split, [name for name in splits if name])
        return split, (f"split: {split!r} of {', '.join(splits)}",)
    if len(splits) == 1:
        [name] = splits
        return name, (f"split: {name!r}, the only one",) if name else ()
    if "test" in splits:
        return "test", (f"split: 'test' of {', '.join(splits)}; --split NAME takes another",)
    raise ConfigError(f"{folder}: which of its splits, {', '.join(splits)}? Say --split NAME")


def _why_no_table(folder: Path) -> str:
    """Why a folder cannot be read, by the files in it, and what to do."""
    files = [path for path in islice(folder.rglob("*"), _MOST_FILES) if path.is_file()]
    endings = {path.suffix.lower() for path in files}
    if books := [path for path in files if path.suffix.lower() in _BOOKS]:
        return f"it holds a spreadsheet ({books[0].name}) and no other table; save its sheet as CSV"
    if endings & _RUNS_CODE:
        return "it holds a pickle and no other table. A pickle runs code when it is read; write parquet or CSV"
    deeper = [path for path in files if path.suffix.lower() in KINDS and _is_visible(path)]
    if deeper:
        return (
            f"no table lies in it; name the one that is meant, such as {deeper[0]} (--images: where its pictures are)"
        )
    what = "it holds pictures but no table" if endings & set(PICTURE_FILES) else "it holds no table"
    return (
        f"{what}. Put a CSV file into it, with a column of the pictures' names, the questions and the right answers: "
        "image,question,answer"
    )


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(".") for part in path.parts)


def kind_of(path: Path, default: str = "JSON lines") -> str:
    """Return the kind of a file by its ending, as `KINDS` has it."""
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
        table = _parquet_table([path])
        if path.stat().st_size > outside.LARGEST_TEXT:
            raise DataError(f"{path}: larger than {outside.LARGEST_TEXT >> 30} GiB")
        parquet_rows = _checked_parquet(str(path), lambda: table.rows(None))
        return [(f"{path}: row {i}", row) for i, row in enumerate(parquet_rows)]
    name = "<stdin>" if path == STDIN else str(path)
    lines = outside.raw_lines(sys.stdin.buffer, name) if path == STDIN else outside.read_raw_lines(path)
    if kind == "JSON lines":
        return parse_objects(lines, name)
    data = b"".join(line for _, line in lines) if path == STDIN else None
    if data is not None:
        text = outside.clean(outside.decode(data, name))
    elif kind == "CSV":
        text, encoding = outside.read_table_text(path)
        if encoding:
            logger.warning("{}: not UTF-8, read as {}", name, encoding)
    else:
        text = outside.read_text(path)
    if kind == "CSV":
        return list(parse_csv(text, name, _separator(text)))
    rows = _json_rows(outside.parse_json(text, name))
    if rows is None:
        raise DataError(f"{name}: expected a JSON list of objects, one a question")
    return [(f"{name}: item {i}", row) for i, row in enumerate(rows, start=1)]


def _json_rows(value: Any) -> list[dict[str, Any]] | None:
    """The rows of a JSON value: a list of objects, an object with one such list in it, lists of equal length by column,
    or objects with a question each by id; None for anything else.
    """
    if isinstance(value, list):
        return value if all(isinstance(row, dict) for row in value) else None
    if not isinstance(value, dict) or not value:
        return None
    if all(isinstance(item, dict) and any(map(is_question, item)) for item in value.values()):
        return [{"id": id, **item} for id, item in value.items()]
    lists = [item for item in value.values() if isinstance(item, list)]
    if len(lists) == len(value) and len(set(map(len, lists))) == 1 and len(value) > 1:
        return [dict(zip(value, row, strict=True)) for row in zip(*lists, strict=True)]
    records = [item for item in lists if item and all(isinstance(row, dict) for row in item)]
    return records[0] if len(records) == 1 else with_coco_images(records, is_question)


def _text_table(files: Sequence[Path], kind: str) -> StoredTable:
    rows = [row for file in files for _, row in read_rows(file, kind)]
    rows, conversations = flatten_conversations(rows, str(files[0]))
    read_as, notes = kind, []
    if kind != "CSV":
        rows, opened = flat_rows(rows, is_question)
        notes += [opened] if opened else []
    if kind == "CSV":
        text, encoding = outside.read_table_text(files[0])
        read_as = f"CSV, separated by {_SEPARATORS[_separator(text)]}{f', in {encoding}' if encoding else ''}"
    if conversations:
        notes.append("conversations of one turn each: what is asked became 'question', the reply 'answer'")
    return _memory_table(files[0], read_as, rows, files[0].parent, notes)


def _memory_table(
    name: Path, read_as: str, rows: Sequence[Mapping[str, Any]], folder: Path, notes: Sequence[str] = ()
) -> StoredTable:
    """The table of rows that are in memory, with the columns that any of them has."""
    # pandas writes its row numbers into a column without a name
    columns = tuple(column for column in dict.fromkeys(column for row in rows for column in row) if column)
    read = partial(_memory_rows, rows, columns)
    return StoredTable(str(name), read_as, columns, len(rows), folder, read, tuple(notes))


def _pair_table(files: Sequence[Path]) -> StoredTable | None:
    """Questions in one file and answers in another one, as VQAv2 has them; None where two files are something else."""
    if len(files) != 2 or any(kind_of(file) not in ("JSON", "JSON lines") for file in files):
        return None
    parts = [[row for _, row in read_rows(file)] for file in files]
    if not all(parts) or (joined_rows := join_by_key(parts[0], parts[1], is_question)) is None:
        return None
    rows, note = joined_rows
    return _memory_table(files[0].parent, "JSON", rows, files[0].parent, [note])


def _memory_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], selected: Sequence[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    return ({name: row.get(name) for name in selected or columns} for row in rows)


def _separator(text: str) -> str:
    """Return what separates the columns: the header's most frequent one of those that are usual."""
    header = text.split("\n", 1)[0]
    return max(_SEPARATORS, key=header.count)


def _parquet_table(files: Sequence[Path]) -> StoredTable:
    import pyarrow.parquet as pq

    name = str(files[0] if len(files) == 1 else files[0].parent)
    opened = _checked_parquet(name, lambda: [pq.ParquetFile(file) for file in files])
    schema = opened[0].schema_arrow
    columns = tuple(column for column in schema.names if not column.startswith("__index_level_"))
    for file, parquet in zip(files, opened, strict=True):
        if missing := set(columns) - set(parquet.schema_arrow.names):
            raise DataError(f"{file}: there is no column {sorted(missing)[0]!r}, which {files[0].name} has")
    n_rows = sum(file.metadata.num_rows for file in opened)
    read_as = "parquet" if len(files) == 1 else f"{len(files)} parquet files"
    rows = partial(_parquet_rows, files, columns, _class_names(schema.metadata))
    return StoredTable(name, read_as, columns, n_rows, files[0].parent, rows)


def _saved_table(folder: Path, split: str | None) -> StoredTable:
    """A data set as `datasets` has saved it."""
    from datasets import load_from_disk

    if split is not None:
        raise ConfigError(f"{folder}: it holds one split; leave out --split {split}")
    try:
        dataset = load_from_disk(str(folder))
    except Exception as error:  # of many kinds, for damaged files and those of other versions
        raise DataError(f"{folder}: not readable as a saved data set ({first_line(error)})") from error
    return _dataset_table(dataset, str(folder), "saved data set", folder)


def _dataset_table(dataset: Any, name: str, read_as: str, folder: Path) -> StoredTable:
    def rows(selected: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
        chosen = dataset.select_columns(list(selected)) if selected else dataset
        labels = _labels_of(dataset.features)
        for piece in chosen.with_format("arrow").iter(_ROWS_AT_ONCE):
            yield from (_labelled(row, labels) for row in piece.to_pylist())

    return StoredTable(name, read_as, tuple(dataset.column_names), len(dataset), folder, rows)


def _hub_table(name: str, config: str | None, split: str | None) -> StoredTable:
    """A data set of the hub; a copy below HEDGE_DATA_DIR goes first.

    Its folder is none that is there: names in its rows mean nothing on this machine.
    """
    if (copy := splits_module.local_copy(name)) is not None:
        return _folder_table(copy, split, config)
    dataset = splits_module.load_split(name, config, split or "test")
    note = f"split: {split or 'test'!r}"
    return replace(_dataset_table(dataset, name, "data set of the hub", Path(name)), notes=(note,))


def _spreadsheet_table(file: Path) -> StoredTable:
    """The only sheet of a spreadsheet."""
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
    if len(set(names) - {""}) < len([name for name in names if name]):
        raise DataError(f"{file}: the header names a column twice")
    blank: dict[str, Any] = dict.fromkeys(name for name in names if name)  # a row may be shorter than the header
    named_cells = (zip(names, row, strict=False) for row in cells if not _is_empty(list(row)))
    rows = [blank | {name: value for name, value in row if name} for row in named_cells]
    return _memory_table(file, "spreadsheet", rows, file.parent)


def _arrow_table(tables: Sequence[Any], name: str, read_as: str, folder: Path) -> StoredTable:
    def rows(selected: Sequence[str] | None = None) -> Iterator[Mapping[str, Any]]:
        for table in tables:
            for batch in (table.select(list(selected)) if selected else table).to_batches(_ROWS_AT_ONCE):
                yield from batch.to_pylist()

    columns = tuple(tables[0].column_names)
    return StoredTable(name, read_as, columns, sum(table.num_rows for table in tables), folder, rows)


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names behind the numbers of a column, where `datasets` has written them beside the rows."""
    try:
        info = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {c: f["names"] for c, f in info.items() if isinstance(f, dict) and f.get("_type") == "ClassLabel"}
    except (KeyError, TypeError, ValueError):
        return {}


def _labels_of(features: Any) -> dict[str, list[str]]:
    from datasets import ClassLabel

    return {column: list(f.names) for column, f in features.items() if isinstance(f, ClassLabel)}


def _labelled(row: Mapping[str, Any], labels: Mapping[str, Sequence[str]]) -> Mapping[str, Any]:
    """A row with names in place of the numbers of classes; -1 is none."""
    if not labels.keys() & row.keys():
        return row
    return {
        column: value
        if column not in labels or not isinstance(value, int)
        else (labels[column][value] if 0 <= value < len(labels[column]) else None)
        for column, value in row.items()
    }


def _checked_parquet(name: str, read: Callable[[], Iterable[T]]) -> list[T]:
    try:
        return list(read())
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        if isinstance(error, DataError):
            raise
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [""])[0][:200]
        raise DataError(f"{name}: not readable as parquet ({reason})") from error


def _parquet_rows(
    files: Sequence[Path],
    columns: Sequence[str],
    labels: Mapping[str, Sequence[str]],
    selected: Sequence[str] | None = None,
) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(selected or columns)
    for file in files:
        opened, unpacked = pq.ParquetFile(file), 0
        groups = [opened.metadata.row_group(i).total_byte_size for i in range(opened.num_row_groups)]
        outside.check_unpacked(file, sum(groups))
        # A value that is stored once, and repeated by its number, is in every row that is read.
        at_once = max(1, min(_ROWS_AT_ONCE, outside.most_unpacked(file) // max([1, *groups])))
        for batch in opened.iter_batches(at_once, columns=names):
            columns_read = (c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns)
            unpacked += sum(column.nbytes for column in columns_read)
            outside.check_unpacked(file, unpacked)
            yield from (_labelled(row, labels) for row in batch.to_pylist())
