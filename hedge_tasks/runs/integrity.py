"""Whether a run file is as it was written: every line's checksum, and a closing line with their number and digest.

A run file is sealed lines (`hedge_tasks.io.json_lines.seal`): the header, a line a document, and
`{"hedge_run_end": {"lines", "sha256"}}`. The digest is that of all bytes before it. A file without a closing line lacks
documents, or may: what is there of it can be read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import Row, is_sealed, seal, unseal
from hedge_tasks.io.outside import read_raw_lines
from hedge_tasks.io.records import Count, Record

HEADER = "hedge_run"
END = "hedge_run_end"

_NAME = re.compile(r"run-(\d{8,}|undated)-")


@dataclass(frozen=True)
class Inspection:
    """The content of a run file, as far as it is sound.

    Attributes:
        file: its path.
        header: place and fields; None where the first line is damaged.
        rows: the sound lines of documents.
        problems: what is damaged, each with its place; none in a sound file.
        partial: whether the closing line is missing, and with it perhaps documents.
        digest: SHA-256 of everything before the closing line.
    """

    file: Path
    header: Row | None
    rows: Sequence[Row] = ()
    problems: Sequence[str] = ()
    partial: bool = False
    digest: str = ""


class _End(Record):
    """The closing line."""

    lines: Count
    sha256: str


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
    end = {"lines": len(lines), "sha256": hashlib.sha256(b"".join(lines)).hexdigest()}
    return b"".join([*lines, seal({END: end})]).decode()


def inspect(file: Path) -> Inspection:
    """Read a run file and return what of it is sound.

    Raises:
        DataError: it cannot be read at all.
    """
    lines = list(read_raw_lines(file))
    rows: list[Row] = []
    problems: list[str] = []
    for number, line in lines:
        try:
            fields = unseal(line)
        except DataError as error:
            problems.append(f"{file}:{number}: {error}")
            continue
        rows.append((f"{file}:{number}", fields))
    header = rows.pop(0) if rows and HEADER in rows[0][1] else None
    end = rows.pop() if rows and END in rows[-1][1] else None
    cut = bool(lines) and not lines[-1][1].endswith(b"\n")
    if end is None and cut and problems and problems[-1].startswith(f"{file}:{lines[-1][0]}:"):
        problems.pop()  # the line at which the file was cut off
    if header is None:
        problems.append(f"{file}: the header is damaged or missing")
    problems += [f"{at}: a closing line or a header among documents" for at, row in rows if END in row or HEADER in row]
    digest = hashlib.sha256(b"".join(line for _, line in (lines if end is None else lines[:-1]))).hexdigest()
    if end is not None and not problems:
        problems += _end_problems(end, len(lines) - 1, digest)
    return Inspection(file, header, rows, problems, end is None, digest)


def _end_problems(end: Row, n_lines: int, digest: str) -> list[str]:
    where, fields = end
    try:
        closing = _End.read(fields[END], where)
    except DataError as error:
        return [str(error)]
    if closing.lines != n_lines:
        return [f"{where}: {n_lines} lines stand before it, and {closing.lines} were written"]
    return [] if closing.sha256 == digest else [f"{where}: the lines before it are not those that were written"]
