"""Shared by the evaluations whose replies are read: the votes of a verdict, one for each way to read a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def vote_of(verdict: Mapping[str, Any], parsing: str) -> Mapping[str, Any]:
    """Return the vote of one way to read replies.

    Args:
        verdict: as a run file keeps it, with `votes`.
        parsing: one of `hedge_tasks.replies.parsing.PARSINGS`.

    Raises:
        KeyError, StopIteration: there is no such vote.
    """
    return next(vote for vote in verdict["votes"] if str(vote["judge"]).endswith(f":{parsing}"))


def readings_differ(verdict: Mapping[str, Any]) -> bool:
    """Whether the ways to read a reply disagree."""
    return len({vote.get("category") for vote in verdict["votes"]}) > 1
