"""Whether a run file is as it was written: every line's checksum, and a closing line with their number and digest.

A run file is sealed lines (`hedge_tasks.io.json_lines.seal`): the header, a line a document, and
`{"hedge_run_end": {"lines", "sha256", "ids", "header"}}`. The digest is that of all bytes before it. The ids and a copy
of the header are there so that what is gone can be named, and a damaged first line costs nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import Row, is_sealed, seal, unseal
from hedge_tasks.io.outside import read_raw_lines
from hedge_tasks.io.records import Count, Items, Objects, Record

HEADER = "hedge_run"
END = "hedge_run_end"

_NAME = re.compile(r"run-(\d{8,}|undated)-")


@dataclass(frozen=True)
class Inspection:
    """The sound part of a run file.

    Attributes:
        file: its path.
        header: place and fields; the closing line's copy where the first line is damaged; None without either.
        rows: the sound lines of documents.
        ids: of all documents that were written; None where the closing line is lost.
        problems: what is wrong, each with its place; none in a sound file.
        digest: SHA-256 of everything before the closing line.
    """

    file: Path
    header: Row | None
    rows: Sequence[Row] = ()
    ids: Sequence[str] | None = None
    problems: Sequence[str] = ()
    digest: str = ""


class _End(Record):
    """The closing line."""

    lines: Count
    sha256: str
    ids: Items[str]
    header: Objects[Any]


@dataclass
class _Reading:
    file: Path
    header: Row | None = None
    rows: list[Row] = field(default_factory=list)
    end: tuple[str, Any] | None = None
    problems: list[str] = field(default_factory=list)


def is_run_file(file: Path) -> bool:
    """Whether a file is a run file, damaged or not: by its first line, or by its name.

    Raises:
        DataError: it cannot be read.
    """
    first = next(read_raw_lines(file), (0, b""))[1]
    return b'"hedge_run"' in first[:80] or is_sealed(first) or (bool(first) and _NAME.match(file.name) is not None)


def sealed_run(header: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The text of a run file."""
    lines = [seal(line) for line in (header, *rows)]
    ids = [row["id"] for row in rows]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    end = {"lines": len(lines), "sha256": digest, "ids": ids, "header": dict(header)}
    return b"".join([*lines, seal({END: end})]).decode()


def inspect(file: Path) -> Inspection:
    """Read a run file and return what of it is sound.

    Raises:
        DataError: it cannot be read at all.
    """
    reading, digest, n_lines = _Reading(file), hashlib.sha256(), 0
    for number, line in read_raw_lines(file):
        where = f"{file}:{number}"
        if reading.end is not None:
            reading.problems.append(f"{where}: a line behind the closing one")
        fields = _read_line(reading, number, line, where)
        if not (fields and END in fields):
            digest.update(line)
            n_lines += 1
    computed = digest.hexdigest()
    ids, header_copy = _check_end(reading, n_lines, computed)
    if reading.header is None and header_copy is not None:
        reading.header = (f"{file}:1", header_copy)
    return Inspection(file, reading.header, reading.rows, ids, reading.problems, computed)


def _read_line(reading: _Reading, number: int, line: bytes, where: str) -> Mapping[str, Any] | None:
    try:
        fields = unseal(line)
    except DataError as error:
        reading.problems.append(f"{where}: {error}")
        return None
    if not line.endswith(b"\n"):
        reading.problems.append(f"{where}: its line end is missing")
    if END in fields:
        reading.end = (where, fields[END])
    elif HEADER in fields:
        if number != 1:
            reading.problems.append(f"{where}: a header that is not the first line")
        reading.header = reading.header or (where, fields)
    else:
        reading.rows.append((where, fields))
    return fields


def _check_end(reading: _Reading, n_lines: int, digest: str) -> tuple[Sequence[str] | None, Mapping[str, Any] | None]:
    """Check the closing line, and return the ids of all documents and the header in it."""
    if reading.end is None:
        reading.problems.append(f"{reading.file}: the closing line is missing, so the end of the file is lost")
        return None, None
    where, fields = reading.end
    try:
        end = _End.read(fields, where)
    except DataError as error:
        reading.problems.append(f"{error}: this is no closing line")
        return None, None
    if end.lines != n_lines:
        reading.problems.append(f"{where}: {n_lines} lines stand before it, and {end.lines} were written")
    if end.sha256 != digest:
        reading.problems.append(f"{where}: the lines before it are not those that were written")
    if reading.header is None:
        reading.problems.append(f"{reading.file}: the header is damaged or missing")
    return end.ids, end.header
