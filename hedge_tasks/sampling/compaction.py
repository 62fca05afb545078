"""Compaction of logs that nobody writes to any more into segments.

Segments are written first, each as a whole, and the logs removed after that: whenever the process is killed, every
record is in one of the two, and a record that is in both is the same record.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from loguru import logger

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.json_lines import is_sound
from hedge_tasks.io.keyed_log import files_of, lock, log_files, read_lines
from hedge_tasks.io.places import Place, size_of
from hedge_tasks.sampling.segments import SUFFIX, Row, read_footer, read_records, write_segment
from hedge_tasks.sampling.store import HOMES, KIND, AnswerStore

MOST_ROWS = 50_000
"""Of a segment: what is held in memory, and the least that is read of a slice."""

MOST_BYTES = 64 << 20
"""Of the records of a segment, about."""

WORTH_IT = 10_000
"""Records from which a process makes segments of its own logs at its end; fewer are read as quickly as they are."""

ABANDONED_S = 86_400
"""Age at which a log of another machine counts as left behind."""


@dataclass(frozen=True)
class Compacted:
    """The result of compacting a store.

    Attributes:
        rows: records in the new segments.
        segments: number of new ones.
        replaced: logs and small segments that are part of them now.
        left: logs that stay as they are, and why.
    """

    rows: int
    segments: int
    replaced: int
    left: dict[str, str]


def compact(folder: Place, *, everything: bool = False, mine: tuple[str, ...] | None = None) -> Compacted:
    """Make segments of the logs of processes that have ended, and few segments of many small ones.

    Args:
        everything: also logs of other machines that may still be written to: the caller knows that they are not.
        mine: only logs whose names begin so, which the caller has closed.

    Raises:
        DataError: a file cannot be read or written. Nothing is lost then.
    """
    left: dict[str, str] = {}
    with ExitStack() as locks:
        logs: list[Place] = []
        for log in log_files(folder, KIND):
            if mine is not None and not log.name.startswith(mine):
                continue
            if reason := why_it_stays(log, locks, known_closed=mine is not None, everything=everything):
                left[log.name] = reason
            else:
                logs.append(log)
        small = _small_segments(folder) if mine is None else []
        if not logs and len(small) < 2:
            return Compacted(0, 0, 0, left)
        sizes = {log: size_of(log) for log in logs}
        n_rows = n_segments = 0
        for chunk in _chunks(_rows(logs, small)):
            write_segment(folder, KIND, chunk)
            n_rows, n_segments = n_rows + len(chunk), n_segments + 1
        for file in (*logs, *small):
            if file in sizes and size_of(file) != sizes[file]:  # somebody writes to it after all
                left[file.name] = "it has grown"
            else:
                _remove(file)
    return Compacted(n_rows, n_segments, len(logs) + len(small), left)


def compact_own(store: AnswerStore) -> None:
    """Make segments of what a process has written, at its end, where that is worth it. A failure costs nothing."""
    if store.folder is None or store.n_written < WORTH_IT:
        return
    try:
        compact(store.folder, mine=tuple(store.stems))
    except HedgeError as error:
        logger.warning("{}: the logs stay as they are: {}", store.folder, error)


def why_it_stays(log: Place, locks: ExitStack, *, known_closed: bool = False, everything: bool = False) -> str | None:
    """Why a log has to stay; None where it can become part of something else. Then it is locked."""
    try:
        if not isinstance(log, Path):
            old = time.time() - log.modified() > ABANDONED_S
            return None if known_closed or everything or old else "somebody may be writing to it"
        opened = locks.enter_context(log.open("rb"))
        locked = lock(opened)
        if locked is False:
            return "somebody writes to it, or makes a segment of it"
        old = time.time() - log.stat().st_mtime > ABANDONED_S
        if not (known_closed or everything or old or (locked and _ours_and_dead(log.name))):
            return "somebody may be writing to it"
        return _damage(opened)
    except FileNotFoundError:
        return "it has gone"
    except OSError as error:
        raise DataError(f"cannot read {log}: {error.strerror or error}") from error


def _ours_and_dead(name: str) -> bool:
    """Whether a process of this machine has written a log, and has let go of it (so much is known by its lock)."""
    return f"-{socket.gethostname()}-" in name


def _damage(opened: IO[bytes]) -> str | None:
    """Whether a log has damaged lines but for its end: it stays then, as `hedge store verify` shows it."""
    opened.seek(0)
    bad = any(line.endswith(b"\n") and line != b"\n" and not is_sound(line) for line in opened)
    return "it has damaged lines (hedge store verify)" if bad else None


def _small_segments(folder: Place) -> list[Place]:
    small = []
    for file in files_of(folder, KIND, SUFFIX):
        with suppress(DataError, FileNotFoundError):  # a damaged one stays, as `hedge store verify` shows it
            if read_footer(file).facts.rows < MOST_ROWS // 2:
                small.append(file)
    return small


def _rows(logs: list[Place], segments: list[Place]) -> Iterator[tuple[Row, int]]:
    """Rows with about the number of bytes that they take, of the oldest log first."""
    sources: list[tuple[str, Callable[[], Iterator[tuple[Row, int]]]]] = []
    sources += [(log.name, lambda log=log: _log_rows(log)) for log in logs]  # type: ignore[misc]
    sources += [(read_footer(file).facts.first, lambda file=file: _segment_rows(file)) for file in segments]  # type: ignore[misc]
    for _, rows in sorted(sources, key=lambda source: source[0]):
        yield from rows()


def _log_rows(log: Place) -> Iterator[tuple[Row, int]]:
    for line in read_lines([log]):
        if line.record is not None and HOMES not in line.record:
            yield Row(line.file.name, line.number, line.record), len(str(line.record))


def _segment_rows(file: Place) -> Iterator[tuple[Row, int]]:
    for row in read_records(file):
        yield row, len(str(row.record))


def _chunks(rows: Iterator[tuple[Row, int]]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    size = 0
    for row, n_bytes in rows:
        chunk.append(row)
        size += n_bytes
        if len(chunk) >= MOST_ROWS or size >= MOST_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _remove(file: Place) -> None:
    if isinstance(file, Path):
        file.unlink(missing_ok=True)
    else:
        file.remove()
