"""Append-only files of checked JSON records: what the answer store and the label store are made of.

One file a writer, so that several processes and hosts can write to one folder without a lock. A line is a JSON object
whose last field is its checksum (`hedge_tasks.io.json_lines.seal`).
"""

from __future__ import annotations

import errno
import math
import os
import socket
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.json_lines import seal, unseal
from hedge_tasks.io.outside import raw_lines, read_raw_lines

SYNC_SECONDS = 1.0
"""Between two syncs to disk at least; a model that takes longer for a batch has every batch synced."""


ReadUpTo = tuple[int, int, int]
"""Byte and line that a file was read up to, and which file it was (its inode)."""


@dataclass(frozen=True)
class Line:
    """One line of a log: its place, and the record in it or what is wrong with it."""

    file: Path
    number: int
    record: Mapping[str, Any] | None
    problem: str | None = None


class RecordLog:
    """The logs of one kind in a folder; appends to a file of its own.

    Args:
        folder: where the files are; made when the first record is written.
        kind: first part of the file names.
        contents: what the records are, for error messages.
    """

    def __init__(self, folder: Path, kind: str, contents: str = "records") -> None:
        self.folder, self._kind, self._contents = folder, kind, contents
        self._file: IO[bytes] | None = None
        self._synced = -math.inf

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def files(self) -> list[Path]:
        """The files of all writers, oldest first: their names begin with the time."""
        return sorted(self.folder.glob(f"{self._kind}-*.jsonl"))

    def read(self) -> Iterator[Line]:
        """Every line of every file, the oldest file first; a damaged line comes with its problem.

        Raises:
            DataError: a file cannot be read.
        """
        for file in self.files():
            yield from read_lines(file)

    def read_new(self, begins: dict[Path, ReadUpTo]) -> Iterator[Line]:
        """The lines that were finished since an earlier call, for whoever watches others write.

        Args:
            begins: how far each file was read; brought up to date. A last line without its end is left for the next
                time, and a file that has become shorter or is another one is read from its beginning.

        Raises:
            DataError: a file cannot be read, or is or has a line larger than the bounds of `hedge_tasks.io.outside`.
        """
        for file in self.files():
            at, number, inode = begins.get(file, (0, 0, None))
            try:
                with file.open("rb") as opened:
                    found = os.fstat(opened.fileno())
                    at, number = (at, number) if at <= found.st_size and inode == found.st_ino else (0, 0)
                    opened.seek(at)
                    for k, line in raw_lines(opened, str(file)):
                        if line.endswith(b"\n"):
                            yield _line(file, number + k, line)
                            begins[file] = (opened.tell(), number + k, found.st_ino)
            except OSError as error:
                raise DataError(f"cannot read {file}: {error.strerror or error}") from error

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Keep records. When this returns, the death of the process loses none of them.

        A power cut loses at most what was appended in the second after the last sync: syncing after every batch would
        cost a fast model more than a percent of its time.

        Raises:
            HedgeError: the disk is full or the folder cannot be written; what was stored before stays valid.
        """
        lines = b"".join(map(_encode, records))
        if not lines:
            return
        try:
            if self._file is None:
                self._file = self._create()
            if self._file.write(lines) != len(lines):  # an unbuffered file may take less than it is given
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self._sync(self._file)
        except OSError as error:
            # Half a line may be at the end of this file: whoever goes on nevertheless starts another one.
            file, self._file = self._file, None
            if file is not None:
                file.close()
            raise self._failure(error) from error

    def close(self) -> None:
        """Make everything durable.

        Raises:
            HedgeError: as `append`.
        """
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            with file:
                self._sync(file)
        except OSError as error:
            raise self._failure(error) from error

    def _sync(self, file: IO[bytes]) -> None:
        os.fsync(file.fileno())
        self._synced = time.monotonic()

    def _failure(self, error: OSError) -> HedgeError:
        return HedgeError(f"cannot write {self._contents} to {self.folder}: {error}. Stored {self._contents} are kept.")

    def _create(self) -> IO[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        created = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S%f")
        writer = f"{created}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        file = (self.folder / f"{self._kind}-{writer}.jsonl").open("xb", buffering=0)
        _sync_folder(self.folder)
        return file


def read_lines(file: Path) -> Iterator[Line]:
    """The lines of one file.

    Raises:
        DataError: the file cannot be read.
    """
    for number, line in read_raw_lines(file):
        yield _line(file, number, line)


def _line(file: Path, number: int, line: bytes) -> Line:
    try:
        return Line(file, number, unseal(line))
    except DataError as error:
        torn = "" if line.endswith(b"\n") else " (the end of an interrupted write, or of one under way)"
        return Line(file, number, None, f"{error}{torn}")


def _encode(record: Mapping[str, Any]) -> bytes:
    return seal(record, ensure_ascii=True)


def _sync_folder(folder: Path) -> None:
    """Make the folder's new entry durable, which syncing the file alone does not."""
    if os.name == "nt":
        return  # folders cannot be opened there
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
