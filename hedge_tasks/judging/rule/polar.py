"""Answers and references that say yes or no. Replies are read by `hedge_tasks.replies`, here as everywhere."""

from __future__ import annotations

import re
import unicodedata

from hedge_tasks.data.option_order import options_in
from hedge_tasks.replies import read_yes_no


def yes_no_reference(reference: str) -> bool | None:
    """True or False when the reference is a bare yes or no. Spelled 'n, o' in some files, so only letters count."""
    letters = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", reference).casefold())
    return {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}.get(letters)


def says_yes_or_no(text: str) -> bool | None:
    """Whether a text says yes (True) or no (False) in so many words."""
    read = read_yes_no(text)
    return read.value == "yes" if read.readable else None


def question_type(question: str, reference: str) -> str:
    """ "closed": the reference is yes or no, or the question has lettered options; else "open"."""
    return "closed" if yes_no_reference(reference) is not None or options_in(question) else "open"
