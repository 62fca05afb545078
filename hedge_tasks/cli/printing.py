"""The one printer of commands' results: text, JSON, CSV and LaTeX of the same tables and facts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import as_json, say
from hedge_tasks.io.places import Remote
from hedge_tasks.numbers import Column, Number, Table, format_number, format_value

NOTES = "notes"
"""Key of the facts under which sentences for people stand, which text has last."""

_MOST_ROWS = 20
_LONGEST = 60
_MOST_NAMES = 8
"""The most that text shows: rows of a list, characters of a cell, names on a line."""


def print_as(value: Any, form: str) -> None:
    """Print a command's result.

    Args:
        value: A text, a table, facts by name, or a list of tables and facts.
        form: "text", "json", "csv" or "latex"; the last two have the tables alone.
    """
    if form == "json":
        say(json.dumps(as_json(value), indent=2, ensure_ascii=False, allow_nan=False))
        return
    blocks = list(_blocks(value))
    tables = [block for block in blocks if isinstance(block, Table)]
    texts = {"text": map(str, blocks), "csv": (table.to_csv() for table in tables), "latex": map(as_latex, tables)}
    if text := ("\n\n" if form == "text" else "\n").join(texts[form]).rstrip("\n"):
        say(text)


def as_latex(table: Table) -> str:
    """Return a table for LaTeX with the package booktabs."""
    from pandas import DataFrame

    texts = [[column.text(row.get(column.source)) for column in table.columns] for row in table.rows]
    return str(DataFrame(texts, columns=[c.heading for c in table.columns]).to_latex(index=False, escape=True))


@dataclass(frozen=True)
class Details:
    """Facts that JSON alone shows."""

    facts: Any

    def to_dict(self) -> Any:
        return self.facts


def typed(*words: object) -> str:
    """Return a command of `hedge` as it can be typed."""
    return shlex.join(["hedge", *map(str, words)])


def _blocks(value: Any, name: str = "") -> Iterator[Table | str]:
    """Yield what text shows of a value: its tables, the facts of each mapping as one, and its notes."""
    if isinstance(value, Table | str):
        yield value
    elif name and (rows := _rows(value, name)):
        yield _table(rows, "" if isinstance(value, Mapping) else _words(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _blocks(item)
    elif isinstance(value, Mapping):
        items = {key: item for key, item in value.items() if key != NOTES}
        short = {key: text for key, item in items.items() if (text := _short(item)) is not None}
        if short:
            yield Table.of((_words(name), ""), [[_words(key), text] for key, text in short.items()])
        for key in (key for key in items if key not in short):
            yield from _blocks(items[key], str(key))
        if value.get(NOTES):
            yield "\n".join(value[NOTES])


def _rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """Return the rows of a list of flat mappings, or of a mapping of numbers or such; none for what is more than that.

    Args:
        name: Of the value, and of the column of a mapping's keys.
    """
    rows: list[Mapping[str, Any]] = []
    if isinstance(value, Mapping) and all(isinstance(item, Number | Mapping) for item in value.values()):
        rows = [{name: key, **(_parts(item) if isinstance(item, Number) else item)} for key, item in value.items()]
    elif isinstance(value, list | tuple) and all(isinstance(row, Mapping) for row in value):
        rows = [*value]
    return [] if any(isinstance(item, Table | Mapping) for row in rows for item in row.values()) else rows


def _table(rows: list[Mapping[str, Any]], title: str) -> Table:
    cells = [{key: _cell(item) for key, item in row.items()} for row in rows[:_MOST_ROWS]]
    keys = [key for key in dict.fromkeys(k for row in cells for k in row) if any(row.get(key) for row in cells)]
    notes = [f"and {len(rows) - len(cells)} more: --json"] if len(rows) > len(cells) else []
    return Table([Column(key, _words(key), interval=True) for key in keys], cells, title, notes)


def _parts(number: Number) -> dict[str, Any]:
    return {"value": number, "stderr": number.stderr, "rarer class": number.n_rarer, "n": number.n}


def _cell(value: Any) -> Number | str | None:
    if isinstance(value, Number):
        return value
    text = _short(value) or ""
    return f"{text[:_LONGEST]}..." if len(text) > _LONGEST else text or None


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _short(value: Any) -> str | None:
    """Return a fact on a line; None for what is no short fact."""
    if isinstance(value, Number):
        return format_number(value, interval=True)
    if isinstance(value, float):
        return format_value(value)
    if isinstance(value, str | int | Path | Remote):
        return " ".join(str(value).split())
    if isinstance(value, list | tuple) and value and all(isinstance(item, str | int | Path) for item in value):
        more = f" and {len(value) - _MOST_NAMES} more" if len(value) > _MOST_NAMES else ""
        return ", ".join(map(str, value[:_MOST_NAMES])) + more
    return None
