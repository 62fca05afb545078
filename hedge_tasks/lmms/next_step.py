"""Advice on a run that has just ended: said under lmms-eval's table, where users look then."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.errors import HedgeError
from hedge_tasks.lmms.carried import send_to_wandb

if TYPE_CHECKING:
    from hedge_tasks.measures.headline import Headline
    from hedge_tasks.runs.run_files import Run

_kept: dict[Path, bool] = {}
"""lmms-eval's output folders with runs of this process; whether the data is the user's own."""

_runs: list[Run] = []
"""The runs that were kept since the last table."""

_findings: dict[int, Headline | str] = {}
"""Of these runs, by the identity of each; why there is none."""


def note_kept(folder: Path, *, own_data: bool, run: Run | None = None) -> None:
    """Note that a run was kept.

    Args:
        folder: what `hedge` is given, such as lmms-eval's output folder.
        own_data: whether its data set is in files of the user's own, which are only read where that is asked for.
        run: what was kept, in the process that wrote it.
    """
    _kept[folder] = _kept.get(folder, False) or own_data
    if run is not None:
        _runs.append(run)


def under_table(table: str, results: Mapping[str, Any], column: str) -> str:
    """lmms-eval's table with the findings and the next command under it, once for all runs since the last one."""
    # Where there are groups their table comes last.
    if not _kept or (column == "results" and "groups" in results):
        return table
    folders = " ".join(shlex.quote(str(folder)) for folder in _kept)
    trust = " --trust-run" if any(_kept.values()) else ""
    lines = [line for run in _runs for line in _lines(run)]
    send_to_wandb(findings_since())
    _kept.clear()
    _findings.clear()
    _runs.clear()
    next_step = f"Next: hedge report {folders}{trust} --out report.html  (or hedge health, compare, detectors, ...)"
    return "\n".join([table, *lines, next_step, ""])


def findings_since() -> list[Headline]:
    """Return the findings of the runs since the last table, those that there are."""
    return [finding for run in _runs if not isinstance(finding := _finding(run), str)]


def _finding(run: Run) -> Headline | str:
    """Return the finding of a run, made once; or why there is none."""
    from hedge_tasks.measures.headline import headline  # the plug-in loads this module for every evaluation

    if id(run) not in _findings:
        try:
            _findings[id(run)] = headline(run)
        except Exception as error:  # the table and the run file are there without it
            _findings[id(run)] = str(error) if isinstance(error, HedgeError) else f"{type(error).__name__}: {error}"
    return _findings[id(run)]


def _lines(run: Run) -> list[str]:
    finding = _finding(run)
    return (
        [f"{run.task}: no finding ({finding})"] if isinstance(finding, str) else [f"{run.task}", *finding.lines(), ""]
    )
