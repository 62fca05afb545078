"""Answers that are none: refusals, doubts, requests, copyright lines, nothing. Read here, for every task and judge."""

from __future__ import annotations

import re

from hedge_tasks.replies.reading import DOUBT, ECHO, EMPTY, NOTICE, REFUSAL, Reading
from hedge_tasks.replies.refusal import declines, undecided
from hedge_tasks.replies.text import body, plain, spelled_out

# Output that is about nothing: from the mark of a copyright line to the end of the line.
_NOTICE = re.compile(
    r"(?:\u00a9|\(c\) ?\d{4}|^\W*copyright\b|\bcopyright\W*(?:\(c\)|\d{4}|by\b)).*$|^.*\ball rights reserved\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_PIECE = re.compile(r"(?<=[^\s.])[.!](?=\s|\Z)|(?<=\?)|[;\n]+|,?\s+\b(?:but|however|although)\b,?")
# Words in front of what is said; where nothing comes behind them, nothing is said.
_OPENING = re.compile(
    r"""\A[\W_]*(?:(?:and|so|also|therefore|then)\ )?(?:
      (?:i\ am\ |we\ are\ )?(?:so\ |very\ )?sorry(?:\ (?:to|for|about|that|if)\b[^,:;]*)?
      |i\ apologi[sz]e(?:\ for\b[^,:;]*)?|(?:thank\ you|thanks?)(?:\ (?:for|so|very)\b[^,:;]*)?
      |hello|hi|unfortunately|kindly|i\ hope\ (?:this|that|it)\ helps?
      |as\ an?\ (?:\w+\ ){0,4}?(?:ai|model|assistant)(?:\ (?:language\ )?model|\ assistant)?
    )\b[\s,:;.!-]*""",
    re.VERBOSE,
)
_HELP = (
    r"(?:doctor|physician|radiologist|specialist|professional|provider|expert|clinician|consult|advice|opinion|care)"
)
# What somebody says who says nothing about what was asked.
_COURTESY = re.compile(
    rf"""\A[\W_]*(?:(?:and|so|also|therefore|then)\ )?(?:
      (?:(?:can|could|would)\ you\ )?please\b|(?:i\ am|we\ are)\ (?:here|just|only|happy)\b
      |feel\ free|let\ me\ know|i\ hope
      |if\ you\ (?:have|need|want|would|could|can|provide|are|experience|share|upload)\b
      |(?:i\ |you\ |we\ )?(?:would\ |strongly\ |highly\ |should\ |may\ |might\ |always\ )*
        (?:recommend|advise|suggest|consult|seek)\b.*\b{_HELP}
      |it\ is\ (?:important|recommended|advisable|best)\ to\b|(?:a|an)\ .{{0,40}}\bshould\ be\ consulted
    )""",
    re.VERBOSE,
)
_REQUEST = re.compile(r"[,;]?\s*(?:\b(?:but|and|so)\s+)?\bplease\b.*", re.IGNORECASE)


def unanswered(answer: str) -> str | None:
    """Why an answer says nothing that could be right or wrong; None where it says something.

    What stands beside "please consult a radiologist" or "I cannot give a diagnosis, but" still counts.

    Returns:
        One of `reading.UNANSWERED`.

    Example:
        >>> unanswered("I'm sorry, I can't help with that."), unanswered("A cyst, but please ask a doctor.")
        ('refusal', None)
        >>> unanswered("© 2016 The Authors"), unanswered("?!"), unanswered("Which organ do you mean?")
        ('copyright line', 'empty', 'echo')
    """
    text = body(answer)
    if isinstance(text, Reading):
        return text.basis
    whole = plain(text)
    without_notice = _NOTICE.sub("", whole)
    if without_notice != whole and not any(character.isalnum() for character in without_notice):
        return NOTICE
    reasons = []
    for piece in _PIECE.split(without_notice):
        spelled = " ".join(spelled_out(piece).split())
        words = _OPENING.sub("", spelled)
        if not any(character.isalnum() for character in words):
            reasons.append(ECHO)
            continue
        piece = without_request(piece if words == spelled else words)
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
    return next((reason for reason in (REFUSAL, DOUBT) if reason in reasons), ECHO if without_notice else EMPTY)


_NO_OPTION = re.compile(
    r"\W*(?:(?:none|neither) of (?:the|these|those|them)\b.*|not (?:sure|applicable)|n/a|skip|pass|no answer)\W*",
    re.IGNORECASE,
)


def declining_option(text: str) -> str | None:
    """Why to take an option is to decline; None where it says something.

    Example:
        >>> declining_option("None of the above"), declining_option("I don't know"), declining_option("A cyst")
        ('refusal', 'doubt', None)
    """
    if _NO_OPTION.fullmatch(text):
        return REFUSAL
    why = unanswered(text)
    return why if why in (REFUSAL, DOUBT) else None


_SHORT_QUESTION = 3
"""Words of "CT?", which is a doubtful answer and still one."""


def without_request(sentence: str) -> str:
    """A sentence in front of what it asks for.

    Example:
        >>> without_request("I think it is a cyst, but please consult a radiologist")
        'I think it is a cyst'
    """
    return _REQUEST.sub("", sentence)
