"""The words of a text, for whatever compares wordings."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Runs of letters and digits of the case-folded text, in any script.

    Example:
        >>> words("Left-sided EFFUSION.")
        ['left', 'sided', 'effusion']
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
