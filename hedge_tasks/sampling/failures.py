"""How many documents may be left out because a draw of theirs failed, and the end of the run when it is more."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.data.answers import Unaskable
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.sampling.jobs import Job

LONGEST_REASON = 300


class FailureTally:
    """Counts the documents of each task that have lost a draw.

    Args:
        jobs: of all documents that are asked.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._of_draw = {key: job for job in jobs for key in job.draws}
        of_task: dict[str, list[Job]] = {}
        for job in jobs:
            of_task.setdefault(job.definition.task, []).append(job)
        self._documents = {task: len(group) for task, group in of_task.items()}
        self._allowed = {task: group[0].request.plan.allowed_failures(len(group)) for task, group in of_task.items()}
        self._lost: dict[str, set[str]] = {task: set() for task in of_task}
        self._folders = sorted({str(job.store.folder) for job in jobs if job.store.folder is not None})
        self._failed: set[str] = set()
        self.first = ""

    def add(self, key: str, reason: str) -> None:
        """Count a failed draw. A document that cannot be asked is left out whatever the plan allows."""
        job = self._of_draw[key]
        self.first = self.first or f"First reason: {reason[:LONGEST_REASON]}"
        self._failed.add(key)
        if not isinstance(reason, Unaskable):
            self._lost[job.definition.task].add(job.request.key)

    def check(self) -> None:
        """Go on only while every task may leave out the documents that it has lost.

        Raises:
            DrawsFailed: more documents of a task have failed than its plan's `max_failed` allows.
        """
        for task, lost in self._lost.items():
            if len(lost) > self._allowed[task]:
                raise DrawsFailed(
                    f"{task}: {len(self._failed)} of {len(self._of_draw)} draws failed, of {len(lost)} of "
                    f"{self._documents[task]} documents; max_failed allows to leave out {self._allowed[task]}. "
                    f"{self.first}. {self._kept()}."
                )

    def _kept(self) -> str:
        if self._folders:
            return f"Finished draws are kept in {', '.join(self._folders)}; the same command continues from there"
        return "There is no answer store (set HEDGE_STORE or --output_path), so finished draws are lost"
