"""Coverage: how many answers have a label, and whether they are enough for the metrics to mean something."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Verdict
from hedge_tasks.judging.outcomes import (
    DECLINED,
    OUTCOME_HALLUCINATED,
    OUTCOME_SUPPORTED,
    REQUEST_FAILED,
    UNDECIDED,
    outcome_of,
)
from hedge_tasks.numbers import PERCENT

LIMIT = 0.05
"""Share of undecided answers above which metrics are unreliable."""

MISSING = (UNDECIDED, REQUEST_FAILED)
"""Parts of a coverage that nobody decided."""


def reliability(verdicts: Iterable[Verdict | Mapping[str, Any] | None], limit: float = LIMIT) -> str | None:
    """Why metrics over these verdicts are unreliable, or None where they are not.

    A verdict without a label but with a category ("unclear", "no_answer"), and a declined answer, is a decision and
    does not count as missing: the judge did its work. It has no label all the same, so it is in no AUROC.

    Args:
        verdicts: of all documents, as `Verdict` or as a run file has them; None for a document without.
        limit: share of undecided documents, in [0, 1], that is still taken.

    Raises:
        ConfigError: the limit is no share.

    Example:
        >>> reliability([Verdict(1, "", "rule", "1"), Verdict(None, "", "rule", "1")])
        'unreliable: 1 of 2 answers (50.0 %) have no label, more than 5 %'
    """
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or math.isnan(limit) or not 0 <= limit <= 1:
        raise ConfigError(f"unlabelled limit: expected a share between 0 and 1, got {limit!r}")
    coverage = Coverage.of(verdicts)
    if not coverage.total:
        return "unreliable: there are no verdicts"
    if coverage.missing <= limit * coverage.total:
        return None
    counts = f"{coverage.missing} of {coverage.total} answers ({PERCENT(coverage.missing / coverage.total)})"
    return f"unreliable: {counts} have no label, more than {100 * limit:g} %"


@dataclass(frozen=True)
class Coverage:
    """How many answers have a label, and why the others have none: what is missing is not like the rest.

    Attributes:
        labelled: answers with a label.
        declined: the model claims nothing, or the judge has a category for the answer: decided, without a label.
        undecided: nobody could read or judge them.
        failed: nothing was answered.
    """

    labelled: int = 0
    declined: int = 0
    undecided: int = 0
    failed: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict | Mapping[str, Any] | None]) -> Coverage:
        """Count verdicts, as `Verdict` or as a run file has them; None for a document without."""
        return cls.of_parts(map(coverage_of, verdicts))

    @classmethod
    def of_parts(cls, parts: Iterable[str]) -> Coverage:
        """Count what `coverage_of` says of each answer."""
        counts = Counter(parts)
        return cls(*(counts[part] for part in ("labelled", DECLINED, UNDECIDED, REQUEST_FAILED)))

    @property
    def missing(self) -> int:
        return self.undecided + self.failed

    @property
    def total(self) -> int:
        return self.labelled + self.declined + self.missing

    @property
    def partial(self) -> bool:
        """Whether so many are missing that a number of the others says little: bounds are shown instead."""
        return self.missing > LIMIT * self.total

    def bounds(self, positive: int) -> tuple[float, float]:
        """Return the share of positive answers if none of the missing ones is, and if all are."""
        n = self.labelled + self.missing
        return positive / n, (positive + self.missing) / n

    def __str__(self) -> str:
        """Return the counts in words.

        Example:
            >>> str(Coverage(90, declined=4, undecided=6))
            '90 labelled, 4 declined, 6 undecided, 0 failed'
        """
        return ", ".join(f"{n} {part}" for part, n in vars(self).items())


def coverage_of(verdict: Verdict | Mapping[str, Any] | None) -> str:
    """Return the part of the coverage that an answer is in: labelled, declined, undecided or failed."""
    outcome = outcome_of(verdict)
    if outcome in (OUTCOME_SUPPORTED, OUTCOME_HALLUCINATED):
        return "labelled"
    category = verdict.category if isinstance(verdict, Verdict) else (verdict or {}).get("category")
    if category is not None or outcome == DECLINED:
        return DECLINED
    return REQUEST_FAILED if outcome == REQUEST_FAILED else UNDECIDED
