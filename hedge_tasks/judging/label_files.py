"""Files of labels that people gave, or an earlier judge, read with the outcomes they may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import Row
from hedge_tasks.judging.prompt import load_judge_prompt

_LISTED = 10
"""As many ids as an error names."""


@dataclass(frozen=True)
class HumanLabel:
    """One label of a file: its line, what it says, and the row it stands in."""

    where: str
    label: int | None
    category: str | None
    row: Mapping[str, Any]


def label_rows(path: Path) -> list[Row]:
    """The rows of a file of labels, each with its place; see `hedge_tasks.data.tables.read_rows`.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    rows = read_rows(path)
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
    if scheme is None:
        label = cells.label(row[field], f"{where}: {field}", right=cells.says_right(field) or None)
        return HumanLabel(where, label, None, row)
    value = cells.without_decimals(row[field])
    prompt = load_judge_prompt(scheme)
    outcome = prompt.outcome(value)
    if outcome is None and not cells.is_missing(value):
        keys = ", ".join(o.key for o in prompt.outcomes)
        raise DataError(f"{where}: {field} is {value!r}, which is none of {keys}")
    return HumanLabel(where, outcome.label if outcome else None, outcome.key if outcome else None, row)


def by_id(rows: Sequence[Row], id_field: str, field: str, scheme: str | None) -> dict[str, HumanLabel]:
    """Labels by the document's id.

    Raises:
        DataError: a row has no id, or ids are there twice: names them.
    """
    labels: dict[str, HumanLabel] = {}
    twice: list[str] = []
    for where, row in rows:
        id = cells.required(row.get(id_field), f"{where}: {id_field}")
        if id in labels:
            twice.append(id)
        labels[id] = read_label(where, row, field, scheme)
    if twice:
        raise DataError(f"{rows[0][0].rpartition(':')[0]}: labelled more than once: {listing(twice)}")
    return labels


def listing(ids: Sequence[str]) -> str:
    """Ids for an error, not all of them where there are many."""
    once = [*map(repr, dict.fromkeys(ids))]
    return ", ".join(once[:_LISTED]) + (f" and {len(once) - _LISTED} more" if once[_LISTED:] else "")
