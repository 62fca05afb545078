"""Segments: finished logs of answers, as Parquet that is read by document; an exported store is one, too.

A segment has a row a record: the document's `home` (sorted), the line that the record had, and the record as JSON. In
its footer stand the homes that it has rows of, so that whoever wants other documents reads nothing else of it. It has
the name of the log that it takes the place of, and so its place among the logs. Pages carry checksums.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.places import Place

SUFFIX = ".parquet"

_PAGE_ROWS = 4096  # of a row group, the least that is decoded
_AT_ONCE = 100_000
"""Records that are sorted together; a segment has fewer."""

_HOMES = b"hedge_tasks.homes"
_SCHEMA = pa.schema([("home", pa.string()), ("line", pa.int64()), ("record", pa.string())])
_HOME = re.compile(r"[0-9a-f]{16}")


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


def write_segment(target: Place, records: Iterable[Mapping[str, Any]]) -> int:
    """Write records as a segment, which appears as a whole or not at all. Returns how many there are.

    Raises:
        DataError: it cannot be written.
    """
    content, homes, n = BytesIO(), set[str](), 0
    remaining = iter(records)
    with pq.ParquetWriter(content, _SCHEMA, compression="zstd", write_page_checksum=True) as writer:
        while part := list(islice(remaining, _AT_ONCE)):
            rows = [(home_of(record), n + i, json.dumps(record)) for i, record in enumerate(part, start=1)]
            table = pa.table(list(map(list, zip(*sorted(rows), strict=True))), schema=_SCHEMA)
            writer.write_table(table, row_group_size=_PAGE_ROWS)
            # Definitions and reports are nobody's: they make no reader of other documents read the segment.
            homes |= {row[0] for row, record in zip(rows, part, strict=True) if row[0] or "key" in record}
            n += len(part)
        writer.add_key_value_metadata({_HOMES: "".join(sorted(h or "0" * 16 for h in homes))})
    if isinstance(target, Path):
        write_whole(target, content.getvalue())
        return n
    try:
        target.write(content.getvalue())
    except OSError as error:
        raise DataError(f"cannot write {target}: {error}") from error
    return n


def read_homes(file: Place) -> NDArray[np.uint64]:
    """The homes of the documents that a segment has rows of, sorted; 0 for answers of no document alone.

    Raises:
        DataError: it is damaged.
        FileNotFoundError: it has gone.
    """
    with _opened(file) as opened:
        text = (pq.read_metadata(opened).metadata or {})[_HOMES].decode()
        return np.array([int(text[i : i + 16], 16) for i in range(0, len(text), 16)], dtype=np.uint64)


def read_segment(file: Place, homes: Collection[str] | None = None) -> list[tuple[int, Mapping[str, Any]]]:
    """The records of a segment with their lines, in the order of these.

    Args:
        homes: only those of these, and of no document; None takes all.

    Raises:
        DataError: it is damaged.
        FileNotFoundError: it has gone.
    """
    chosen = None if homes is None else pc.field("home").isin(sorted({*homes, ""}))
    with _opened(file) as opened:
        table = pq.read_table(opened, filters=chosen, page_checksum_verification=True).sort_by("line")
        return list(zip(table["line"].to_pylist(), map(json.loads, table["record"].to_pylist()), strict=True))


@contextmanager
def _opened(file: Place) -> Iterator[Any]:
    """Open a segment; what is wrong with it becomes a DataError."""
    try:
        if isinstance(file, Path):
            with file.open("rb") as opened:
                yield opened
        else:
            import fsspec

            with fsspec.open(file.url, "rb") as opened:
                yield opened
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(f"{file}: no sound segment: {error}") from error
