"""Coverage: how many answers have a label, and why the others have none. What is missing is not like the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hedge_tasks.io.records import Count, Record
from hedge_tasks.judging.outcomes import DECLINED, REQUEST_FAILED, UNDECIDED, outcome_of
from hedge_tasks.judging.reliability import LIMIT, is_undecided
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.runs.run_files import Run

MISSING = (UNDECIDED, REQUEST_FAILED)
"""Parts of a coverage that nobody decided."""


class Coverage(Record):
    """How many units have a label, and why the others have none. Whatever takes labels takes these counts, too.

    Attributes:
        labelled: answers with a label.
        declined: the model claims nothing, or the judge has a category for the answer: decided, without a label.
        undecided: nobody could read or judge them.
        failed: nothing was answered.
    """

    labelled: Count = 0
    declined: Count = 0
    undecided: Count = 0
    failed: Count = 0

    @classmethod
    def of(cls, parts: Iterable[str]) -> Coverage:
        """Count the parts that answers are in; see `parts_of`."""
        counts = Counter(parts)
        return cls(**{part: counts[part] for part in cls.model_fields})

    @property
    def missing(self) -> int:
        return self.undecided + self.failed

    @property
    def partial(self) -> bool:
        """Whether so many are missing that a number of the others says little: bounds are shown instead."""
        return self.missing > LIMIT * self.total

    @property
    def total(self) -> int:
        return self.labelled + self.declined + self.missing

    def bounds(self, positive: int) -> tuple[float, float]:
        """Return the share of positive answers if none of the missing ones is, and if all are."""
        n = self.labelled + self.missing
        return positive / n, (positive + self.missing) / n

    def __str__(self) -> str:
        """Return the counts in words.

        Example:
            >>> str(Coverage(labelled=90, declined=4, undecided=6))
            '90 labelled, 4 declined, 6 undecided, 0 failed'
        """
        return ", ".join(f"{n} {part}" for part, n in self)


def parts_of(run: Run) -> dict[str, str]:
    """Return the part of the coverage that each answer of a run is in."""
    unread = {a.id: {"basis": unanswered(a.baseline.text)} for a in run.answer_sets if not run.verdicts.get(a.id)}
    return {a.id: _part(a.label, unread.get(a.id) or run.verdicts[a.id]) for a in run.answer_sets}


def coverage_of(run: Run) -> Coverage:
    """Return how many answers of a run have a label by its judge; those that were never sampled have failed."""
    return Coverage.of((*parts_of(run).values(), *(REQUEST_FAILED for _ in run.settings.get("failed") or ())))


def _part(label: int | None, verdict: Mapping[str, Any]) -> str:
    if label is not None:
        return "labelled"
    outcome = outcome_of({**verdict, "label": None})
    return DECLINED if not is_undecided({**verdict, "label": None}) else outcome if outcome in MISSING else UNDECIDED
