"""The attempts that led to a policy. One of many attempts that happens to hold is worth less than its promise says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole

MOST = 1000
_LARGEST = 8 << 20


def ledger_of(out: Path) -> Path:
    """The file beside a policy in which every attempt to make it is noted, with or without a result."""
    return out.with_name(f"{out.name}.attempts.jsonl")


def read_attempts(out: Path) -> list[dict[str, Any]]:
    """The attempts so far, the first one first.

    Raises:
        DataError: the file is damaged.
    """
    path = ledger_of(out)
    if not path.exists():
        return []
    lines = outside.read_text(path, largest=_LARGEST).splitlines()
    return [outside.parse_json(line, f"{path}:{i}") for i, line in enumerate(lines, 1) if line.strip()]


def note_attempt(out: Path, attempt: dict[str, Any]) -> list[dict[str, Any]]:
    """Add an attempt, and return all of them, at most the last 1,000.

    Raises:
        DataError: the file is damaged, or cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    attempts = [*read_attempts(out), {"time": now, **attempt}][-MOST:]
    write_whole(ledger_of(out), "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in attempts))
    return attempts
