"""Append-only records that are found again by a key: stores of answers, labels, replies and scores are made of these.

A folder holds one file a writer, so that several processes and hosts can write to it without a lock. A line is a JSON
object whose last field is its checksum (`hedge_tasks.io.json_lines.seal`); `key` says what it is the value of. On
object storage, where nothing can be appended to, a writer has a series of files, the last of which is written anew.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from loguru import logger

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.files import sync, sync_folder
from hedge_tasks.io.json_lines import seal, unseal
from hedge_tasks.io.outside import raw_lines
from hedge_tasks.io.places import Place, Remote

SYNC_SECONDS = 1.0
"""Between two syncs to disk at least; a model that takes longer for a batch has every batch synced."""

UPLOAD_SECONDS = 5.0
"""As `SYNC_SECONDS`, of object storage."""

LARGEST_OBJECT = 4 << 20
"""Bytes at which a writer goes on with another file on object storage, as each upload sends the whole file."""

_MOST_LISTINGS = 10

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """One line of a log: its place, and the record in it or what is wrong with it."""

    file: Place
    number: int
    record: Mapping[str, Any] | None
    problem: str | None = None


class KeyedLog(Mapping[str, T]):
    """The values in a folder, by key. Threads may share it, and other processes may write to the same folder.

    Damaged lines, and lines that are no such values, are left out with one warning: what they held is made again. Of
    two values under a key the older one stands.

    Args:
        folder: Where the files are, here or on object storage; made when the first value is kept. None keeps the values
            in memory only.
        kind: First part of the file names.
        contents: What the values are, for messages.
        read: The value of a record. Raises DataError where it is none.
        gives_way: Whether a value that is known gives way to another one under its key; by default none does.

    Attributes:
        dropped: Damaged lines.
        conflicts: Values of a key that had another one already, which stands.
        stems: What the names of the files begin with that this object has written.
        written: Bytes that it has written to the last one of them.

    Raises:
        DataError: A file cannot be read.
    """

    def __init__(
        self,
        folder: Place | None,
        kind: str,
        contents: str,
        read: Callable[[Mapping[str, Any]], T],
        gives_way: Callable[[T], bool] = lambda value: False,
    ) -> None:
        self.folder = folder
        self.dropped: list[Line] = []
        self.conflicts: list[Line] = []
        self.stems: list[str] = []
        self.written = 0
        self._kind, self._contents, self._read, self._gives_way = kind, contents, read, gives_way
        self._values: dict[str, T] = {}
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._synced = -math.inf
        self._take_all(self._all_lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, key: str) -> T:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        """The keys."""
        return iter(self._values)

    def files(self) -> list[Place]:
        """The files of all writers, oldest first: their names begin with the time."""
        return [] if self.folder is None else files_of(self.folder, self._kind)

    def _all_lines(self) -> Iterator[Line]:
        return read_lines(self.files())

    def _take_all(self, read: Callable[[], Iterable[Line]]) -> None:
        """Take lines, and read them again where a file has gone in between: what was in it is part of another one now.

        Raises:
            DataError: A file cannot be read, or is or has a line larger than the bounds of `hedge_tasks.io.outside`.
        """
        with self._lock:
            dropped, conflicts = len(self.dropped), len(self.conflicts)
            for _ in range(_MOST_LISTINGS):
                del self.dropped[dropped:], self.conflicts[conflicts:]
                try:
                    for line in read():
                        self._take_line(line)
                    break
                except FileNotFoundError as error:
                    gone = error
            else:
                raise DataError(f"cannot read {gone.filename or self.folder}: {gone.strerror or gone}") from gone
            new = self.dropped[dropped:]
        self._warn_of(new)

    def _take_line(self, line: Line) -> None:
        try:
            if line.record is None:
                raise DataError(str(line.problem))
            self._take(line, line.record)
        except DataError as error:
            self.dropped.append(replace(line, record=None, problem=str(error)))

    def _warn_of(self, dropped: Sequence[Line]) -> None:
        if dropped:
            logger.warning(
                "{}: {} damaged {} are left out and made again, the first one at {}:{}: {}",
                *(self.folder, len(dropped), self._contents, dropped[0].file.name, dropped[0].number),
                dropped[0].problem,
            )

    def keep(self, entries: Iterable[tuple[str, T, Mapping[str, Any]]]) -> None:
        """Keep values; when this returns, the death of the process loses none of them.

        Args:
            entries: key, value, and the other fields of its record.

        Raises:
            HedgeError: The disk is full or the folder cannot be written; what was kept before stays valid.
        """
        with self._lock:
            new = list(entries)
            self._append({"key": key, **fields} for key, _, fields in new)
            for key, value, _ in new:
                self._set(key, value)

    def close(self) -> None:
        """Make everything durable.

        Raises:
            HedgeError: As `keep`.
        """
        with self._lock:
            file, self._file = self._file, None
            if file is None:
                return
            try:
                with file:
                    self._sync(file)
            except OSError as error:
                raise self._failure(error) from error

    def _take(self, line: Line, record: Mapping[str, Any]) -> None:
        """Take the value of a record. Raises DataError where there is none."""
        key = record.get("key")
        if not isinstance(key, str):
            raise DataError(f"a record of {self._contents} without a key")
        value = self._read(record)
        if self._set(key, value) != value:
            self.conflicts.append(replace(line, problem=f"another value of {key}"))

    def _set(self, key: str, value: T) -> T:
        """The value that stands under a key now."""
        if key not in self._values or self._gives_way(self._values[key]):
            self._values[key] = value
        return self._values[key]

    def _append(self, records: Iterable[Mapping[str, Any]]) -> None:
        # A power cut loses at most what was appended in the second after the last sync: syncing after every batch would
        # cost a fast model more than a percent of its time.
        lines = b"".join(seal(record) for record in records)
        if not lines or self.folder is None:
            return
        try:
            if self._file is None:
                self.stems.append(_new_stem(self._kind))
                self._file, self.written = _create(self.folder, self.stems[-1]), 0
            self.written += len(lines)
            if self._file.write(lines) != len(lines):  # an unbuffered file may take less than it is given
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if time.monotonic() - self._synced >= (SYNC_SECONDS if isinstance(self.folder, Path) else UPLOAD_SECONDS):
                self._sync(self._file)
        except OSError as error:
            # Half a line may be at the end of this file: whoever goes on nevertheless starts another one. What has not
            # been uploaded is still in the upload's hands, which tries again with the next lines.
            if self._file is not None and not isinstance(self._file, _Upload):
                file, self._file = self._file, None
                file.close()
            raise self._failure(error) from error

    def _sync(self, file: IO[bytes]) -> None:
        if isinstance(file, _Upload):
            file.upload()
        else:
            sync(file.fileno(), Path(file.name).parent)
        self._synced = time.monotonic()

    def _failure(self, error: OSError) -> HedgeError:
        return HedgeError(f"cannot write {self._contents} to {self.folder}: {error}. Stored {self._contents} are kept.")


class _Upload(BytesIO):
    """A series of files on object storage, written like one file."""

    def __init__(self, folder: Remote, stem: str) -> None:
        super().__init__()
        self._folder, self._stem = folder, stem
        self._number, self._uploaded = 1, 0

    def upload(self) -> None:
        """Write what is new. Raises OSError."""
        if self.tell() == self._uploaded:
            return
        (self._folder / f"{self._stem}-{self._number:05}.jsonl").write(self.getvalue())
        self._uploaded = self.tell()
        if self._uploaded >= LARGEST_OBJECT:
            self._number += 1
            self._uploaded = self.seek(0)
            self.truncate()


def files_of(folder: Place, kind: str, suffix: str = ".jsonl") -> list[Place]:
    """The files of a kind in a folder, by default those of a log, oldest first.

    Raises:
        DataError: The folder cannot be reached.
    """
    if isinstance(folder, Path):
        return list[Place](sorted(folder.glob(f"{kind}-*{suffix}")))
    try:
        return list[Place](folder.listed(f"{kind}-", suffix))
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error}") from error


def read_lines(files: Iterable[Place]) -> Iterator[Line]:
    """The lines of files; a damaged line comes with its problem.

    Raises:
        DataError: A file cannot be read, or is or has a line larger than the bounds of `hedge_tasks.io.outside`.
        FileNotFoundError: It has gone.
    """
    for file in files:
        try:
            with file.open("rb") if isinstance(file, Path) else BytesIO(file.read_bytes()) as opened:
                for number, line in raw_lines(opened, str(file)):
                    yield _line(file, number, line)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DataError(f"cannot read {file}: {error.strerror or error}") from error


def _line(file: Place, number: int, line: bytes) -> Line:
    try:
        return Line(file, number, unseal(line))
    except DataError as error:
        torn = "" if line.endswith(b"\n") else " (the end of an interrupted write, or of one under way)"
        return Line(file, number, None, f"{error}{torn}")


def _new_stem(kind: str) -> str:
    """The name of a new file of this process, without its ending; younger ones come later in the alphabet."""
    created = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%f")
    return f"{kind}-{created}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def _create(folder: Place, stem: str) -> IO[bytes]:
    if not isinstance(folder, Path):
        return _Upload(folder, stem)
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / f"{stem}.jsonl").open("xb", buffering=0)
    sync_folder(folder)
    return file
