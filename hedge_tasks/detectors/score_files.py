"""Scores as JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.io.files import write_whole


def write_scores(path: Path, scores: Sequence[Scores]) -> None:
    """Write one line a question: id, the number of every detector, cluster_ids.

    An infinite number is written as text, since JSON has none.

    The file appears as a whole or not at all.
    """
    write_whole(path, map(_line, scores))


def _line(s: Scores) -> bytes:
    row = {"id": s.id, **{name: _written(value) for name, value in s.items()}, "cluster_ids": list(s.cluster_ids)}
    return f"{json.dumps(row, ensure_ascii=False)}\n".encode()


def _written(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
