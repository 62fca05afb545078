"""Texts and data from outside, made fit for a page.

The templates escape everything (Jinja2's autoescape). What escaping does not help against is dealt with here: control
characters, a megabyte in one answer, and data inside a script element.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Stacks of combining marks run over the lines above and below; no script needs more than a few on one letter.
_MARKS = r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACK = re.compile(f"({_MARKS}{{4}}){_MARKS}+")

# Inside <script type="application/json"> only "<" can end the element; U+2028 and U+2029 are escaped by ensure_ascii.
_IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def clean(text: str, most: int = 2000) -> str:
    """Return a text without control characters and endless stacks of accents, cut to `most` characters with a note.

    Line breaks and tabs stay. Direction marks stay as well: the pages isolate every text from what is around it.

    Example:
        >>> clean("a\\x00b"), clean("x" * 12, most=10)
        ('a\ufffdb', 'xxxxxxxxxx … (2 more characters)')
    """
    cleaned = _STACK.sub(r"\1", _CONTROLS.sub("\ufffd", text[:most]))
    return cleaned if len(text) <= most else f"{cleaned} … ({len(text) - most:,} more characters)"


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element whatever the texts in it are. NaN and infinity are refused."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPT)


def json_number(value: float | None, digits: int) -> float | None:
    """Return a number for JSON, rounded to some decimals; None for infinity and NaN, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else round(value, digits)


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with an ellipsis where it is cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def flat_settings(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as lines, such as ("sampling.n", "10")."""
    if isinstance(value, Mapping):
        return [
            row
            for key, inner in value.items()
            for row in flat_settings(inner, f"{prefix}.{key}" if prefix else str(key))
        ]
    if isinstance(value, (list, tuple)):
        return [(prefix, ", ".join(map(str, value)) or "none")]
    return [(prefix, "none" if value is None else str(value))]
