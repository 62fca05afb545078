"""What a reply to "Is there a dog in the image?" says: word by word, or as the reference code reads it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from hedge_tasks.errors import unknown
from hedge_tasks.evaluations.vope.vocabulary import word_set

_NOT = re.compile(r"n['’]t\b")
_CANNOT = re.compile(r"\bcannot\b")
_WORD = re.compile(r"[a-z]+")

_YES = word_set("yes yeah yep yup indeed certainly correct true affirmative")
_NO = word_set("no nope nah false negative incorrect")
_NEGATIONS = word_set("no not none nothing never neither nor without absent lacks missing")
_UNSURE = word_set("unsure uncertain unclear maybe perhaps possibly cannot impossible difficult hard")
_STATEMENTS = word_set(
    "is are can see seen visible present shows show depicts depict contains contain features includes appears there "
    "appear have has"
)


def read_words(reply: str) -> bool | None:
    """Whether the reply says yes, no, or neither. Punctuation, case and decoration do not matter.

    A yes or no that begins the reply decides ("No, there is no dog"; "yes or no" is neither). Otherwise a word of
    negation makes it a no, another yes or a plain statement ("There is a dog") a yes. Doubt ("It is unclear", "I can't
    tell"), silence and replies that state nothing are neither.

    Example:
        >>> read_words("No."), read_words("Yes, a dog sits there."), read_words("I can't tell."), read_words("")
        (False, True, None, None)
    """
    text = unicodedata.normalize("NFKC", reply).lower()
    text = _CANNOT.sub("can not", _NOT.sub(" not", text))
    words = _WORD.findall(text)
    if not words:
        return None
    if words[:3] in (["yes", "or", "no"], ["yes", "and", "no"], ["no", "or", "yes"], ["no", "and", "yes"]):
        return None
    if words[0] in _YES:
        return True
    if words[0] in _NO:
        return False
    said = set(words)
    if said & _UNSURE or _cannot_tell(words):
        return None
    if said & _NEGATIONS:
        return None if said & {"yes"} else False
    return True if said & _YES or said & _STATEMENTS else None


def _cannot_tell(words: list[str]) -> bool:
    """ "I can not tell", "it is not clear", "I do not know": about the model, not about the image."""
    return any(
        word == "not" and set(words[at + 1 : at + 4]) & {"tell", "sure", "certain", "clear", "know", "determine", "say"}
        for at, word in enumerate(words)
    )


def read_official(reply: str) -> bool | None:
    """The reply as the reference code (github.com/qqwsad5/VOPE, evaluation.py) reads it.

    "n't" becomes " not" and "cannot" "can not", commas go, and the rest is cut at single spaces. A token "sound": not
    counted; else a token "No", "no" or "not": no; else yes. Tokens keep their full stop, so a bare "No." is read as
    yes, and so is "NO" or nothing at all.

    Example:
        >>> read_official("No, there isn't"), read_official("No."), read_official("It does not sound so")
        (False, True, None)
    """
    tokens = reply.replace("n't", " not").replace("cannot", "can not").replace(",", "").split(" ")
    if "sound" in tokens:
        return None
    return not any(token in tokens for token in ("No", "not", "no"))


Reader = Callable[[str], "bool | None"]

READERS: Mapping[str, Reader] = {"words": read_words, "official": read_official}
"""Ways to read a reply, by the name that a YAML gives."""


def reader(name: str) -> Reader:
    """A way to read replies by its name.

    Raises:
        ConfigError: there is none of that name; names the nearest one.
    """
    if name not in READERS:
        raise unknown("VOPE parsing", str(name), READERS)
    return READERS[name]
