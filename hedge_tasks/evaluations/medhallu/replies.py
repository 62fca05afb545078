"""What a reply to "0 factual, 1 hallucinated, 2 not sure" says: read strictly, or as the reference code reads it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from hedge_tasks.errors import unknown

FACTUAL = "factual"
HALLUCINATED = "hallucinated"
NOT_SURE = "not_sure"

VERDICTS = {FACTUAL: 0, HALLUCINATED: 1, NOT_SURE: 2}
"""The digit that each verdict is asked for as."""

_DIGITS = {str(digit): verdict for verdict, digit in VERDICTS.items()}

_WORDS = {
    **dict.fromkeys(("factual", "not hallucinated", "non hallucinated", "no hallucination"), FACTUAL),
    **dict.fromkeys(("hallucinated", "hallucination", "not factual", "non factual", "nonfactual"), HALLUCINATED),
    **dict.fromkeys(("not sure", "unsure", "pass", "skip", "unsure and pass", "not sure and pass"), NOT_SURE),
}

# What models write in front of the verdict although they were told not to.
_LABEL = re.compile(
    r"(?:(?:the|my|final|your) )*(?:answer|verdict|judg(?:e)?ment|output|label|reply|response|decision|result|boxed)\b"
    r"(?: (?:is|as|to this|would be))*\s*[:=]?\s*"
)
_DECORATION = re.compile(r"[*_`\"'“”‘’#>()\[\]{}<>$\\]")

_LONGEST_LINE = 200
"""A verdict line is short; a longer line is running text and never read as one."""


def read_strict(reply: str, not_sure: bool = True) -> str | None:
    """The verdict of a reply that states one and no other, or None.

    Read is each line by itself: a verdict line is a digit, or a word such as "hallucinated", or both where they agree
    ("1 (hallucinated)"), perhaps behind a label ("Final answer: 1"), with any punctuation. All other lines are
    explanations and are not read, so "1. First, ..." is none and neither is "I would not say so". Two lines with
    different verdicts cancel each other.

    Args:
        reply: what the model wrote.
        not_sure: whether the prompt offered that verdict; where it did not, "2" is no verdict.

    Returns:
        "factual", "hallucinated" or "not_sure"; None where no verdict can be read.

    Example:
        >>> read_strict("**Answer: 1**\\n\\nThe answer names the wrong pathway."), read_strict("1 or 0")
        ('hallucinated', None)
    """
    lines = (_read_line(line) for line in reply.splitlines() if len(line) <= _LONGEST_LINE)
    found = {verdict for verdict in lines if verdict is not None}
    if len(found) != 1:
        return None
    [verdict] = found
    return verdict if not_sure or verdict != NOT_SURE else None


def _read_line(line: str) -> str | None:
    text = _DECORATION.sub(" ", unicodedata.normalize("NFKC", line).casefold())
    text = _LABEL.sub("", " ".join(text.split()), count=1) if _LABEL.match(" ".join(text.split())) else text
    text = " ".join(re.sub(r"[^\w]+", " ", text.replace("-", " ")).split())
    digit, _, rest = text.partition(" ")
    if digit in _DIGITS:
        return _DIGITS[digit] if not rest or _WORDS.get(rest) == _DIGITS[digit] else None
    return _WORDS.get(text)


def read_official(reply: str, not_sure: bool = True) -> str:
    """The verdict as the reference code (github.com/MedHallu/MedHallu, Detection) reads it.

    In this order, on the lower-cased reply: it contains "1", "not" or "non": hallucinated; "not sure", "pass", "skip"
    or "2": not sure; anything else: factual. So "not sure" itself is read as hallucinated, and so is "10 mg" or
    "note"; an empty reply is factual. Whether the prompt offered "not sure" plays no role there.

    Example:
        >>> read_official("I am not sure"), read_official("Pass."), read_official("")
        ('hallucinated', 'not_sure', 'factual')
    """
    text = reply.lower()
    if any(part in text for part in ("1", "not", "non")):
        return HALLUCINATED
    if any(part in text for part in ("not sure", "pass", "skip", "2")):
        return NOT_SURE
    return FACTUAL


Reader = Callable[[str, bool], str | None]

READERS: Mapping[str, Reader] = {"strict": read_strict, "official": read_official}
"""Ways to read a reply, by the name that a YAML gives."""


def reader(name: str) -> Reader:
    """A way to read replies by its name.

    Raises:
        ConfigError: there is none of that name; names the nearest one.
    """
    if name not in READERS:
        raise unknown("MedHallu parsing", str(name), READERS)
    return READERS[name]
