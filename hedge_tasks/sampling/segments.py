"""Segments: finished logs of answers, as Parquet that is read by document.

A segment has a row a record of the logs, sorted by document, and each row says where it was: `source` (the log's name)
and `line`. So reading segments and logs together gives what reading the logs gave. In its footer stand the documents
that it has rows of, by `home`, so that whoever wants other ones reads nothing else of it. Pages carry checksums.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedge_tasks.data.answers import Answer, Finish
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.keyed_log import new_stem
from hedge_tasks.io.places import Place
from hedge_tasks.io.records import Count, Record

SUFFIX = ".parquet"

_PAGE_ROWS = 4096  # of a row group, the least that is decoded
_FOOTER = 1 << 18
_FACTS = b"hedge_tasks"
_HOMES = b"hedge_tasks.homes"

_SCHEMA = pa.schema(
    [
        ("of", pa.string()),
        ("source", pa.string()),
        ("line", pa.int64()),
        ("key", pa.string()),
        ("id", pa.string()),
        ("condition", pa.string()),
        ("index", pa.int64()),
        ("text", pa.string()),
        ("mean_logprob", pa.float64()),
        ("n_tokens", pa.int64()),
        ("finish", pa.string()),
        ("rest", pa.string()),
    ]
)
"""`rest` is JSON: of an answer its other fields; of any other record, which has no `key`, all of it."""

_NAMES = set(_SCHEMA.names)
_HOME = re.compile(r"[0-9a-f]{16}")
_COLUMNS = ("text", "mean_logprob", "n_tokens", "finish")
_ANSWER = {"key", "answer", "of", "id", "condition", "index"}


def home(document: str) -> str:
    """Sixteen hexadecimal digits that stand for a document's key, and for all that is derived from it (`key/blank`)."""
    return hashlib.blake2b(document.partition("/")[0].encode(), digest_size=8).hexdigest()


def home_of(record: Mapping[str, Any]) -> str:
    """The home of a log's record; empty where it belongs to no document alone."""
    document = record.get("document")
    if isinstance(document, Mapping):
        return home(str(document.get("key")))
    value = record.get("of")
    return value if isinstance(value, str) and _HOME.fullmatch(value) else ""


@dataclass(frozen=True)
class Row:
    """A record of a log, with the log's name and its line."""

    source: str
    line: int
    record: Mapping[str, Any]


@dataclass(frozen=True)
class SegmentRow:
    """A row of a segment: an answer with its key, or any record as a log has it."""

    source: str
    line: int
    key: str | None
    value: Answer | Mapping[str, Any]


class Facts(Record):
    """The footer of a segment.

    Attributes:
        first, first_line: the earliest place that a row comes from.
        rows: their number.
        crc32: of the homes.
    """

    first: str
    first_line: int
    rows: Count
    crc32: int


@dataclass(frozen=True)
class Footer:
    """The footer of a segment: its facts, and the homes of its documents, sorted."""

    facts: Facts
    homes: NDArray[np.uint64]

    def may_hold(self, homes: NDArray[np.uint64]) -> bool:
        """Whether it may have a row of these homes (sorted)."""
        anybodys = bool(self.homes.size) and not self.homes[0]
        return anybodys or bool(np.isin(homes, self.homes, assume_unique=True).any())


def homes_array(homes: Collection[str]) -> NDArray[np.uint64]:
    """Homes as sorted numbers; the empty one is 0."""
    return np.unique(np.array([int(h or "0", 16) for h in homes], dtype=np.uint64))


