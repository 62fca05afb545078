"""Files of labels that people gave, or an earlier judge: JSON lines or CSV, read with the outcomes they may hold."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.prompt import load_judge_prompt, normalise
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.json_lines import read_objects

_NONE = ("", "none", "null", "nan", "n a", "na")
_LABELS: dict[str, int | None] = {
    **dict.fromkeys(("1", "hallucinated", "hallucination", "not supported", "unsupported"), 1),
    **dict.fromkeys(("0", "supported", "not hallucinated", "no hallucination"), 0),
    **dict.fromkeys(_NONE, None),
}

_LISTED = 10
"""As many ids as an error names."""


@dataclass(frozen=True)
class HumanLabel:
    """One label of a file: its line, what it says, and the row it stands in."""

    where: str
    label: int | None
    category: str | None
    row: Mapping[str, Any]


def read_rows(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The rows of a JSONL or CSV file (by its ending), each with its place.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    rows = _csv_rows(path) if path.suffix.lower() == ".csv" else read_objects(path)
    if not rows:
        raise DataError(f"{path}: no labels in it")
    return rows


def read_label(where: str, row: Mapping[str, Any], field: str, scheme: str | None) -> HumanLabel:
    """The label of a row.

    Args:
        field: its column. 1, "hallucinated" and their like; 0, "supported", ...; null or empty for none.
        scheme: name of a judge prompt whose outcomes the column holds instead, such as medhallmark.

    Raises:
        DataError: the column is missing, or holds something else.
    """
    if field not in row:
        raise DataError(f"{where}: no {field!r}; there are {', '.join(map(str, row))}")
    value = row[field]
    if scheme is not None:
        prompt = load_judge_prompt(scheme)
        outcome = prompt.outcome(value)
        if outcome is None and not _is_none(value):
            keys = ", ".join(o.key for o in prompt.outcomes)
            raise DataError(f"{where}: {field} is {value!r}, which is none of {keys}")
        return HumanLabel(where, outcome.label if outcome else None, outcome.key if outcome else None, row)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    known = normalise(str(value)) if value is None or isinstance(value, (str, int)) else None
    if isinstance(value, bool) or known is None or known not in _LABELS:
        raise DataError(f"{where}: {field} is {value!r}; expected 1 (hallucinated), 0 (supported) or null")
    return HumanLabel(where, _LABELS[known], None, row)


def by_id(
    rows: Sequence[tuple[str, Mapping[str, Any]]], id_field: str, field: str, scheme: str | None
) -> dict[str, HumanLabel]:
    """Labels by the document's id.

    Raises:
        DataError: a row has no id, or ids are there twice: names them.
    """
    labels: dict[str, HumanLabel] = {}
    twice: list[str] = []
    for where, row in rows:
        value = row.get(id_field)
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise DataError(f"{where}: {id_field!r} is {value!r}; expected the id of a document")
        if str(value) in labels:
            twice.append(str(value))
        labels[str(value)] = read_label(where, row, field, scheme)
    if twice:
        raise DataError(f"{rows[0][0].rpartition(':')[0]}: labelled more than once: {listing(twice)}")
    return labels


def listing(ids: Sequence[str]) -> str:
    """Ids for an error, not all of them where there are many."""
    shown = ", ".join(repr(i) for i in list(dict.fromkeys(ids))[:_LISTED])
    more = len(dict.fromkeys(ids)) - _LISTED
    return shown + (f" and {more} more" if more > 0 else "")


def first_of(row: Mapping[str, Any], names: Sequence[str], where: str, what: str) -> str:
    """The text of the first of some columns that a row has; empty where it is null.

    Raises:
        DataError: it has none of them, or no text in it.
    """
    for name in names:
        if name in row:
            value = row[name]
            if value is None or (isinstance(value, float) and math.isnan(value)):
                return ""
            if isinstance(value, Mapping):  # an answer set's baseline answer
                value = value.get("text")
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                return str(value)
            raise DataError(f"{where}: {name} is no text")
    error = unknown(f"{what} column", names[0], map(str, row))
    raise DataError(f"{where}: {error}")


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and normalise(value) in _NONE)


def _csv_rows(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey=None, strict=True)
    return list(_checked_rows(reader, path))


def _checked_rows(reader: csv.DictReader[str], path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        names = list(reader.fieldnames or ())
        if len(set(names)) < len(names):
            raise DataError(f"{path}: the header names a column twice")
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                raise DataError(f"{where}: expected {len(names)} columns, as in the header")
            yield where, row
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: not valid CSV ({error})") from None
