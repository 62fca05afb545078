"""Shared by the evaluations: checks of what a task's YAML and data set give to `process_docs`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from hedge_tasks.errors import DataError, unknown

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


def check_columns(title: str, dataset: Dataset, needed: Iterable[str]) -> None:
    """Refuse a data set that lacks columns.

    Raises:
        DataError: names them, and those that there are.
    """
    if missing := [column for column in needed if column not in dataset.column_names]:
        raise DataError(f"{title}: no column {', '.join(missing)}; there are {', '.join(dataset.column_names)}")
