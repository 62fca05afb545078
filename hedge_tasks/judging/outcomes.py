"""Outcomes of an answer: supported, hallucinated or declined, or why nobody can say. One place for every task.

A declined answer (a refusal, a doubt, a copyright line) is in no AUROC, and is not accepted where a threshold
lets answers through. Shares of the three parts (`measures.OutcomeShare`) are over all answers of which something came:
a model that declines what it does not know supports less, whatever its share of hallucinations does. An answer that was
cut off before it began, an empty one and a request that failed are no decisions of the model's, and are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hedge_tasks.judging.base import HALLUCINATED, JUDGE_UNREAD, NO_ANSWER, Verdict
from hedge_tasks.numbers import PERCENT
from hedge_tasks.replies.reading import BASES, DECLINING, DISAGREED, FAILED, REASONS, SOFT, UNCONFIRMED, UNFINISHED

OUTCOME_SUPPORTED = "supported"
"""A label: 0."""
OUTCOME_HALLUCINATED = "hallucinated"
"""A label: 1."""
DECLINED = "declined"
"""The model said that it does not answer, or claimed nothing."""
SOFTLY_READ = "unconfirmed"
"""The reply was read only softly, and no second reading confirmed it."""
UNREAD = "unread"
"""The reply says nothing, or something that nobody could read."""
UNREAD_JUDGE = "judge unread"
"""A judge wrote what could not be read."""
CUT_OFF = "cut off"
"""The reply ended before it could say an answer."""
REQUEST_FAILED = "failed"
"""The request failed: nothing was answered."""
UNDECIDED = "undecided"
"""The judge could not tell, or nobody judged."""

_DECLINING_CATEGORIES = (NO_ANSWER, "unclear")
"""Judges' words for answers that claim nothing; "unclear" is SHALE's."""

_BY_BASIS: Mapping[str, frozenset[str]] = {
    DECLINED: DECLINING,
    CUT_OFF: UNFINISHED,
    REQUEST_FAILED: frozenset({FAILED}),
    SOFTLY_READ: SOFT | {UNCONFIRMED, DISAGREED},
    UNREAD: frozenset(REASONS),
    UNREAD_JUDGE: frozenset({JUDGE_UNREAD}),
}
"""The outcome of an answer without a label, by the basis of its reading; the first that has it counts."""


def readings_of(verdicts: Iterable[Mapping[str, Any] | None]) -> dict[str, dict[str, int]]:
    """Verdicts by how firmly a reply was read, and then by basis or reason: firm, soft, unread, judge unread.

    A verdict for which nothing was read is in none. What a judge wrote and nobody could read is a part of its own.

    Example:
        >>> readings_of([{"basis": "json"}, {"basis": "leading"}, {"basis": "refusal"}, {"basis": "json"}, {}])
        {'firm': {'json': 2}, 'soft': {'leading': 1}, 'unread': {'refusal': 1}}
    """
    counts = Counter(verdict.get("basis") for verdict in verdicts if verdict)
    parts = {
        "firm": [b for b in BASES if b not in SOFT],
        "soft": [b for b in BASES if b in SOFT],
        "unread": list(REASONS),
        UNREAD_JUDGE: [JUDGE_UNREAD],
    }
    by_part = {part: {b: counts[b] for b in bases if counts[b]} for part, bases in parts.items()}
    return {part: by_basis for part, by_basis in by_part.items() if by_basis}


def readings_line(readings: Mapping[str, Mapping[str, int]]) -> str | None:
    """The readings on one line, with shares; None where nothing was read.

    Example:
        >>> readings_line({"firm": {"json": 2, "line": 1}, "unread": {"refusal": 1}})
        'firm 3 (75.0 %: json 2, line 1), unread 1 (25.0 %: refusal 1)'
    """
    n = sum(sum(counts.values()) for counts in readings.values())
    shares = []
    for part, counts in readings.items():
        listed = ", ".join(f"{basis} {count}" for basis, count in counts.items())
        shares.append(f"{part} {sum(counts.values())} ({PERCENT(sum(counts.values()) / n)}: {listed})")
    return ", ".join(shares) or None


def of_unanswered(why: str, judge: str, version: str) -> Verdict:
    """The verdict on an answer that nobody can judge: no label, and a category only where the model declined.

    Args:
        why: one of `reading.UNANSWERED`.
        judge, version: who says so.

    Example:
        >>> of_unanswered("failed request", "rule", "5").reason
        'failed: failed request'
    """
    verdict = Verdict(None, "", judge, version, category=NO_ANSWER if why in DECLINING else None, basis=why)
    return replace(verdict, reason=f"{outcome_of(verdict)}: {why}")


def outcome_of(verdict: Verdict | Mapping[str, Any] | None) -> str:
    """The one outcome of an answer, such as `DECLINED`.

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
    for outcome, bases in _BY_BASIS.items():
        if basis in bases:
            return outcome
    if fields.get("category") in _DECLINING_CATEGORIES:
        return DECLINED
    of_votes = {outcome_of(vote) for vote in votes} if basis is None else set()
    settled = (DECLINED, CUT_OFF, REQUEST_FAILED, UNREAD)
    return next((outcome for outcome in settled if of_votes == {outcome}), UNDECIDED)
