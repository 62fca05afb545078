"""Answers that are none: refusals, doubts, requests, copyright lines. Read here, for every task and judge."""

from __future__ import annotations

import re
from functools import cache

from hedge_tasks.replies.reading import DOUBT, ECHO, EMPTY, NOTICE, REFUSAL, Reading
from hedge_tasks.replies.text import body, plain, spelled_out
from hedge_tasks.replies.wording import cues, phrases

# Output that is about nothing: from the mark of a copyright line to the end of the line.
_NOTICE = re.compile(
    r"(?:\u00a9|\(c\) ?\d{4}|^\W*copyright\b|\bcopyright\W*(?:\(c\)|\d{4}|by\b)).*$|^.*\ball rights reserved\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_PIECE = re.compile(r"(?<=[^\s.])[.!](?=\s|\Z)|(?<=\?)|[;\n]+|,?\s+\b(?:but|however|although)\b,?")
_REQUEST = re.compile(r"[,;]?\s*(?:\b(?:but|and|so)\s+)?\bplease\b.*", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"\n]*"')
_TOO = re.compile(
    r"\btoo (?:\w+ ){1,4}to (?:be )?(?:\w+ly )?"
    r"(?:tell|say|see|read|identif|determine|judge|assess|interpret|recogni|make|answer)"
)
_SHORT_QUESTION = 3
"""Words of "CT?", which is a doubtful answer and still one."""


@cache
def _will_not() -> re.Pattern[str]:
    """The speaker cannot do what it is asked, or cannot see the picture."""
    cannot, acts = cues("cannot").pattern, cues("acts").pattern
    seeing, picture = cues("perceive").pattern, cues("picture").pattern
    return re.compile(rf"(?:{cannot})\s+(?:\w+\s+){{0,3}}?(?:(?:{acts})|(?:{seeing})\s+(?:{picture})(?!\s+of))", re.I)


def _spoken(text: str) -> str:
    return " ".join(spelled_out(_QUOTED.sub(" ", text)).split())


def declines(text: str) -> bool:
    """Whether a text says that the model will not or cannot do what it is asked, or that it sees no image.

    "I cannot see a dog in the image" is no refusal: it says what is not in the image. Nor is what a text quotes.

    Example:
        >>> declines("I'm unable to see the image."), declines("I cannot see a dog in the image.")
        (True, False)
    """
    spoken = _spoken(text)
    return bool(_will_not().search(spoken) or cues("refuse", "ai").search(spoken))


def doubts(text: str) -> bool:
    """Whether a text says that its author does not know.

    Example:
        >>> doubts("It is unclear."), doubts("I can't tell."), doubts("It is not red.")
        (True, True, False)
    """
    spoken = _spoken(text)
    return bool(cues("doubt").search(spoken) or _TOO.search(spoken)) or spoken.strip(" .!?") in phrases("alone_doubt")


def unanswered(answer: str, *, cut: bool = False) -> str | None:
    """Why an answer says nothing that could be right or wrong; None where it says something.

    What stands beside "please consult a radiologist" or "I cannot give a diagnosis, but" still counts.

    Args:
        answer: all that the model wrote.
        cut: whether it ended because it had become too long.

    Returns:
        One of `reading.UNANSWERED`.

    Example:
        >>> unanswered("I'm sorry, I can't help with that."), unanswered("A cyst, but please ask a doctor.")
        ('refusal', None)
        >>> unanswered("© 2016 The Authors"), unanswered("?!"), unanswered("Which organ do you mean?")
        ('copyright line', 'empty', 'echo')
    """
    text = body(answer, cut=cut)
    if isinstance(text, Reading):
        return text.basis
    whole = plain(text)
    without_notice = _NOTICE.sub("", whole)
    if not _says(without_notice):
        return EMPTY if without_notice == whole else NOTICE
    reasons = [_reason(piece) for piece in _PIECE.split(without_notice)]
    if None in reasons:
        return None
    return next((reason for reason in (REFUSAL, DOUBT) if reason in reasons), ECHO)


def _reason(piece: str) -> str | None:
    """Why a piece of an answer says nothing; None where it says something."""
    spoken = _spoken(piece).lstrip(" ,:-")
    while (opening := cues("opening").match(spoken)) is not None:
        spoken = spoken[opening.end() :].lstrip(" ,:;.!-")
    spoken = without_request(spoken)
    if not _says(spoken) or cues("courtesy").match(spoken):
        return ECHO
    if declines(spoken):
        return REFUSAL
    if doubts(spoken):
        return DOUBT
    return ECHO if spoken.endswith("?") and len(spoken.split()) > _SHORT_QUESTION else None


def _says(text: str) -> bool:
    return any(character.isalnum() for character in text)


def declining_option(text: str) -> str | None:
    """Why to take an option is to decline; None where it says something.

    Example:
        >>> declining_option("None of the above"), declining_option("I don't know"), declining_option("A cyst")
        ('refusal', 'doubt', None)
    """
    if cues("none_of").match(_spoken(text).strip(" .!")):
        return REFUSAL
    why = unanswered(text)
    return why if why in (REFUSAL, DOUBT) else None


def without_request(sentence: str) -> str:
    """A sentence in front of what it asks for.

    Example:
        >>> without_request("I think it is a cyst, but please consult a radiologist")
        'I think it is a cyst'
    """
    return _REQUEST.sub("", sentence)
