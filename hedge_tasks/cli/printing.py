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
_SPECIAL = str.maketrans({c: f"\\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\~{}", "^": r"\^{}"})


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
    if form == "text":
        say("\n\n".join(map(str, blocks)))
    else:
        tables = [block for block in blocks if isinstance(block, Table)]
        say("\n".join(table.to_csv() if form == "csv" else as_latex(table) for table in tables).rstrip("\n"))


def as_latex(table: Table) -> str:
    """Return a table for LaTeX with the package booktabs."""
    rows = [[column.text(row.get(column.source)) for column in table.columns] for row in table.rows]
    header, *lines = (
        " & ".join(cell.translate(_SPECIAL) for cell in cells) + r" \\"
        for cells in ([column.heading for column in table.columns], *rows)
    )
    begin = rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}"
    return "\n".join([begin, r"\toprule", header, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}", ""])


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

    A mapping of numbers or of mappings, and a list of mappings, are tables. What is neither, only JSON has.
    """
    if isinstance(value, Table | str):
        yield value
    elif isinstance(value, Mapping):
        yield from _facts(value, name)
    elif isinstance(value, list | tuple):
        items = [item for item in value if isinstance(item, Mapping | Table)]
        rows = list(map(_row, items))
        if name and rows and None not in rows:
            yield _table_of(rows, _words(name))
        else:
            for item in items:
                yield from _blocks(item)


def _facts(value: Mapping[str, Any], name: str) -> Iterator[Table | str]:
    items = {key: item for key, item in value.items() if key != NOTES}
    rows = list(map(_row, items.values()))
    if name and rows and None not in rows:
        yield _table_of([{name: key, **(row or {})} for key, row in zip(items, rows, strict=True)])
        return
    short = {key: text for key, item in items.items() if (text := _short(item)) is not None}
    if short:
        yield Table.of((_words(name), ""), [[_words(key), text] for key, text in short.items()])
    for key, item in items.items():
        if key not in short:
            yield from _blocks(item, str(key))
    if value.get(NOTES):
        yield "\n".join(value[NOTES])


def _row(item: Any) -> Mapping[str, Any] | None:
    """Return a number or a flat mapping as a row of a table; None for what is more than that."""
    if isinstance(item, Number):
        return {"value": item, "stderr": item.stderr, "rarer class": item.n_rarer, "n": item.n}
    is_flat = isinstance(item, Mapping) and all(_is_cell(part) for part in item.values())
    return item if is_flat else None


def _is_cell(value: Any) -> bool:
    return not isinstance(value, Table) and (not isinstance(value, Mapping) or _short(value) is not None)


def _table_of(rows: Sequence[Mapping[str, Any] | None], title: str = "") -> Table:
    """Return the short cells and numbers of mappings as a table, at most so many rows."""
    cells = [
        {key: item if isinstance(item, Number) else _cell(item) for key, item in (row or {}).items()}
        for row in rows[:_MOST_ROWS]
    ]
    keys = [key for key in dict.fromkeys(k for row in cells for k in row) if any(row.get(key) for row in cells)]
    notes = [f"and {len(rows) - len(cells)} more: --json"] if len(rows) > len(cells) else []
    return Table([Column(key, _words(key), interval=True) for key in keys], cells, title, notes)


def _words(name: object) -> str:
    return str(name).replace("_", " ")


def _cell(value: Any) -> str | None:
    text = _short(value)
    return text if text is None or len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _short(value: Any) -> str | None:
    """Return a fact on a line; None for what is no short fact."""
    if isinstance(value, Number):
        return format_number(value, interval=True)
    if isinstance(value, float):
        return format_value(value)
    if isinstance(value, str | int | Path | Remote):
        return " ".join(str(value).split())
    if isinstance(value, Mapping):
        return _short_facts({key: item for key, item in value.items() if item is not None})
    if isinstance(value, list | tuple) and value and all(isinstance(item, str | int | Path) for item in value):
        names = ", ".join(map(str, value[:_MOST_NAMES]))
        return names if len(value) <= _MOST_NAMES else f"{names} and {len(value) - _MOST_NAMES} more"
    return None


def _short_facts(value: Mapping[str, Any]) -> str | None:
    if not 0 < len(value) <= _MOST_NAMES or any(isinstance(item, Number | Mapping) for item in value.values()):
        return None
    parts = {key: _short(item) for key, item in value.items()}
    return None if None in parts.values() else ", ".join(f"{_words(key)} {text}" for key, text in parts.items())
