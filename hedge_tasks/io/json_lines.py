"""JSON lines from outside, each with its place; and lines of our own with a checksum.

A *sealed* line is an ordinary JSON object whose last field is the CRC-32 of the bytes before it, so that every reader
of JSON lines can read it, and ours notices a single changed bit.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import parse_json, read_raw_lines

Row = tuple[str, Mapping[str, Any]]
"""Place (`file:line`) and fields."""

_SEAL = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\n?\Z')


def read_objects(path: Path) -> Iterator[Row]:
    """The JSON objects of a JSONL file, each with its place (`file:line`); blank lines are skipped.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    return parse_objects(read_raw_lines(path), str(path))


def parse_objects(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[Row]:
    """As `read_objects`, from lines with their numbers."""
    return ((where := f"{name}:{number}", parse_object(line, where)) for number, line in lines if line.strip())


def parse_object(line: bytes, where: str) -> Mapping[str, Any]:
    """The JSON object of a line.

    Raises:
        DataError: it is no JSON object.
    """
    fields = parse_json(line, where)
    if not isinstance(fields, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(fields).__name__}")
    return fields


def canonical(value: Any) -> bytes:
    """A JSON value in one form, for digests and signatures: sorted keys, no blanks, non-ASCII characters escaped."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def seal(record: Mapping[str, Any]) -> bytes:
    """A record as a line with its checksum, line end included. The record has at least one field."""
    body = json.dumps(record).encode()[:-1]
    return b'%s, "crc32": "%08x"}\n' % (body, zlib.crc32(body))


def unseal(line: bytes) -> Mapping[str, Any]:
    """Return the record of a sealed line, without its checksum.

    Raises:
        DataError: the checksum is wrong or missing, or there is no sound JSON object. Names no place.
    """
    match = _SEAL.search(line)
    if match is None:
        raise DataError("there is no checksum at its end")
    body = line[: match.start()]
    if match[1] != b"%08x" % zlib.crc32(body):
        raise DataError("checksum does not match")
    return parse_object(body + b"}", "record")
