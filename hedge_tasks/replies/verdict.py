"""Verdicts of one digit (0 factual, 1 hallucinated, 2 not sure), as a digit or in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hedge_tasks.replies.choice import OUTSIDE, Found, choose, spoken_number
from hedge_tasks.replies.reading import Reading
from hedge_tasks.replies.refusal import leaves_open
from hedge_tasks.replies.text import spelled_out

FACTUAL, HALLUCINATED, NOT_SURE = "0", "1", "2"

_GOOD = r"(?:factual(?:ly)?(?: (?:correct|accurate))?|accurate|correct|true|supported|valid|faithful|truthful|reliable)"
_BAD = (
    r"(?:hallucinat(?:ed|ion|ions|ory|es|ing)|non-?\s?factual|unfactual|inaccurate|incorrect|false|untrue|wrong|fabricated"
    r"|made[ -]up|unsupported|misleading|invented)"
)
_NOT = r"(?:not|no|non|free of|without|never)[ -]+(?:(?:entirely|fully|completely|any|a|an|be|seem)\s+){0,2}"
_END = r"(?=\s*(?:[.,;:!?()\]\"'\n/&|-]|\Z|(?:because|since|as|and|for|or|but|with|due|in|to)\b))"
_DIGIT_END = (
    r"(?![.,]\d)(?!\s*(?:-|/|to|out of)\s*\d)(?=\s*(?:[.,;:!?()\]\"'\n/&|-]|\(|\Z|(?:because|since|as|and|for|or)\b))"
)
_DIGIT = re.compile(rf"([0-9])(?:\.0)?\b{_DIGIT_END}")
_FLAG = re.compile(
    r"hallucinat(?:ed|ions?)(?: detected| found| present)?\s*[:=?]\s*(?:(yes|true)|no|none|false)\b", re.IGNORECASE
)
_WORDS = re.compile(
    rf"(?P<not>{_NOT})?(?:(?P<good>factual|accurate|true|correct|factually (?:correct|accurate))"
    rf"|(?P<bad>{_BAD})){_END}",
    re.IGNORECASE,
)
_UNSURE = re.compile(rf"(?:not[ -]sure|unsure|uncertain|pass|skip|undecided|i pass){_END}", re.IGNORECASE)

_CLAIM = re.compile(
    rf"""\b(?:answer|it|this|that|response|statement|claim|information|everything|text)\b
    (?:\ \w+){{0,2}}?\ (?:is|are|was|seems|appears|looks|contains|includes|has|does|do|there\ is)\b
    (?P<between>(?:\ [a-z-]+){{0,6}}?)\ (?:(?P<bad>{_BAD})|(?P<good>{_GOOD}))\b
    | \bthere\ (?:is|are)\ (?P<some>(?:[a-z]+\ ){{0,3}}?)hallucinations?\b
    | \bmak(?:es|ing)\ (?:it|this|that|the\ answer)\ (?P<made>hallucinated|nonfactual)\b
    | \A(?:no|without|zero)\ (?P<none>hallucinations?)\b
    | \A(?P<found>hallucinations?)\ (?:is\ |are\ |was\ |were\ )?(?:detected|found|present)\b""",
    re.VERBOSE,
)
_DENIES = re.compile(r"\b(?:not|no|never|free|without|neither|lacks?|unlikely)\b")
_NOT_THAT = re.compile(
    r"\b(?:not (?:think|believe|say|see|find|claim)|unlikely|doubt|no (?:evidence|indication|sign|reason))\b[^,;:]*\Z"
)
_PARTLY = re.compile(r"\b(?:partly|partially|mostly|somewhat|in part|some of|largely)\b")
_CLAUSE = re.compile(r"[.!?;]+(?=\s|\Z)|\n|\b(?:but|however|although|whereas)\b")


@dataclass(frozen=True)
class Verdicts:
    """The digits that a prompt offers; see `choice.Choices`."""

    offered: str = "012"

    def at(self, text: str) -> Found | None:
        if found := _DIGIT.match(text):
            return Found(found[1] if found[1] in self.offered else OUTSIDE, found.end())
        if found := _FLAG.match(text):
            return Found(HALLUCINATED if found[1] else FACTUAL, found.end())
        if found := _UNSURE.match(text):
            return Found(NOT_SURE if NOT_SURE in self.offered else OUTSIDE, found.end())
        if found := _WORDS.match(text):
            wrong = (found["bad"] is not None) != (found["not"] is not None)
            return Found(HALLUCINATED if wrong else FACTUAL, found.end())
        return None

    def of_json(self, value: object) -> str | None:
        return spoken_number(value)

    def stated(self, text: str) -> set[str]:
        said: set[str] = set()
        for clause in _CLAUSE.split(spelled_out(text)):
            clause = " ".join(clause.split())
            if leaves_open(clause):
                continue
            for found in _CLAIM.finditer(clause):
                said |= {FACTUAL, HALLUCINATED} if _PARTLY.search(clause) else {_claimed(found)}
        return said

    def contradicts(self, text: str, value: str) -> bool:
        return bool(self.stated(text) - {value})

    def mentioned(self, text: str) -> set[str]:
        return set()

    def when_unsure(self, text: str) -> str | None:
        return NOT_SURE if NOT_SURE in self.offered else None


def _claimed(found: re.Match[str]) -> str:
    if found["none"] is not None:
        return FACTUAL
    between = found["some"] if found["some"] is not None else found["between"]
    if found["made"] is not None or found["found"] is not None:
        return HALLUCINATED
    denied = bool(_DENIES.search(between or "")) != bool(_NOT_THAT.search(found.string, 0, found.start()))
    wrong = found["some"] is not None or found["bad"] is not None
    return HALLUCINATED if wrong != denied else FACTUAL


def read_verdict(reply: str, *, offered: str = "012", cut: bool = False) -> Reading:
    """The digit of a reply, or why none can be read.

    Args:
        reply: all that the model wrote.
        offered: the digits that the prompt offers. Doubt is a 2 where that is offered, and else no verdict.
        cut: whether the reply ended because it had become too long.

    Example:
        >>> print(read_verdict("1. The answer is hallucinated because ..."), read_verdict("<think>1"))
        1 (stated) unreadable: unfinished thought
    """
    return choose(reply, Verdicts(offered), cut=cut)
