"""Files of labels that people gave, or an earlier judge: JSON lines or CSV, read with the outcomes they may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.prompt import load_judge_prompt, normalise
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.outside import read_text
from hedge_tasks.io.tables import parse_csv

_NONE = ("", "none", "null", "nan", "n a", "na")
_LABELS: dict[str, int | None] = {
    **dict.fromkeys(("1", "hallucinated", "hallucination", "not supported", "unsupported"), 1),
    **dict.fromkeys(("0", "supported", "not hallucinated", "no hallucination"), 0),
    **dict.fromkeys(_NONE, None),
}

_WHOLE = re.compile(r"([0-9]{1,3})\.0+")

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
    rows: list[tuple[str, Mapping[str, Any]]]
    rows = parse_csv(read_text(path), str(path)) if path.suffix.lower() == ".csv" else read_objects(path)
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
    value = _without_decimals(row[field])
    if scheme is not None:
        prompt = load_judge_prompt(scheme)
        outcome = prompt.outcome(value)
        if outcome is None and not _is_none(value):
            keys = ", ".join(o.key for o in prompt.outcomes)
            raise DataError(f"{where}: {field} is {value!r}, which is none of {keys}")
        return HumanLabel(where, outcome.label if outcome else None, outcome.key if outcome else None, row)
    if isinstance(value, float) and math.isnan(value):
        value = None
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
        value = value.strip() if isinstance(value, str) else value
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


def _without_decimals(value: object) -> object:
    """1 for 1.0 and "1.0": pandas makes floats of a column of labels where one is missing."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (found := _WHOLE.fullmatch(value.strip())):
        return found[1]
    return value


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and normalise(value) in _NONE)
