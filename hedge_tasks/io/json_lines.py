"""JSON lines from outside, each with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError


def read_objects(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The JSON objects of a JSONL file, each with its place (`file:line`); blank lines are skipped.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    places = ((f"{path}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip())
    return [(where, _decode(line, where)) for where, line in places]


def _decode(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(fields, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(fields).__name__}")
    return fields