def write_segment(folder: Place, kind: str, rows: Sequence[Row]) -> Place:
    """Write rows of logs as a segment, sorted by document. A row that is there twice is kept once.

    Raises:
        DataError: the folder cannot be written.
    """
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    # A compaction that was killed has left a log and a segment of it.
    by_place = {(home_of(row.record), row.source, row.line): row.record for row in rows}
    for (row_home, source, line), record in sorted(by_place.items(), key=itemgetter(0)):
        fields = {"of": row_home, "source": source, "line": line, **_fields(record)}
        for name, column in columns.items():
            column.append(fields.get(name))
    first = min((row.source, row.line) for row in rows)
    # Definitions and reports are nobody's: they make no reader of other documents read the segment.
    numbered = {row_home for (row_home, _, _), record in by_place.items() if row_home or "key" in record}
    numbers = homes_array(numbered).astype("<u8").tobytes()
    facts = Facts(
        first=first[0],
        first_line=first[1],
        rows=len(columns["of"]),
        crc32=zlib.crc32(numbers),
    )
    schema = _SCHEMA.with_metadata({_FACTS: facts.model_dump_json().encode(), _HOMES: numbers.hex().encode()})
    file = BytesIO()
    pq.write_table(
        pa.table(columns, schema=schema),
        file,
        compression="zstd",
        row_group_size=_PAGE_ROWS,
        use_dictionary=["of", "source", "id", "condition", "text", "finish"],
        sorting_columns=[pq.SortingColumn(0)],
        write_page_checksum=True,
    )
    target = folder / f"{new_stem(kind)}{SUFFIX}"
    write_place(target, file.getvalue())
    return target


def write_place(target: Place, content: bytes) -> None:
    """Write a file that appears as a whole or not at all.

    Raises:
        DataError: it cannot be written.
    """
    if isinstance(target, Path):
        write_whole(target, content)
        return
    try:
        target.write(content)
    except OSError as error:
        raise DataError(f"cannot write {target}: {error}") from error


def read_footer(file: Place) -> Footer:
    """Raises DataError where there is none, FileNotFoundError where the file has gone."""
    try:
        metadata = pq.read_metadata(file if isinstance(file, Path) else _FileEnd(file)).metadata or {}
        facts = Facts.read(json.loads(metadata[_FACTS]), str(file))
        content = bytes.fromhex(metadata[_HOMES].decode())
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise DataError(f"{file}: no sound segment: {error}") from error
    if zlib.crc32(content) != facts.crc32:
        raise DataError(f"{file}: no sound segment: the checksum of its documents does not match")
    return Footer(facts, np.frombuffer(content, dtype="<u8").astype(np.uint64))


def read_rows(file: Place, homes: Collection[str] | None = None) -> Iterator[SegmentRow]:
    """The rows of a segment.

    Args:
        homes: only those of these, and of no document; None takes all.

    Raises:
        DataError: it is damaged.
        FileNotFoundError: it has gone.
    """
    selected = None if homes is None else pa.array(sorted({*homes, ""}), pa.string())
    for table in _tables(file, selected):
        yield from _segment_rows(table)


def read_records(file: Place) -> Iterator[Row]:
    """The records of a segment as the logs had them.

    Raises:
        DataError, FileNotFoundError: as `read_rows`.
    """
    for table in _tables(file, None):
        for row in table.to_pylist():
            yield Row(row["source"], row["line"], _object(row["rest"]) if row["key"] is None else _record(row))


def read_unkeyed(file: Place) -> Iterator[Mapping[str, Any]]:
    """The records of a segment that are no answers: definitions, documents, reports. Only two columns are read.

    Raises:
        DataError: it is damaged.
        FileNotFoundError: it has gone.
    """
    for table in _tables(file, None, columns=["key", "rest"]):
        for text in table.filter(pc.is_null(table["key"]))["rest"].to_pylist():
            yield _object(text)


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    answer = {name: row[name] for name in _COLUMNS if row[name] is not None} | _object(row["rest"])
    place = {name: row[name] for name in ("of", "id", "condition", "index") if row[name] is not None}
    return {"key": row["key"], "answer": answer, **place}


