"""Whether enough answers have a label for the metrics to mean something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import Verdict
from hedge_tasks.judging.outcomes import DECLINED, OUTCOME_HALLUCINATED, OUTCOME_SUPPORTED, UNDECIDED, outcome_of
from hedge_tasks.numbers import PERCENT

LIMIT = 0.05
"""Share of undecided answers above which metrics are unreliable."""


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
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit <= 1:
        raise ConfigError(f"unlabelled limit: expected a share between 0 and 1, got {limit!r}")
    every_verdict = list(verdicts)
    missing = sum(map(is_undecided, every_verdict))
    if not every_verdict:
        return "unreliable: there are no verdicts"
    if missing <= limit * len(every_verdict):
        return None
    counts = f"{missing} of {len(every_verdict)} answers ({PERCENT(missing / len(every_verdict))})"
    return f"unreliable: {counts} have no label, more than {100 * limit:g} %"


def is_undecided(verdict: Verdict | Mapping[str, Any] | None) -> bool:
    """Return whether an answer has neither a label nor a category, and was not declined."""
    if verdict is None:
        return True
    category = verdict.category if isinstance(verdict, Verdict) else verdict.get("category")
    outcome = outcome_of(verdict)
    return outcome not in (OUTCOME_SUPPORTED, OUTCOME_HALLUCINATED, DECLINED) and (
        category is None or outcome != UNDECIDED
    )
