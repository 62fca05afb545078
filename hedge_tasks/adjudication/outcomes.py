"""What came of an answer: supported, hallucinated or declined, or why nobody can say. One place for every task.

A declined answer (a refusal, a doubt, a copyright line, nothing) is in no AUROC, and is not accepted where a threshold
lets answers through. Shares of the three parts are over all answers of which something came: a model that declines
what it does not know supports less, whatever its share of hallucinations does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedge_tasks.adjudication.base import HALLUCINATED, JUDGE_UNREAD, NO_ANSWER, Verdict
from hedge_tasks.replies.reading import DECLINING, DISAGREED, REASONS, SOFT, UNCONFIRMED

OUTCOME_SUPPORTED = "supported"
OUTCOME_HALLUCINATED = "hallucinated"
DECLINED = "declined"
SOFTLY_READ = "unconfirmed"
UNREAD = "unread"
UNREAD_JUDGE = "judge unread"
UNDECIDED = "undecided"

OUTCOMES: Mapping[str, str] = {
    OUTCOME_SUPPORTED: "a label: 0",
    OUTCOME_HALLUCINATED: "a label: 1",
    DECLINED: "the model gave no answer",
    SOFTLY_READ: "the reply was read only softly, and no second reading confirmed it",
    UNREAD: "the reply says something that nobody could read",
    UNREAD_JUDGE: "what the judge wrote could not be read",
    UNDECIDED: "the judge could not tell, or nobody judged",
}
"""Every answer has exactly one of these."""

_DECLINING_CATEGORIES = (NO_ANSWER, "unclear")
"""What judges call answers that claim nothing; "unclear" is SHALE's."""


def outcome_of(verdict: Verdict | Mapping[str, Any] | None) -> str:
    """The outcome of an answer, as `OUTCOMES` has it.

    Args:
        verdict: as a judge gives it or a run file has it; None where nobody judged.

    Example:
        >>> outcome_of(Verdict(None, "declined: refusal", "rule", "4", "no_answer", basis="refusal"))
        'declined'
    """
    fields = verdict.to_dict() if isinstance(verdict, Verdict) else verdict or {}
    label, basis = fields.get("label"), fields.get("basis")
    if label is not None:
        return OUTCOME_HALLUCINATED if label == HALLUCINATED else OUTCOME_SUPPORTED
    votes = fields.get("votes")
    votes = [vote for vote in votes if isinstance(vote, Mapping)] if isinstance(votes, list) else []
    if basis in DECLINING or fields.get("category") in _DECLINING_CATEGORIES:
        return DECLINED
    if basis in SOFT or basis in (UNCONFIRMED, DISAGREED):
        return SOFTLY_READ
    if basis in REASONS:
        return UNREAD
    if basis == JUDGE_UNREAD:
        return UNREAD_JUDGE
    if basis is None and votes and all(outcome_of(vote) == DECLINED for vote in votes):
        return DECLINED
    return UNDECIDED
