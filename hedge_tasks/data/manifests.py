"""Where documents come from, and digests of their texts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import ConfigDict

from hedge_tasks.io.outside import clean
from hedge_tasks.io.records import Text

_DIGITS = 16


@dataclass(frozen=True)
class Data:
    """Where the documents come from: as lmms-eval's YAML names it; no revision for a local copy."""

    path: Text
    name: Text | None = None
    split: Text | None = None
    revision: Text | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")


def text_digest(text: str | None) -> str | None:
    """Digest of a text as answer files hold it (`hedge_tasks.io.outside.clean`).

    Example:
        >>> text_digest("left lung"), text_digest(None)
        ('8f2539160aab1d7d', None)
    """
    return None if text is None else hashlib.sha256(clean(text).encode()).hexdigest()[:_DIGITS]
