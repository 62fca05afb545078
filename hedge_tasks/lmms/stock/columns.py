"""Facts from the columns of a stock data set: ids, and kinds of questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedge_tasks.data.roles import IDS, MOST_TYPES, QUESTION_TYPES
from hedge_tasks.errors import unknown
from hedge_tasks.lmms.stock.options import NONE


def id_column(docs: Any, named: str | None, task: str) -> str | None:
    """Return the column with ids, None where the row is the id.

    Args:
        docs: the split (`datasets.Dataset`).
        named: a column, "none", or None to look for one.
        task: for the error.

    Raises:
        ConfigError: there is no such column, or documents share a value of it.
    """
    if named == NONE:
        return None
    if named is not None:
        column = _existing(docs, named, task)
        if not _unique(docs, column):
            raise unknown(f"{task}: column of ids (documents share values of {named!r})", named, [NONE])
        return column
    return next((name for name in IDS if _plain(docs, name) and _unique(docs, name)), None)


def type_column(docs: Any, named: str | None, task: str) -> str | None:
    """Return the column with the kind of question, None for none.

    Raises:
        ConfigError: there is no such column.
    """
    if named == NONE:
        return None
    if named is not None:
        return _existing(docs, named, task)
    return next((name for name in QUESTION_TYPES if _plain(docs, name) and _few(docs[name][:])), None)


def group_column(docs: Any, named: str | None, task: str) -> str | None:
    """Return the column that says which documents belong together, None for their pictures.

    Raises:
        ConfigError: there is no such column.
    """
    return None if named in (None, NONE) else _existing(docs, str(named), task)


def _existing(docs: Any, name: str, task: str) -> str:
    if name not in docs.column_names:
        raise unknown(f"column of {task}", name, docs.column_names)
    return name


def _plain(docs: Any, name: str) -> bool:
    dtype = getattr(docs.features.get(name), "dtype", None)
    return dtype in ("string", "large_string") or str(dtype).startswith(("int", "uint"))


def _unique(docs: Any, name: str) -> bool:
    values = docs[name][:]
    return None not in values and len(set(map(str, values))) == len(values)


def _few(values: Sequence[Any]) -> bool:
    return None not in values and 2 <= len(set(values)) <= min(MOST_TYPES, max(2, len(values) // 2))
