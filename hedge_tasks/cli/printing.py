"""The one printer of commands' results: text, JSON, CSV and LaTeX of the same tables and facts."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import as_json, say
from hedge_tasks.io.places import Remote
from hedge_tasks.numbers import Column, Number, Table

NOTES = "notes"
"""Key of the facts under which sentences for people stand, which text has last."""

_FACT = Column("value", " ", interval=True)


def print_as(value: Any, form: str) -> None:
    """Print a command's result.

    Args:
        value: A text, a table, facts by name, or a list of tables and facts.
        form: "text", "json", "csv" or "latex"; the last two have the tables alone, or the facts where there is none.
    """
    if form == "json":
        say(json.dumps(as_json(value), indent=2, ensure_ascii=False, allow_nan=False))
        return
    # Of a list of facts text has the beginning, and the other forms all.
    blocks = list((_Shown(20, 60, 8) if form == "text" else _Shown()).blocks(value))
    tables = [block for block in blocks if isinstance(block, Table)]
    tables = [table for table in tables if table.rows and _FACT not in table.columns] or tables
    texts = {"text": map(str, blocks), "csv": map(Table.to_csv, tables), "latex": map(as_latex, tables)}
    if text := ("\n\n" if form == "text" else "\n").join(texts[form]).strip("\n"):
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


@dataclass(frozen=True)
class _Shown:
    """How much of a value is shown: rows of a list, characters of a cell, names on a line."""

    rows: int = sys.maxsize
    characters: int = sys.maxsize
    names: int = sys.maxsize

    def blocks(self, value: Any, name: str = "") -> Iterator[Table | str]:
        """Yield the tables of a value, the facts of each mapping as one, and its notes."""
        if isinstance(value, Table | str):
            yield value
        elif name and (rows := _rows(value, name)):
            yield self._table(rows, "" if isinstance(value, Mapping) else _words(name))
        elif isinstance(value, list | tuple):
            for item in value:
                yield from self.blocks(item)
        elif isinstance(value, Mapping):
            yield from self._facts({key: item for key, item in value.items() if key != NOTES}, _words(name))
            if value.get(NOTES):
                yield "\n".join(value[NOTES])

    def _facts(self, items: Mapping[str, Any], name: str) -> Iterator[Table | str]:
        short = {key: text for key, item in items.items() if (text := self._short(item)) is not None}
        if short:
            columns = [Column(name or "fact", name or " "), _FACT]
            yield Table(columns, [{columns[0].key: _words(key), "value": text} for key, text in short.items()])
        for key in (key for key in items if key not in short):
            yield from self.blocks(items[key], f"{name.rpartition(' ')[2]} {key}".strip())

    def _table(self, rows: list[Mapping[str, Any]], title: str) -> Table:
        cells = [{key: cell for key, item in row.items() if (cell := self._cell(item))} for row in rows[: self.rows]]
        keys = [key for key in dict.fromkeys(chain(*rows)) if any(key in row for row in cells)]
        notes = [f"and {len(rows) - len(cells)} more: --json, --csv"] if len(rows) > len(cells) else []
        long = [key for key in keys[1:] if any(self._cut(cell := row.get(key)) != cell for row in cells)]
        keys.sort(key=lambda key: [key] == long)  # a single long text is whole, at the end of the line
        if len(long) > 1:
            cells = [{key: self._cut(cell) for key, cell in row.items()} for row in cells]
        return Table([Column(key, interval=True) for key in keys], cells, title, notes)

    def _cell(self, value: Any) -> Number | str | None:
        if isinstance(value, Number):
            return value
        if isinstance(value, Mapping):
            value = ", ".join(f"{_words(key)} {self._cell(item)}" for key, item in value.items())
        return self._short(value) or None

    def _cut(self, cell: Any) -> Any:
        is_long = isinstance(cell, str) and len(cell) > self.characters
        return f"{str(cell)[: self.characters]}..." if is_long else cell

    def _short(self, value: Any) -> str | None:
        """Return a fact on a line; None for what is no short fact."""
        if isinstance(value, Number | float):
            return _FACT.text(value)
        if isinstance(value, str | int | Path | Remote):
            return " ".join(str(value).split())
        if isinstance(value, list | tuple) and value and all(isinstance(item, str | int | Path) for item in value):
            shown = value[: self.names]
            more = f" and {len(value) - len(shown)} more" if len(value) > len(shown) else ""
            return ", ".join(map(str, shown)) + more
        return None


def _rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    """Return a list's mappings, or a row for each number or flat mapping of a mapping; none for what is more than that.

    Args:
        name: Of the value, and of the column of a mapping's keys.
    """
    rows: list[Mapping[str, Any]] = []
    if isinstance(value, Mapping) and all(isinstance(item, Number | Mapping) for item in value.values()):
        undefined_last = sorted(value.items(), key=lambda item: isinstance(item[1], Number) and not item[1].defined)
        rows = [{name: key, **(_parts(item) if isinstance(item, Number) else item)} for key, item in undefined_last]
    elif isinstance(value, list | tuple) and all(isinstance(row, Mapping) for row in value):
        rows = [*value]
    more = Table | Mapping if isinstance(value, Mapping) else Table
    return [] if any(isinstance(item, more) for row in rows for item in row.values()) else rows


def _parts(number: Number) -> dict[str, Any]:
    return {"value": number, "stderr": number.stderr, "rarer class": number.n_rarer, "n": number.n}


def _words(name: object) -> str:
    return str(name).replace("_", " ")
