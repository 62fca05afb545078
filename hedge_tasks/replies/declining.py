"""Answers that are none: refusals, doubts, requests, copyright lines, nothing. Read here, for every task and judge."""

from __future__ import annotations

import re

from hedge_tasks.replies.reading import DOUBT, ECHO, EMPTY, NOTICE, REFUSAL, Reading
from hedge_tasks.replies.refusal import declines, undecided
from hedge_tasks.replies.text import body, plain, spelled_out

# Output that is about nothing.
_NOTICE = re.compile(r"\u00a9|\(c\) ?\d{4}|\bcopyright\b|all rights reserved", re.IGNORECASE)
_PIECE = re.compile(r"(?<=[^\s.])[.!](?=\s|\Z)|(?<=\?)|[;\n]+|,?\s+\b(?:but|however|although)\b,?")
# What somebody says who says nothing about what was asked.
_COURTESY = re.compile(
    r"""\A[\W_]*(?:(?:and|so|also|therefore|then)\ )?(?:
      (?:(?:can|could|would)\ you\ )?please\b|sorry\b
      |(?:i\ am|we\ are)\ (?:so\ |very\ )?(?:sorry|here|just|only|happy)\b
      |i\ apologi[sz]e\b|(?:feel\ free|let\ me\ know|thank|thanks|hello|hi\b|i\ hope|if\ you|kindly|unfortunately\W*\Z)
      |(?:i\ |you\ )?(?:would\ |strongly\ |should\ |may\ |might\ )*(?:recommend|advise|suggest|consult|seek)\b
      |it\ is\ (?:important|recommended|advisable|best)\ to\b|(?:a|an)\ .{0,40}\bshould\ be\ consulted
      |as\ an?\ (?:\w+\ ){0,3}(?:ai|model|assistant)\b
    )""",
    re.VERBOSE,
)
_REQUEST = re.compile(r"[,;]?\s*(?:\b(?:but|and|so)\s+)?\bplease\b.*", re.IGNORECASE)


def declined(answer: str) -> str | None:
    """Why an answer says nothing that could be right or wrong; None where it says something.

    What stands beside "please consult a radiologist" or "I cannot give a diagnosis, but" still counts.

    Returns:
        One of `reading.DECLINING`.

    Example:
        >>> declined("I'm sorry, I can't help with that."), declined("I think it is a cyst, but please ask a doctor.")
        ('refusal', None)
        >>> declined("© 2016 The Authors"), declined("?!"), declined("Which organ do you mean?")
        ('copyright line', 'empty', 'echo')
    """
    text = body(answer)
    if isinstance(text, Reading):
        return text.basis
    said = plain(text)
    if _NOTICE.search(said):
        return NOTICE
    reasons = []
    for piece in _PIECE.split(said):
        words = " ".join(spelled_out(piece).split())
        piece = without_request(piece)
        if not any(character.isalnum() for character in piece) or _COURTESY.match(words):
            reasons.append(ECHO)
        elif declines(piece):
            reasons.append(REFUSAL)
        elif undecided(piece):
            reasons.append(DOUBT)
        elif piece.rstrip().endswith("?") and len(words.split()) > _SHORT_QUESTION:
            reasons.append(ECHO)
        else:
            return None
    return next((reason for reason in (REFUSAL, DOUBT) if reason in reasons), ECHO if said else EMPTY)


_SHORT_QUESTION = 3
"""Words of "CT?", which is a doubtful answer and still one."""


def without_request(sentence: str) -> str:
    """A sentence in front of what it asks for.

    Example:
        >>> without_request("I think it is a cyst, but please consult a radiologist")
        'I think it is a cyst'
    """
    return _REQUEST.sub("", sentence)
