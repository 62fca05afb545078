"""Logs of inspect_ai (`.eval`, a ZIP archive, or `.json`) as tables: the epochs of a sample are its draws."""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.cells import SCORES, content_of
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

_RIGHT = {"C": 1, "I": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0, "True": 1, "False": 0}

Sample = Mapping[str, Any]


def archive_rows(file: Path) -> list[Row]:
    """The rows of an archive, as far as Python unpacks it; see `rows_of`."""
    outside.check_archive(file)
    with zipfile.ZipFile(file) as archive:
        samples = sorted(name for name in archive.namelist() if name.startswith("samples/"))
        log, *read = (outside.parse_json(archive.read(n), f"{file}: {n}") for n in ("header.json", *samples))
    return rows_of({**log, "samples": read}, file)


def rows_of(log: Mapping[str, Any], file: Path) -> list[Row]:
    """The samples of a log as rows, one an id. The score is that of its first epoch with an answer, the baseline.

    Raises:
        AttributeError, TypeError: it is not as inspect_ai writes it.
    """
    epochs: dict[str, list[Any]] = defaultdict(list)
    for sample in sorted(log["samples"], key=lambda sample: sample.get("epoch") or 0):
        epochs[str(sample.get("id"))].append(sample)
    model = (log.get("eval") or {}).get("model")
    if log.get("status", "success") != "success":
        logger.warning("{}: its status is {}, not success: samples may be missing", file, outside.shown(log["status"]))
    scorers = sorted({name for sample in log["samples"] for name in sample.get("scores") or {}})
    return [(f"{file}: {id}", {"id": id, "model": model, **_row(of_id, scorers)}) for id, of_id in epochs.items()]


def _row(epochs: Sequence[Sample], scorers: Sequence[str]) -> dict[str, Any]:
    replies = [(sample.get("output") or {}).get("choices") or [None] for sample in epochs]
    first = next((sample for sample, choices in zip(epochs, replies, strict=True) if any(choices)), epochs[0])
    scores = ((name, (first.get("scores") or {}).get(name) or {}) for name in scorers)
    return {
        "input": _question(first.get("input")),
        "target": first.get("target"),
        "output.choices": [choice for choices in replies for choice in choices],
        **{f"{SCORES}{name}": _RIGHT.get(str(score.get("value"))) for name, score in scores},
    }


def _question(messages: Any) -> str:
    """The text of the last turn of the user."""
    if isinstance(messages, str):
        return messages
    turns = [turn.get("content") for turn in messages or () if turn.get("role") == "user"]
    return content_of(turns[-1])[0] if turns else ""
