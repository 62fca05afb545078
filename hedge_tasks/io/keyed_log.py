"""Append-only records that are found again by a key: what the label store and the ledger of makings are made of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from loguru import logger

from hedge_tasks.errors import DataError
from hedge_tasks.io.record_log import RecordLog

T = TypeVar("T")


class KeyedLog(Generic[T]):
    """The values in a folder, by key. Threads may share it, and other processes may write to the same folder.

    Damaged lines, and lines that are no such values, are left out with one warning: what they held is asked again.

    Args:
        folder: Where the files are; made when the first value is kept.
        kind: First part of the file names.
        contents: What the values are, for messages.
        read: The value of a record. Raises DataError where it is none.
        gives_way: Whether a value that is known gives way to another one under its key; by default none does.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        contents: str,
        read: Callable[[Mapping[str, Any]], T],
        gives_way: Callable[[T], bool] = lambda value: False,
    ) -> None:
        self._log = RecordLog(folder, kind, contents)
        self._gives_way = gives_way
        self._lock = threading.Lock()
        self._values: dict[str, T] = {}
        damaged = 0
        for line in self._log.read():
            try:
                if line.record is None or not isinstance(line.record.get("key"), str):
                    raise DataError("no key")
                self._take(line.record["key"], read(line.record))
            except DataError:
                damaged += 1
        if damaged:
            logger.warning("{}: {} damaged {} are left out and asked again", folder, damaged, contents)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> T | None:
        return self._values.get(key)

    def keep(self, entries: Iterable[tuple[str, T, Mapping[str, Any]]]) -> None:
        """Keep values; when this returns, the death of the process loses none of them.

        Args:
            entries: key, value, and the other fields of its record.

        Raises:
            HedgeError: The folder cannot be written.
        """
        with self._lock:
            given = list(entries)
            self._log.append({"key": key, **fields} for key, _, fields in given)
            for key, value, _ in given:
                self._take(key, value)

    def close(self) -> None:
        """Make everything durable.

        Raises:
            HedgeError: As `keep`.
        """
        with self._lock:
            self._log.close()

    def _take(self, key: str, value: T) -> None:
        known = self._values.get(key)
        if known is None or self._gives_way(known):
            self._values[key] = value
