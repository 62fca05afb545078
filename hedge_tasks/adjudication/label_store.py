"""Labels on disk, so that no judge is asked the same thing twice, by whichever run.

A label is found by what it depends on: the judge with its model, the prompt file, and the texts (and images) of the
case. The document's id is not part of it. Keys of accounts never come near these files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.base import Verdict
from hedge_tasks.io.keyed_log import KeyedLog

KIND = "labels"


class LabelStore(KeyedLog[Verdict]):
    """The verdicts in a folder, by key; the folder is made when the first one is written.

    Where two processes asked the same at the same time, the first verdict that says something stands.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, KIND, "labels", _read, lambda verdict: verdict.undecided)

    def add(self, verdicts: Iterable[tuple[str, Verdict]]) -> None:
        """Keep verdicts; when this returns, the death of the process loses none of them.

        Raises:
            HedgeError: the folder cannot be written.
        """
        self.keep((key, verdict, {"verdict": verdict.to_dict()}) for key, verdict in verdicts)


def label_key(parts: Mapping[str, Any]) -> str:
    """The key of a label: a digest of all that it depends on, the same on any machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _read(record: Mapping[str, Any]) -> Verdict:
    return Verdict.from_dict(record.get("verdict"))
