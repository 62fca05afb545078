"""The findings of an evaluation: with the next command under lmms-eval's table, where users look then, and in its
result file, and so wherever lmms-eval sends that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.measures.headline import Headline
    from hedge_tasks.runs.run_files import Run

KEY = "hedge"
"""Of the result file."""


class Findings:
    """The findings of the runs that this process has kept since its last table."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._next: dict[str, None] = {}
        self._headlines: dict[str, Headline] = {}

    def note(self, run: Run, next_step: str) -> None:
        """Take a run that was kept.

        Args:
            next_step: The command to go on with.
        """
        from hedge_tasks.measures.headline import headline  # the plug-in loads this module for every evaluation

        self._headlines.pop(run.task, None)
        try:
            finding = self._headlines[run.task] = headline(run)
            self._lines += [run.task, *finding.lines(), ""]
        except Exception as error:  # the table and the run file are there without it
            self._lines += [f"{run.task}: no finding ({error})", ""]
        self._next[next_step] = None

    def under(self, table: Any, results: Any, column: str) -> Any:
        """Return lmms-eval's table with the findings under it, once; where there are groups their table comes last."""
        if not self._lines or (column == "results" and "groups" in results):
            return table
        lines = [table, *self._lines, *self._next, ""]
        self._lines, self._next = [], {}
        return "\n".join(lines)

    def add_to(self, results: dict[str, Any]) -> None:
        """Put sentences, trust, rate and every ROC-AUC with its interval into lmms-eval's results, by task."""
        tasks = results.get("results", {})
        if parts := {task: _written(h) for task, h in self._headlines.items() if task in tasks}:
            results[KEY] = parts


def _written(finding: Headline) -> dict[str, Any]:
    numbers = [
        {"clustering": lead.clustering, "detector": lead.detector, **lead.number.to_dict()}
        for lead in finding.estimates.values()
    ]
    return {**finding.to_dict(), "roc_auc": numbers}


FINDINGS = Findings()
"""Of this process: lmms-eval hands no state from a task to its table."""
