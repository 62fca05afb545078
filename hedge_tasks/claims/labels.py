"""Which claims are hallucinated: labelled spans of the answer, joined to claims by overlap.

People label other units than a decomposition finds: our sentences equal the experts' units in half of the reports of
Gut-VLM. So a claim takes the labels of the spans that it shares enough characters with.
"""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.claims.base import Claim
from hedge_tasks.data.spans import LabelledSpan, joined_label
from hedge_tasks.errors import unknown

SILENT = ("unlabelled", "hallucinated")
"""The label of a claim on which the reference is silent."""

ERRORS = ("all", "major", "minor")
"""Which hallucinated claims count as such. With "major" and "minor" the others are left out."""

_LEAST_OVERLAP = 0.5


def join(claims: Sequence[Claim], spans: Sequence[LabelledSpan]) -> tuple[LabelledSpan | None, ...]:
    """The labels that spans of the same answer give each claim; None where there are none.

    A span and a claim belong together where they share at least half of the characters of the shorter of the two, so
    that a sentence takes the labels of its clauses, and a clause that of its sentence. Of several spans the worst
    label counts; see `joined_label`.
    """
    return tuple(joined_label([span for span in spans if _overlaps(claim, span)]) for claim in claims)


def label_of(span: LabelledSpan | None, *, silent: str = "unlabelled", errors: str = "all") -> int | None:
    """The label that counts: 1 = hallucinated, 0 = supported, None = left out.

    Args:
        silent: one of `SILENT`.
        errors: one of `ERRORS`; one of unknown severity is left out unless all count.

    Raises:
        ConfigError: a word is none of these.
    """
    if silent not in SILENT:
        raise unknown("silent", silent, SILENT)
    if errors not in ERRORS:
        raise unknown("errors", errors, ERRORS)
    if span is None:
        return None
    if span.silent:
        return 1 if silent == "hallucinated" and errors == "all" else None
    if span.label == 1 and errors not in ("all", span.severity):
        return None
    return span.label


def _overlaps(claim: Claim, span: LabelledSpan) -> bool:
    shared = min(claim.end, span.end) - max(claim.start, span.start)
    shorter = min(claim.end - claim.start, span.end - span.start)
    return shared >= _LEAST_OVERLAP * shorter
