"""What models have said in the making of a data set: append-only, found again by what was asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from loguru import logger

from hedge_tasks.errors import DataError
from hedge_tasks.io.record_log import RecordLog

KIND = "replies"
"""First part of the file names."""


@dataclass(frozen=True)
class Reply:
    """What a model said to one question.

    Attributes:
        text: Its words, without surrounding blanks; empty where it said nothing.
        finish: Why it stopped, as `Completion.finish`; None where nobody told.
        model: The model that answered, as its server names it; None where it does not.
        prompt_tokens, completion_tokens: What it cost; None where nobody told.
        score: A number in place of words, of questions that are answered by one (P(yes)); else None.
    """

    text: str
    finish: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    score: float | None = None

    @classmethod
    def of(cls, fields: object) -> Reply:
        """Check and build.

        Raises:
            DataError: These are no fields of a reply.
        """
        if not isinstance(fields, Mapping) or not isinstance(fields.get("text"), str):
            raise DataError("no reply")
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        kinds = {
            "finish": str, "model": str, "prompt_tokens": int, "completion_tokens": int, "score": (int, float)
        }  # fmt: skip
        for name, kind in kinds.items():
            value = known.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):  # type: ignore[arg-type]
                raise DataError(f"{name} of a reply is {value!r}")
        return cls(**known)


def digest(parts: Mapping[str, Any]) -> str:
    """The key of a question: a digest of all that shapes its reply, the same on any machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class Ledger:
    """The replies in a folder, by key. Threads may share it; other processes may write to the same folder.

    A line is a sealed JSON object: `key`, `reply`, and for people what it was about (stage, record, model, prompt,
    decoding, attempt, seed). Damaged lines are left out with one warning: what they held is asked again. Where two
    workers asked the same, the reply in the older file stands.

    Args:
        folder: Where the files are; made when the first reply is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._log = RecordLog(folder, KIND, "replies")
        self._lock = threading.Lock()
        self._replies: dict[str, Reply] = {}
        damaged = 0
        for line in self._log.read():
            try:
                record = line.record
                if record is None or not isinstance(record.get("key"), str):
                    raise DataError("no reply")
                self._replies.setdefault(record["key"], Reply.of(record.get("reply")))
            except DataError:
                damaged += 1
        if damaged:
            logger.warning("{}: {} damaged replies are left out and asked again", folder, damaged)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: str) -> Reply | None:
        return self._replies.get(key)

    def add(self, key: str, reply: Reply, about: Mapping[str, Any]) -> Reply:
        """Keep a reply; when this returns, the death of the process does not lose it.

        Args:
            about: Further fields of the line, for people.

        Returns:
            The reply that stands: the first one under this key.

        Raises:
            HedgeError: The folder cannot be written.
        """
        fields = {name: value for name, value in asdict(reply).items() if value is not None}
        with self._lock:
            if key not in self._replies:
                self._log.append([{"key": key, "reply": fields, **about}])
                self._replies[key] = reply
            return self._replies[key]

    def close(self) -> None:
        """Make everything durable.

        Raises:
            HedgeError: As `add`.
        """
        with self._lock:
            self._log.close()
