"""What a reply to a yes-or-no or multiple-choice question says: read by words, or as the published code reads it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

from hedge_tasks.errors import unknown
from hedge_tasks.evaluations.shale.items import options_of

_YES = frozenset({"yes", "yeah", "yep", "correct", "true", "是", "是的"})
_NO = frozenset({"no", "nope", "incorrect", "false", "否", "不是"})

# Statements without a yes or no: what is there, and what is not. Doubt comes first, it has no answer.
_DOUBT = re.compile(
    r"\b(?:not|n't) (?:\w+ )?(?:sure|certain|clear|know|possible|able|tell|determine|say)\b"
    r"|\bno (?:idea|clue|way (?:to|of))\b"
    r"|\b(?:unclear|unsure|uncertain|unable|maybe|perhaps|possibly|might|depends|either|hard to)\b"
)
_DENIED = re.compile(
    r"\b(?:there (?:is|are) (?:not|n't|no)"
    r"|(?:it|they|he|she|this|that|these|those) (?:is|are|does|do|has|have) (?:not|n't)"
    r"|(?:can|could|do|does|did) ?(?:not|n't) (?:see|find|spot|detect|appear|contain|show|depict|have|include)"
    r"|(?:is|are) (?:not|n't) (?:visible|present|any|a|an|in|shown|depicted)|^not\b|\bnone\b|\babsent\b)"
)
_STATED = re.compile(
    r"^(?:there (?:is|are)|(?:it|they|he|she|this|that) (?:is|are|does|do)|(?:i|you|we) can see|i see)\b"
)
# "Yes and no", "yes or no", "no idea": they begin with an answer and give none.
_OPEN_START = re.compile(r"\w+ ?(?:and|or|/) ?(?:yes|no)\b|no (?:idea|clue|way (?:to|of))\b")
_NEGATED = re.compile(r"\b(?:not|n't) (?:\w+ )?(?:correct|true)\b")
_DECORATION = re.compile(r"[*_`\"“”#>\[\]{}<$\\]")


def read_yes_no(reply: str) -> str | None:
    """ "yes" or "no", or None where the reply says neither or both.

    Read are whole words: "know", "not" and "cannot" are no "no". A reply that begins with yes or no means that; else
    all that stand in it must agree. Without any, a statement such as "There isn't a dog." counts.

    Example:
        >>> read_yes_no("No."), read_yes_no("I do not know."), read_yes_no("There are no dogs here.")
        ('no', None, 'no')
    """
    text = _plain(reply)
    words = re.findall(r"[^\W\d_]+", text)
    if not words:
        return None
    said = {name for name, known in (("yes", _YES), ("no", _NO)) if known & set(words)}
    if words[0] in _YES | _NO and not _OPEN_START.match(text):
        return "yes" if words[0] in _YES else "no"
    if len(said) == 2 or _DOUBT.search(text):
        return None
    if said:
        return said.pop()
    if _DENIED.search(text):
        return "no"
    return "yes" if _STATED.search(text) else None


def read_choice(reply: str, question: str) -> str | None:
    """The letter of the option that a reply takes, or None where it takes none or several.

    Read are, in this order: letters in brackets "(B)"; a letter that stands at the front or alone ("B", "B.", "B) red",
    "Option B", "the answer is B"); the text of an option, as whole words, where no longer option holds it.

    Example:
        >>> read_choice("Dark blue.", "Which? (A) blue (B) dark blue"), read_choice("A or B", "Which? (A) a (B) b")
        ('B', None)
    """
    options = options_of(question)
    text = unicodedata.normalize("NFKC", _DECORATION.sub(" ", reply)).strip()
    for pattern in (
        r"\(([A-Z])\)",
        r"^(?:option |answer:? )?([A-Z])(?=[.):,]|\s*$)",
        r"(?i:\b(?:answer|option|choice)(?: is)?:? )\(?([A-Z])\b",
    ):
        letters = {letter for letter in re.findall(pattern, text) if letter in options}
        if letters:
            return letters.pop() if len(letters) == 1 else None
    if re.search(r"\b[A-Z]\b (?:or|and) \b[A-Z]\b", text):
        return None
    return _option_in(text, options)


def _option_in(text: str, options: Mapping[str, str]) -> str | None:
    words = _words(text)
    found = {letter: _words(option) for letter, option in options.items() if f" {_words(option)} " in f" {words} "}
    # "blue" inside "dark blue" is not a second choice.
    whole = [k for k, mine in found.items() if not any(mine != other and mine in other for other in found.values())]
    return whole[0] if len(whole) == 1 else None


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _plain(reply: str) -> str:
    text = unicodedata.normalize("NFKC", _DECORATION.sub(" ", reply)).casefold().replace("’", "'")
    text = re.sub(r"\bcannot\b", "can not", text).replace("n't", " n't")
    return " ".join(_NEGATED.sub("false", text).split())


def read_yes_no_official(reply: str) -> str | None:
    """As `evaluate.py` of github.com/BeiiiY/SHALE: the text "Yes" or "yes" anywhere, else "No" or "no" anywhere.

    Example:
        >>> read_yes_no_official("I do not know."), read_yes_no_official("YES")
        ('no', None)
    """
    if any(part in reply for part in ("Yes", "yes", "是")):
        return "yes"
    return "no" if any(part in reply for part in ("No", "no", "否")) else None


def read_choice_official(reply: str, question: str) -> str | None:
    """As `evaluate.py`: the first of "(A)", "(B)", "(C)", "(D)", in this order, that the reply contains anywhere."""
    return next((letter for letter in "ABCD" if f"({letter})" in reply), None)


def _strict(reply: str, question: str) -> str | None:
    return read_choice(reply, question) if options_of(question) else read_yes_no(reply)


def _official(reply: str, question: str) -> str | None:
    return read_choice_official(reply, question) if options_of(question) else read_yes_no_official(reply)


Reader = Callable[[str, str], str | None]

READERS: Mapping[str, Reader] = {"strict": _strict, "official": _official}
"""(reply, question) -> "yes", "no", a letter or None; by the name that a YAML gives."""


def reader(name: str) -> Reader:
    """A way to read replies by its name.

    Raises:
        ConfigError: there is none of that name; names the nearest one.
    """
    if name not in READERS:
        raise unknown("SHALE parsing", str(name), READERS)
    return READERS[name]
