"""Labels on disk, so that no judge is asked the same thing twice, by whichever run.

A label is found by what it depends on: the judge with its model, the prompt file, and the texts (and images) of the
case. The document's id is not part of it. Keys of accounts never come near these files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from loguru import logger

from hedge_tasks.adjudication.base import Verdict
from hedge_tasks.errors import DataError
from hedge_tasks.io.record_log import RecordLog

KIND = "labels"


class LabelStore:
    """The verdicts in a folder, by key; the folder is made when the first one is written.

    Damaged lines and lines that are no labels are left out, with one warning: what they held is asked again. Where two
    processes asked the same at the same time, the first verdict that says something stands.
    """

    def __init__(self, folder: Path) -> None:
        self._log = RecordLog(folder, KIND, "labels")
        self._verdicts: dict[str, Verdict] = {}
        dropped = 0
        for line in self._log.read():
            try:
                self._take(*_read(line.record))
            except DataError:
                dropped += 1
        if dropped:
            logger.warning("{}: {} damaged labels are left out and asked again", folder, dropped)

    def __enter__(self) -> LabelStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._verdicts)

    def get(self, key: str) -> Verdict | None:
        return self._verdicts.get(key)

    def add(self, verdicts: Iterable[tuple[str, Verdict]]) -> None:
        """Keep verdicts; when this returns, the death of the process loses none of them.

        Raises:
            HedgeError: the folder cannot be written.
        """
        pairs = list(verdicts)
        self._log.append({"key": key, "verdict": verdict.to_dict()} for key, verdict in pairs)
        for key, verdict in pairs:
            self._take(key, verdict)

    def close(self) -> None:
        self._log.close()

    def _take(self, key: str, verdict: Verdict) -> None:
        known = self._verdicts.get(key)
        if known is None or known.undecided:
            self._verdicts[key] = verdict


def label_key(parts: Mapping[str, Any]) -> str:
    """The key of a label: a digest of all that it depends on, the same on any machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _read(record: Mapping[str, Any] | None) -> tuple[str, Verdict]:
    if record is None or not isinstance(record.get("key"), str):
        raise DataError("no label")
    return record["key"], Verdict.from_dict(record.get("verdict"))
