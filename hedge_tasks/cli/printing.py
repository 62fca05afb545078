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
    blocks = list(_blocks(value, ""))
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


def _blocks(value: Any, name: str) -> Iterator[Table | str]:
    """Yield what text shows of a value: its tables, short facts as one, and its notes.

    A mapping of numbers, one of mappings, and a list of mappings are tables. What is neither, only JSON has.
    """
    if isinstance(value, Table | str):
        yield value
    elif isinstance(value, Mapping):
        yield from _facts(value, name)
    elif isinstance(value, list | tuple):
        rows = {str(i): item for i, item in enumerate(value) if isinstance(item, Mapping)}
        if name and rows and not any(map(_is_deep, rows.values())):
            yield _table_of(rows, name, labelled=False)
        else:
            for item in value:
                yield from _blocks(item, "") if isinstance(item, Mapping | Table) else ()


def _facts(value: Mapping[str, Any], name: str) -> Iterator[Table | str]:
    items = {key: item for key, item in value.items() if key != NOTES}
    if name and items and all(isinstance(item, Number) for item in items.values()):
        yield _table_of_numbers(items, name)
        return
    if name and items and all(isinstance(item, Mapping) and not _is_deep(item) for item in items.values()):
        yield _table_of(items, name)
        return
    short = {key: text for key, item in items.items() if (text := _short(item)) is not None}
    if short:
        columns = [Column("fact", _words(name) or " "), Column("value", " ")]
        yield Table(columns, [{"fact": _words(key), "value": text} for key, text in short.items()])
    for key in [key for key in items if key not in short]:
        yield from _blocks(items[key], str(key))
    if value.get(NOTES):
        yield "\n".join(value[NOTES])


def _table_of_numbers(numbers: Mapping[str, Number], name: str) -> Table:
    columns = [
        *(Column("name", _words(name)), Column("value", interval=True), Column("stderr", show="stderr", of="value")),
        *(Column("rarer", "rarer class", show="n_rarer", of="value"), Column("n", show="n", of="value")),
    ]
    return Table(columns, [{"name": key, "value": number} for key, number in numbers.items()])


def _table_of(rows: Mapping[str, Mapping[str, Any]], name: str, *, labelled: bool = True) -> Table:
    """Return the short cells and numbers of mappings as a table, at most so many rows."""
    cells: list[dict[str, Any]] = [
        {"": key} | {k: v if isinstance(v, Number) else _cell(v) for k, v in row.items()}
        for key, row in list(rows.items())[:_MOST_ROWS]
    ]
    keys = [key for key in dict.fromkeys(k for row in cells for k in row) if any(row.get(key) for row in cells)]
    columns = [Column(key, _words(key or name), interval=True) for key in keys if key != "" or labelled]
    notes = [f"and {len(rows) - len(cells)} more: --json"] if len(rows) > len(cells) else []
    return Table(columns, cells, "" if labelled else _words(name), notes)


def _is_deep(value: Mapping[str, Any]) -> bool:
    """Whether there is more in a mapping than a row of a table can hold."""
    return any(isinstance(item, Table) or (isinstance(item, Mapping) and not _short(item)) for item in value.values())


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
