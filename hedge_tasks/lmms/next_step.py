"""Advice on a run that has just ended: said under lmms-eval's table, where users look then."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_kept: dict[Path, bool] = {}
"""lmms-eval's output folders with runs of this process; whether the data is the user's own."""


def note_kept(folder: Path, *, own_data: bool) -> None:
    """A run was kept.

    Args:
        folder: what `hedge` is given, such as lmms-eval's output folder.
        own_data: whether its data set is in files of the user's own, which are only read where that is asked for.
    """
    _kept[folder] = _kept.get(folder, False) or own_data


def under_table(table: str, results: Mapping[str, Any], column: str) -> str:
    """lmms-eval's table with the next command under it, once for all runs since the last one."""
    # Where there are groups their table comes last.
    if not _kept or (column == "results" and "groups" in results):
        return table
    folders = " ".join(shlex.quote(str(folder)) for folder in _kept)
    trust = " --trust-run" if any(_kept.values()) else ""
    _kept.clear()
    return f"{table}\nNext: hedge report {folders}{trust} --out report.html  (or hedge health, compare, sweep, ...)\n"
