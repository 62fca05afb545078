"""Replies as the papers' published code reads them, bit by bit, for numbers that are to be compared with the papers'.

They take a refusal for an answer, and much else; how often is measured in `benchmarks/RESULTS.md`.
"""

from __future__ import annotations


def medhallu(reply: str) -> str:
    """The digit as the reference code (github.com/MedHallu/MedHallu, Detection) reads it.

    In this order, on the lower-cased reply: it contains "1", "not" or "non": hallucinated; "not sure", "pass", "skip"
    or "2": not sure; anything else: factual. So "not sure" itself is read as hallucinated, and so is "10 mg" or
    "note"; an empty reply is factual. Whether the prompt offered "not sure" plays no role there.

    Example:
        >>> medhallu("I am not sure"), medhallu("Pass."), medhallu("")
        ('1', '2', '0')
    """
    text = reply.lower()
    if any(part in text for part in ("1", "not", "non")):
        return "1"
    return "2" if any(part in text for part in ("not sure", "pass", "skip", "2")) else "0"


def shale_yes_no(reply: str) -> str | None:
    """As `evaluate.py` of github.com/BeiiiY/SHALE: the text "Yes" or "yes" anywhere, else "No" or "no" anywhere.

    Example:
        >>> shale_yes_no("I do not know."), shale_yes_no("YES")
        ('no', None)
    """
    if any(part in reply for part in ("Yes", "yes", "是")):
        return "yes"
    return "no" if any(part in reply for part in ("No", "no", "否")) else None


def shale_choice(reply: str) -> str | None:
    """As `evaluate.py`: the first of "(A)", "(B)", "(C)", "(D)", in this order, that the reply contains anywhere."""
    return next((letter for letter in "ABCD" if f"({letter})" in reply), None)


def vope(reply: str) -> str | None:
    """The reply as the reference code (github.com/qqwsad5/VOPE, evaluation.py) reads it.

    "n't" becomes " not" and "cannot" "can not", commas go, and the rest is cut at single spaces. A token "sound": not
    counted; else a token "No", "no" or "not": no; else yes. Tokens keep their full stop, so a bare "No." is read as
    yes, and so is "NO" or nothing at all.

    Example:
        >>> vope("No, there isn't"), vope("No."), vope("It does not sound so")
        ('no', 'yes', None)
    """
    tokens = reply.replace("n't", " not").replace("cannot", "can not").replace(",", "").split(" ")
    if "sound" in tokens:
        return None
    return "no" if any(token in tokens for token in ("No", "not", "no")) else "yes"