def _tables(file: Place, homes: pa.Array | None, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a segment, a row group after the other."""
    try:
        source = file if isinstance(file, Path) else BytesIO(file.read_bytes())
        with pq.ParquetFile(source, page_checksum_verification=True) as opened:
            if set(opened.schema_arrow.names) != _NAMES:
                raise DataError(f"{file}: no sound segment: other columns than a segment has")
            for group in _groups(opened, homes):
                table = opened.read_row_group(group, columns=columns)
                yield table if homes is None else table.filter(pc.is_in(table["of"], value_set=homes))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{file}: damaged: {error}") from error


def _groups(opened: pq.ParquetFile, homes: pa.Array | None) -> Iterator[int]:
    """The row groups that may have wanted rows, by their statistics."""
    names = [] if homes is None else homes.to_pylist()
    for group in range(opened.num_row_groups):
        statistics = opened.metadata.row_group(group).column(0).statistics
        everything = homes is None or statistics is None or not statistics.has_min_max
        if everything or bisect_left(names, statistics.min) < bisect_right(names, statistics.max):
            yield group


def _segment_rows(table: pa.Table) -> Iterator[SegmentRow]:
    columns = [table[name].to_pylist() for name in ("source", "line", "key", *_COLUMNS, "rest")]
    # Checked as columns: it is a tenth of the time that it takes one by one.
    sound = bool(pc.all(pc.less_equal(table["mean_logprob"], 0.0), min_count=0).as_py())
    sound &= bool(pc.all(pc.greater_equal(table["n_tokens"], 0), min_count=0).as_py())
    sound &= set(pc.unique(table["finish"]).to_pylist()) <= {None, *get_args(Finish)}
    for source, line, key, text, mean, n_tokens, finish, other_fields in zip(*columns, strict=True):
        if key is None:
            yield SegmentRow(source, line, None, _object(other_fields))
        elif other_fields is None and sound and text is not None:
            yield SegmentRow(source, line, key, Answer(text, mean, n_tokens, finish))
        else:
            fields = {"text": text, "mean_logprob": mean, "n_tokens": n_tokens, "finish": finish}
            answer = {name: value for name, value in fields.items() if value is not None} | _object(other_fields)
            yield SegmentRow(source, line, None, {"key": key, "answer": answer})


def _object(text: str | None) -> dict[str, Any]:
    """The fields of a JSON object; none where it is no such thing, and then the row is no record."""
    try:
        fields = json.loads(text or "null")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a record. What does not fit into them is kept as it is, for the reader to judge."""
    answer = record.get("answer")
    if not isinstance(answer, Mapping) or set(record) - _ANSWER or not _fits(record, answer) or not _is_sound(answer):
        return {"rest": json.dumps(record, ensure_ascii=True)}
    other_fields = {name: value for name, value in answer.items() if name not in _COLUMNS}
    return {
        **{name: record.get(name) for name in ("key", "id", "condition", "index")},
        **{name: answer.get(name) for name in _COLUMNS},
        "rest": json.dumps(other_fields, ensure_ascii=True) if other_fields else None,
    }


def _is_sound(answer: Mapping[str, Any]) -> bool:
    try:
        Answer.read(answer)
    except DataError:
        return False
    return True


def _fits(record: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    texts = [record.get("key"), record.get("id", ""), record.get("condition", ""), answer.get("text")]
    integers = [record.get("index", 0), answer.get("n_tokens", 0)]
    return (
        all(isinstance(text, str) for text in texts)
        and all(type(number) is int and abs(number) < 1 << 62 for number in integers)
        and type(answer.get("mean_logprob", 0.0)) is float
    )


class _FileEnd:
    """The end of a file on object storage as a file to read; the rest is fetched only where it is asked for."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file, self._size, self._at = file, file.size(), 0
        self._end = file.end(_FOOTER)

    def read(self, n: int = -1) -> bytes:
        stop = self._size if n < 0 else min(self._size, self._at + n)
        if self._at < self._size - len(self._end):
            self._end = self._file.read_bytes()
        begin = self._size - len(self._end)
        content = self._end[self._at - begin : stop - begin]
        self._at = stop
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def flush(self) -> None:
        return None

    def close(self) -> None:
        return None
