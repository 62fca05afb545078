"""The answer store: every finished draw on disk at once, found again by what defines it.

One append-only file a writer, so that several processes and hosts can write to one folder without a lock. A line is a
CRC-32 of the rest, a space, and a JSON object `{"key", "answer", "id", "condition", "index"}`; only `key` (a hash of
everything that shapes the answer) and `answer` matter to the reader, the rest is for people with `grep`.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from loguru import logger

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.sampling.answers import Answer

FORMAT = 1
"""Part of every key: raise it when the same definition would no longer give the same answer."""


@dataclass(frozen=True)
class Record:
    """A finished draw on its way into the store."""

    key: str
    answer: Answer
    document: str
    condition: str
    index: int


def draw_key(definition: Mapping[str, Any]) -> str:
    """Hash of a draw's definition (anything JSON can hold), independent of the order of its fields."""
    canonical = json.dumps({"format": FORMAT, **definition}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:40]


class AnswerStore:
    """Finished draws by key.

    Args:
        folder: where the files are; made if missing. None keeps the answers in memory only.

    Example:
        >>> store = AnswerStore(None)
        >>> key = draw_key({"model": "m", "seed": 1})
        >>> store.put([Record(key, Answer("yes"), "q1", "clean", 0)])
        >>> store.get(key)
        Answer(text='yes', mean_logprob=None, n_tokens=None)
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.n_dropped = 0
        self._answers: dict[str, Answer] = {}
        self._file: IO[bytes] | None = None
        if folder is not None:
            for path in sorted(folder.glob("answers-*.jsonl")):
                self._read(path)

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, key: str) -> Answer:
        return self._answers[key]

    def get(self, key: str) -> Answer | None:
        return self._answers.get(key)

    def put(self, records: Iterable[Record]) -> None:
        """Keep finished draws. When this returns they are on disk.

        Raises:
            HedgeError: the disk is full or the folder cannot be written; what was stored before stays valid.
        """
        records = list(records)
        if self.folder is not None and records:
            self._append(b"".join(_encode(record) for record in records))
        self._answers.update((record.key, record.answer) for record in records)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, lines: bytes) -> None:
        try:
            if self._file is None:
                self._file = self._create()
            self._file.write(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise HedgeError(f"cannot write answers to {self.folder}: {error}. Stored answers are kept.") from error

    def _create(self) -> IO[bytes]:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        writer = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        return (self.folder / f"answers-{writer}.jsonl").open("xb", buffering=0)

    def _read(self, path: Path) -> None:
        lines = path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                key, answer = _decode(line)
            except DataError as error:
                self.n_dropped += 1
                torn = " (the end of an interrupted write)" if number == len(lines) else ""
                logger.warning("Answer store {}:{}: record dropped, {}{}", path.name, number, error, torn)
                continue
            # The first record of a key wins, so that what a finished run was scored on never changes.
            self._answers.setdefault(key, answer)


def _encode(record: Record) -> bytes:
    fields = {
        "key": record.key,
        "answer": record.answer.to_dict(),
        "id": record.document,
        "condition": record.condition,
        "index": record.index,
    }
    body = json.dumps(fields, ensure_ascii=True).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _decode(line: bytes) -> tuple[str, Answer]:
    checksum, _, body = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        raise DataError("checksum does not match")
    fields = json.loads(body)
    return fields["key"], Answer.from_dict(fields["answer"])
