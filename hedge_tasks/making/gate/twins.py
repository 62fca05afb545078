"""Minimal pairs: a text that is right in other words, and one that is wrong by one word."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hedge_tasks.making.digests import text_digest

_PAIRS = (
    ("left", "right"), ("increased", "decreased"), ("increase", "decrease"), ("increases", "decreases"),
    ("higher", "lower"), ("high", "low"), ("upper", "lower"), ("anterior", "posterior"), ("medial", "lateral"),
    ("proximal", "distal"), ("superior", "inferior"), ("benign", "malignant"), ("acute", "chronic"),
    ("bilateral", "unilateral"), ("present", "absent"), ("normal", "abnormal"), ("enlarged", "reduced"),
    ("more", "fewer"), ("before", "after"), ("above", "below"), ("inside", "outside"), ("larger", "smaller"),
    ("large", "small"), ("open", "closed"), ("black", "white"), ("yes", "no"), ("with", "without"),
)  # fmt: skip
_OTHER: Mapping[str, str] = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1]) if pair != ("upper", "lower")} | {
    "upper": "lower"
}
_WORD = re.compile(r"\d+(?:\.\d+)?|[A-Za-z]+")
_FRAMES = ("It is {0}.", "The answer is {0}.", "This shows {0}.", "One sees {0} here.")
_SHORT = 6
"""Words from which on a text is a sentence of its own and goes into no frame."""


def wrong_twin(text: str) -> str | None:
    """A text with one word or number turned into another that excludes it; None where it has no such word.

    Example:
        >>> wrong_twin("A mass in the left lung, 12 mm"), wrong_twin("a dog")
        ('A mass in the right lung, 12 mm', None)
    """
    for match in _WORD.finditer(text):
        opposite = _OTHER.get(match[0].casefold())
        if opposite is not None:
            opposite = opposite.capitalize() if match[0][0].isupper() else opposite
            return f"{text[: match.start()]}{opposite}{text[match.end() :]}"
    number = re.search(r"\b\d+(?:\.\d+)?\b", text)
    if number is None:
        return None
    changed = f"{float(number[0]) * 2 + 1:g}"
    return f"{text[: number.start()]}{changed}{text[number.end() :]}"


def right_twin(text: str) -> str:
    """Return a text in other words, where that is safe without a model: a short answer in a sentence, by its digest.

    Example:
        >>> right_twin("a dog") != "a dog", right_twin("The heart is normal and the lungs are clear.")
        (True, 'The heart is normal and the lungs are clear.')
    """
    words = text.strip().rstrip(".")
    if not words or len(words.split()) > _SHORT or words.casefold() in ("yes", "no"):
        return text
    digest = int(text_digest(text), 16)
    acronym = words.split()[0].isupper()
    return _FRAMES[digest % len(_FRAMES)].format(words if acronym else words[0].lower() + words[1:])
