"""Conversations in the cells of a table, as columns: what each speaker says, and what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

Read = Callable[[Sequence[str] | None], Iterator[Mapping[str, Any]]]

_SPEAKERS, _WORDS = ("role", "from"), ("content", "value")
_SAMPLE = 50


def with_turns(columns: Sequence[str], rows: Read) -> tuple[tuple[str, ...], Read, list[str]]:
    """Return a table with conversations opened: `messages` becomes `messages.system`, `messages.user`, ...

    What else a turn holds, such as a rating, becomes `messages.assistant.rating`. A conversation in which somebody
    speaks twice is left as it is: which turn is meant, its table does not say.

    Returns:
        Columns, rows, and notes on what was done.
    """
    sample = list(islice(rows(None), _SAMPLE))
    talks = [column for column in columns if sample and all(_is_talk(row[column]) for row in sample)]
    inner: dict[str, list[str]] = {}
    notes = []
    for column in talks:
        cells = [row[column] for row in rows([column])]
        if all(_is_talk(cell) and len({_who(turn) for turn in cell}) == len(cell) for cell in cells):
            inner[column] = list(dict.fromkeys(name for cell in cells for name in _opened(column, cell)))
            notes.append(f"conversations: column {column!r} became {', '.join(inner[column])}")
        else:
            notes.append(f"conversations: column {column!r} has several turns of one speaker, and is left as it is")
    if not inner:
        return tuple(columns), rows, notes
    names = [name for column in columns for name in inner.get(column, [column])]
    return tuple(names), partial(_opened_rows, rows, columns, inner, names), notes


def _opened_rows(
    rows: Read, columns: Sequence[str], inner: Mapping[str, Sequence[str]], names: Sequence[str], selected: Any = None
) -> Iterator[Mapping[str, Any]]:
    chosen = list(selected or names)
    needed = [column for column in columns if column in chosen or set(inner.get(column, ())) & {*chosen}]
    for row in rows(needed):
        opened = dict(row)
        for column in inner.keys() & row.keys():
            opened |= _opened(column, row[column])
        yield {name: opened.get(name) for name in chosen}


def _is_talk(cell: object) -> bool:
    return isinstance(cell, list) and bool(cell) and all(isinstance(turn, Mapping) and _who(turn) for turn in cell)


def _who(turn: Mapping[str, Any]) -> str:
    return next((str(turn[key]) for key in _SPEAKERS if turn.get(key)), "")


def _opened(column: str, turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for turn in turns:
        name = f"{column}.{_who(turn)}"
        for key, value in turn.items():
            if key in _WORDS:
                cells[name] = value
            elif key not in _SPEAKERS and value is not None:
                cells[f"{name}.{key}"] = value
    return cells
