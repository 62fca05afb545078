"""Errors of a stock task's own code."""

from __future__ import annotations


def cause_of(error: Exception) -> BaseException:
    """Return what went wrong; tenacity's `RetryError` says nothing by itself, and holds it."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() if attempt is not None else None) or error
