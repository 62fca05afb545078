"""The one printer of commands' results: text, JSON, CSV and LaTeX of the same tables and facts."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
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
    """Yield what text shows of a value: its tables, short facts as one, and its notes.

    A mapping of numbers or of flat mappings, and a list of the latter, are tables. What is neither, only JSON has.
    """
    if isinstance(value, Table | str):
        yield value
    elif name and (rows := _rows(value, name)):
        yield _table_of(rows, "" if isinstance(value, Mapping) else _words(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _blocks(item)
    elif isinstance(value, Mapping):
        items = {key: item for key, item in value.items() if key != NOTES}
        short = {key: text for key, item in items.items() if (text := _short(item)) is not None}
        if short:
            yield Table.of((_words(name), ""), [[_words(key), text] for key, text in short.items()])
        for key, item in items.items():
            if key not in short:
                yield from _blocks(item, str(key))
        if value.get(NOTES):
            yield "\n".join(value[NOTES])


def _rows(value: Any, name: str) -> list[dict[str, Any]] | None:
    """Return what is a table as its rows, the keys of a mapping under `name`; None for what is more than that."""
    keyed = isinstance(value, Mapping)
    rows: list[dict[str, Any]] = []
    for key, item in value.items() if keyed else enumerate(value) if isinstance(value, list | tuple) else ():
        if isinstance(item, Number):
            item = {"value": item, "stderr": item.stderr, "rarer class": item.n_rarer, "n": item.n}
        if not isinstance(item, Mapping) or not all(map(_is_cell, item.values())):
            return None
        rows.append({name: key, **item} if keyed else dict(item))
    return rows


def _is_cell(value: Any) -> bool:
    return not isinstance(value, Table) and (not isinstance(value, Mapping) or _short(value) is not None)


def _table_of(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Return the short cells and numbers of mappings as a table, at most so many rows."""
    cells = [
        {key: item if isinstance(item, Number) else _short(item, _LONGEST) for key, item in row.items()}
        for row in rows[:_MOST_ROWS]
    ]
    keys = [key for key in dict.fromkeys(k for row in cells for k in row) if any(row.get(key) for row in cells)]
    notes = [f"and {len(rows) - len(cells)} more: --json"] if len(rows) > len(cells) else []
    return Table([Column(key, _words(key), interval=True) for key in keys], cells, title, notes)


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _short(value: Any, longest: int | None = None) -> str | None:
    """Return a fact on a line, cut where it is longer; None for what is no short fact."""
    text = None
    if isinstance(value, Number):
        text = format_number(value, interval=True)
    elif isinstance(value, float):
        text = format_value(value)
    elif isinstance(value, str | int | Path | Remote):
        text = " ".join(str(value).split())
    elif isinstance(value, Mapping):
        text = _short_facts({key: item for key, item in value.items() if item is not None})
    elif isinstance(value, list | tuple) and value and all(isinstance(item, str | int | Path) for item in value):
        more = f" and {len(value) - _MOST_NAMES} more" if len(value) > _MOST_NAMES else ""
        text = ", ".join(map(str, value[:_MOST_NAMES])) + more
    return f"{text[:longest]}..." if text is not None and longest is not None and len(text) > longest else text


def _short_facts(value: Mapping[str, Any]) -> str | None:
    if not 0 < len(value) <= _MOST_NAMES or any(isinstance(item, Number | Mapping) for item in value.values()):
        return None
    parts = {key: _short(item) for key, item in value.items()}
    return None if None in parts.values() else ", ".join(f"{_words(key)} {text}" for key, text in parts.items())
