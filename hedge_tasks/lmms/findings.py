"""The findings of an evaluation: with the next command under lmms-eval's table, where users look then, and in its
result file, and so wherever lmms-eval sends that.

lmms-eval's own rows have a standard error and no interval, and where a number is undefined its reason is a text.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.errors import HedgeError

if TYPE_CHECKING:
    from hedge_tasks.measures.headline import Headline
    from hedge_tasks.runs.run_files import Run

KEY = "hedge"
"""Of the result file."""

_kept: dict[Path, bool] = {}
"""lmms-eval's output folders with runs of this process since the last table; whether the data is the user's own."""

_findings: list[tuple[str, Headline | str]] = []
"""Task and finding of these runs, or why there is none."""


def note_kept(folder: Path, *, own_data: bool, run: Run | None = None) -> None:
    """Note that a run was kept.

    Args:
        folder: what `hedge` gets, such as lmms-eval's output folder.
        own_data: whether its data set is in files of the user's own, which are only read where that is asked for.
        run: what was kept, in the process that wrote it.
    """
    _kept[folder] = _kept.get(folder, False) or own_data
    if run is not None:
        _findings.append((run.task, _finding(run)))


def under_table(table: str, results: Mapping[str, Any], column: str) -> str:
    """lmms-eval's table with the findings and the next command under it, once for all runs since the last one."""
    # Where there are groups their table comes last.
    if not _kept or (column == "results" and "groups" in results):
        return table
    folders = " ".join(shlex.quote(str(folder)) for folder in _kept)
    trust = " --trust-run" if any(_kept.values()) else ""
    lines = [table]
    for task, finding in _findings:
        lines += [f"{task}: no finding ({finding})"] if isinstance(finding, str) else [task, *finding.lines(), ""]
    _kept.clear()
    _findings.clear()
    next_step = f"Next: hedge report {folders}{trust} --out report.html  (or hedge health, compare, detectors, ...)"
    return "\n".join([*lines, next_step, ""])


def add_to_results(results: dict[str, Any]) -> None:
    """Put the findings into the results that lmms-eval is about to write, by task."""
    tasks = results.get("results", {})
    parts = {t: in_results(finding) for t, finding in _findings if t in tasks and not isinstance(finding, str)}
    if parts:
        results[KEY] = parts


def in_results(finding: Headline) -> dict[str, Any]:
    """Return a finding for the result file: sentences, trust, rate and every ROC-AUC with its 95 % interval."""
    numbers = [
        {
            **{"clustering": clustering, "detector": detector, "value": number.value},
            **{"low": number.low, "high": number.high, "answers": number.n, "hallucinated": number.n_positive},
            "reason": number.reason or "",
        }
        for (detector, clustering), number in finding.estimates.items()
    ]
    return {**finding.to_dict(), "roc_auc": numbers}


def _finding(run: Run) -> Headline | str:
    from hedge_tasks.measures.headline import headline  # the plug-in loads this module for every evaluation

    try:
        return headline(run)
    except Exception as error:  # the table and the run file are there without it
        return str(error) if isinstance(error, HedgeError) else f"{type(error).__name__}: {error}"
