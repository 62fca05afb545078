"""Shared by the evaluations: released files, and checks of what a task's YAML and data set give to `process_docs`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.outside import read_json

if TYPE_CHECKING:
    from datasets import Dataset


def check_options(title: str, options: Iterable[str], known: Collection[str]) -> None:
    """Refuse options of `process_docs` that an evaluation does not have.

    Raises:
        ConfigError: names the first one, and the nearest that there is.
    """
    for name in options:
        if name not in known:
            raise unknown(f"option of {title}", name, known)


def read_items(path: Path) -> list[Any]:
    """Return the items of a released JSON file.

    Raises:
        DataError: the file cannot be read, or holds no list of items.
    """
    items = read_json(path)
    if not isinstance(items, list) or not items:
        raise DataError(f"{path}: expected a list of items")
    return items


def check_columns(title: str, dataset: Dataset, needed: Iterable[str]) -> None:
    """Refuse a data set that lacks columns.

    Raises:
        DataError: names them, and those that there are.
    """
    if missing := [column for column in needed if column not in dataset.column_names]:
        raise DataError(f"{title}: no column {', '.join(missing)}; there are {', '.join(dataset.column_names)}")
