"""The rules that are the same whatever a reply chooses among: where an answer is stated, and what to make of several.

In this order, and the first that finds something decides:

1. the answer field of a JSON object;
2. what is stated as the answer (`Final answer: X`, boxed, tagged, "the answer is X", "I choose X", "so, X"), what
   stands on a line by itself, and how the reply begins. If they differ, one that is called final counts, else one that
   takes back what stood before it ("wait", "on second thought"); otherwise the reply contradicts itself;
3. a refusal or a doubt: unreadable, and the next rules are not asked;
4. a sentence about what was asked;
5. the only answer that is mentioned.

Of a reply that was cut off only 1 and 2 count, and only where it goes on behind the answer: "the answer is no" may have
been about to become "nothing".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from hedge_tasks.replies.json_objects import Twice, objects_in, whole_object
from hedge_tasks.replies.reading import (
    CONTRADICTION,
    CUT,
    DOUBT,
    JSON,
    LEADING,
    LINE,
    MENTION,
    NOT_OFFERED,
    NOTHING,
    REFUSAL,
    STATED,
    STATEMENT,
    Reading,
    unreadable,
)
from hedge_tasks.replies.refusal import declines, doubts
from hedge_tasks.replies.text import body, plain

SEVERAL = "\0several"
"""Found in place of a value: several answers at once, such as "A or B"."""

OUTSIDE = "\0outside"
"""Found in place of a value: an answer of the right form that was not offered, such as "(E)" of four options."""


class Found(NamedTuple):
    """An answer at the beginning of a text: what it says and where it ends."""

    value: str
    end: int


class Choices(Protocol):
    """What a reply may choose among."""

    def at(self, text: str) -> Found | None:
        """The answer that a text begins with."""

    def of_json(self, value: object) -> str | None:
        """The text of a JSON value that is no text."""

    def stated(self, text: str) -> set[str]:
        """The answers that sentences of the text amount to."""

    def contradicts(self, text: str, value: str) -> bool:
        """Whether a sentence that begins with an answer goes on to say another one: "No, there is a dog"."""

    def mentioned(self, text: str) -> set[str]:
        """The answers that are mentioned anywhere and not denied."""

    def when_unsure(self, text: str) -> str | None:
        """The answer that doubt amounts to, where one is offered for that."""


FIELDS = frozenset(
    [
        "answer",
        "final_answer",
        "finalanswer",
        "verdict",
        "label",
        "choice",
        "option",
        "prediction",
        "result",
        "response",
        "judgment",
        "judgement",
        "output",
        "decision",
        "classification",
        "category",
        "score",
        "rating",
    ]
)
"""Names that JSON fields with an answer have, in lower case."""

_NOUN = (
    r"(?:answers?|verdict|judge?ment|label|output|choice|option|conclusion|decision|score|rating|prediction|classification"
    r"|result|response|category|assessment|evaluation|correction|match)"
)
_IS = r"""["']?\s*(?:(?:is|was|would\ be|should\ be|must\ be|will\ be|are)\b(?:\s*:)?|[:=]|-+>|-(?=\s))"""
_FINAL = re.compile(
    rf"\b(?:final|ultimate) {_NOUN}\b(?:\ to\ [^.\n]{{1,120}}?)?\s*{_IS}|^\s*####|\bcorrection\s*:"
    r"|最终答案(?:是|为)?\s*:?",
    re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    rf"""\b{_NOUN}\b(?:\ (?:here|to\ [^.\n]{{1,120}}?))?\s*{_IS}
    | \bI(?:'d|'ll|'m)?(?:\ (?:would|will|must|have\ to|can|do|therefore|also|am))?\ (?:choose|pick|select
      |go(?:ing)?\ with|say|answer|vote\ for|opt\ for|settle\ on|guess|suggest|bet\ on|lean\ (?:towards?|to)|assign)\b
      (?:\ an?\b(?=\ (?:[0-9]|yes|no)\b))?\s*:?
    | \b(?:be|is|are|was)\ (?:classified|labell?ed|rated|marked|scored|graded|categori[sz]ed)\ (?:as|with)\b\s*:?
    | \b(?:label|rate|classify|mark|score|judge|grade)\ (?:this|it|that|the\ \w+)(?:\ \w+)?\ (?:as|with)\b\s*:?
    | \bI\ (?:think|believe|guess|suppose)(?:\ that)?(?:\ it(?:'s|\ is))?\s
    | \b(?:so|therefore|thus|hence|in\ conclusion|overall|in\ summary|in\ short|to\ conclude)\b[,:]?\s
    | \b(?:réponse|respuesta|antwort|resposta|risposta|ответ)\b\s*(?:[:=]|est|es|ist|é|è|-)
    | (?:答案|回答|判断|答え)\s*(?:应该)?(?:是|为)?\s*:?
    """,
    re.IGNORECASE | re.VERBOSE,
)
# "If the answer is factual" and "the wrong answer is A" state nothing.
_OPEN = re.compile(
    r"\b(?:if|whether|when|unless|wrong|incorrect|worst|why|what|not (?:the case|true|correct) that|unlikely|doubt"
    r"|(?:not|\w+n't|cannot|never) (?:think|believe|say|see|find|claim)|no (?:evidence|indication|sign|reason))\b"
    r"[^.!?,;:\n]*\Z",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:sure(?: thing)?|of course|certainly|absolutely|great question|good question|thank you[^.!\n]{0,60}"
    r"|thanks[^.!\n]{0,60}|(?:i am |i'm )?happy to help|okay|ok|well|alright|hello|hi|actually|hmm|oh|unfortunately"
    r"|based on [^,.\n]{1,60}|(?:i am |i'm )?(?:sorry|afraid)|i apologi[sz]e|[^.!?\n]{0,60}\b(?:sure|certain)"
    r"(?: about [^.!?,\n]{1,40})?)\b[.!,:]+\s*(?:but\s+)?|[^.!?\n]{1,120}\?[\"']?\s+",
    re.IGNORECASE,
)
_SKIPPED = re.compile(
    r"""(?:[\s"'(\[:=,]+|->
    |(?:definitely|clearly|most\ likely|very\ likely|likely|probably|presumably|simply|certainly|indeed|therefore|thus
    |it\ is|it's|(?:it|that|this)\ would\ be|that\ is|that's|that|as|option|choice|final\ answer|answer|verdict|label
    |with)\b[\s:]*
    |(?:the|this)\ (?:\w+\ )?(?:statement|answer|response|claim|text)\ (?:is|seems|appears)(?:\ to\ be)?\b
    ){0,6}""",
    re.IGNORECASE | re.VERBOSE,
)
_CORRECTED = re.compile(
    r"\b(?:wait|actually|correction|on second thoughts?|on reflection|(?:looking|thinking) (?:again|closer)"
    r"|scratch that|let me (?:re|correct|look again)\w*|i was wrong|i made a mistake|my mistake|at first"
    r"|initially|first thought)\b",
    re.IGNORECASE,
)
# What takes an answer back at once: "supported? No", "B is wrong", "1: false".
_DENIED = re.compile(
    r"""[\s"'`)\].]*(?:
    (?:[:=?]|-+>)[\s"'(]*(?:false|no|not|none|never|n/a|wrong|incorrect)\b
    |\s(?:is|are|was|would\ be|seems|looks)\ (?:\w+ly\ )?(?:not|n't|wrong|incorrect|false|out
    |possible|plausible|close|tempting|similar)\b|(?:isn't|aren't)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
_OR = re.compile(
    r"""["')\].]*\s*(?:/|\||,|&|-|\bor\b|\band\b|\bvs\.?)\s*(?:(?:and|or|maybe|perhaps|possibly|even)\b\s*)*["'(\[]*""",
    re.IGNORECASE,
)
_REST = re.compile(r"[\s\"')\].!?,;:]*\Z")
_ITEM = re.compile(r"[(\[]?([0-9]{1,2}|[A-Za-z])[.):]\s+\S")

_LAST_SENTENCE = re.compile(r"[.!?]\s+(?=[^.!?\n]{1,60}[.!?]?\s*\Z)")

_NUMBERED = re.compile(r"[0-9][.)]\s")
_FIRST_ITEM = re.compile(r"[(\[]?1[.):]\s+(?:first|step|check|the question|misinterpretation)\b", re.IGNORECASE)

_SHORT_LINE = 200


@dataclass(frozen=True, slots=True)
class _Candidate:
    value: str
    start: int
    end: int
    basis: str
    final: bool = False


def choose(reply: str, choices: Choices, *, cut: bool = False) -> Reading:
    """What a reply chooses; see the top of this module for the rules.

    Args:
        reply: all that the model wrote.
        choices: what it may choose among.
        cut: whether the reply ended because it had become too long.
    """
    found = body(reply)
    if isinstance(found, Reading):
        return found
    structured, rest = _of_json(found, choices)
    text = plain(rest)
    candidates = list(_candidates(text, choices))
    if cut:
        candidates = [c for c in candidates if not _REST.match(text, c.end) and not _NUMBERED.match(text, c.start)]
    if structured is not None:
        return _agreeing(structured, candidates)
    if candidates:
        settled = _settle(candidates, text)
        if settled.basis == LEADING and declines(_opening(text)):
            return unreadable(REFUSAL)
        if settled.basis == LEADING and settled.value and choices.contradicts(_first_sentence(text), settled.value):
            return unreadable(CONTRADICTION)
        return settled
    if declines(text):
        return unreadable(REFUSAL)
    return unreadable(CUT) if cut else _from_sentences(text, choices)


def _from_sentences(text: str, choices: Choices) -> Reading:
    for basis, values in ((STATEMENT, choices.stated(text)), (MENTION, set())):
        if len(values) > 1:
            return unreadable(CONTRADICTION)
        if values:
            return Reading(values.pop(), basis)
    if doubts(text):
        unsure = choices.when_unsure(text)
        return unreadable(DOUBT) if unsure is None else Reading(unsure, STATEMENT)
    values = choices.mentioned(text)
    if len(values) > 1:
        return unreadable(CONTRADICTION)
    return Reading(values.pop(), MENTION) if values else unreadable(NOTHING)


def _opening(text: str) -> str:
    return text[:300]


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\w\w)[.!?](?=\s)|\n|\bbut\b", text, maxsplit=1)[0]


def _of_json(text: str, choices: Choices) -> tuple[Reading | None, str]:
    """What the JSON of a reply says, if it has an answer field, and the text without that JSON."""
    whole = whole_object(text)
    objects, rest = ([(text, whole)], "") if whole is not None else objects_in(text)
    readings = []
    for _, found in objects:
        values = [value for key, value in found.items() if key.strip().casefold() in FIELDS]
        if values:
            twice = isinstance(found, Twice) or len(values) > 1
            readings += [unreadable(CONTRADICTION)] if twice else [_of_value(values[0], choices)]
    if not readings:
        return None, text
    return (readings[0] if len(set(readings)) == 1 else unreadable(CONTRADICTION)), rest


def _of_value(value: object, choices: Choices) -> Reading:
    text = value if isinstance(value, str) else choices.of_json(value)
    if text is None:
        return unreadable(NOTHING)
    inner = choose(text, choices)
    return Reading(inner.value, JSON) if inner.readable else inner


def _agreeing(structured: Reading, candidates: list[_Candidate]) -> Reading:
    said = {c.value for c in candidates if c.basis != LEADING}
    return unreadable(CONTRADICTION) if structured.readable and said - {structured.value} else structured


def _candidates(text: str, choices: Choices) -> Iterator[_Candidate]:
    head = _head(text, choices)
    if head is not None:
        yield head
    for pattern, final in ((_FINAL, True), (_STATED, False)):
        for slot in pattern.finditer(text):
            if _OPEN.search(text, max(0, slot.start() - 60), slot.start()):
                continue
            found = _after(text, slot.end(), choices)
            if found is not None and (head is None or found.start >= head.end):
                yield _Candidate(found.value, found.start, found.end, STATED, final)
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) <= _SHORT_LINE and start:
            found = _after(text, start, choices)
            if found is not None and found.end <= start + len(line) and _REST.match(line, found.end - start):
                yield _Candidate(found.value, found.start, found.end, LINE)
        start += len(line)
    if last := _LAST_SENTENCE.search(text):
        found = _after(text, last.end(), choices)
        if found is not None and _REST.match(text, found.end):
            yield _Candidate(found.value, found.start, found.end, LINE)


def _head(text: str, choices: Choices) -> _Candidate | None:
    at = 0
    for _ in range(3):
        found = _after(text, at, choices)
        if found is not None:
            if _FINAL.search(text, at, found.start) or _STATED.search(text, at, found.start):
                return None  # it is stated, and found there
            whole = _REST.match(text, found.end)
            return _Candidate(found.value, found.start, found.end, LINE if whole else LEADING)
        lead = _LEAD_IN.match(text, at)
        if lead is None:
            return None
        at = lead.end()
    return None


def _after(text: str, at: int, choices: Choices) -> _Candidate | None:
    """The answer that stands at a place, behind words such as "definitely" and "option"."""
    # The words may be part of the answer: "certainly not", "option".
    skipped = _SKIPPED.match(text, at)
    places = dict.fromkeys((at, at + len(_leading_blanks(text, at)), skipped.end() if skipped else at))
    for start in places:
        found = choices.at(text[start : start + 400])
        if found is None:
            continue
        end = start + found.end
        if _is_item(text, start):
            return None
        value = None if _DENIED.match(text, end) else _or_several(text, end, found.value, choices)
        return None if value is None else _Candidate(value, start, end, STATED)
    return None


def _is_item(text: str, start: int) -> bool:
    """Whether a list begins here, so that its number or letter is no answer: the next item stands on a line below."""
    if _FIRST_ITEM.match(text, start):
        return True
    item = _ITEM.match(text, start)
    if item is None:
        return False
    following = str(int(item[1]) + 1) if item[1].isdecimal() else chr(ord(item[1]) + 1)
    return re.search(rf"(?m)^\W{{0,3}}{re.escape(following)}[.):]\s", text[item.end() :]) is not None


_BLANKS = re.compile(r"""[\s"'(\[:=,#-]*(?:->)?[\s"'(\[]*""")


def _leading_blanks(text: str, at: int) -> str:
    found = _BLANKS.match(text, at)
    return found[0] if found else ""


def _or_several(text: str, end: int, value: str, choices: Choices) -> str | None:
    """The value, or `SEVERAL` where another one follows: "0 or 1", "A, B", "0 (hallucinated)".

    None where it is denied together with the other one: "A and C are wrong".
    """
    joined = _OR.match(text, end) or re.compile(r"""["')\]]*\s*\(\s*""").match(text, end)
    if joined is None or joined.end() == end:
        return value
    other = choices.at(text[joined.end() : joined.end() + 400])
    if other is None or other.value == value:
        return value
    if _DENIED.match(text, joined.end() + other.end):
        return None if re.search(r"and|or|&", joined[0], re.IGNORECASE) else value
    return SEVERAL


def _settle(candidates: list[_Candidate], text: str) -> Reading:
    ordered = sorted(candidates, key=lambda c: (c.start, not c.final))
    finals = [c for c in ordered if c.final]
    if finals:
        after = [c for c in ordered if not c.final and c.start >= finals[-1].end and c.basis != LINE]
        ordered = [*finals, *after]
    ordered = ordered[_last_correction(ordered, text) :]
    values = {c.value for c in ordered}
    if len(values) > 1 or SEVERAL in values:
        return unreadable(CONTRADICTION)
    [value] = values
    if value == OUTSIDE:
        return unreadable(NOT_OFFERED)
    bases = {c.basis for c in ordered}
    return Reading(value, next(basis for basis in (STATED, LINE, LEADING) if basis in bases))


def _last_correction(ordered: list[_Candidate], text: str) -> int:
    """Position of the last candidate in front of which another one is taken back; 0 where none is."""
    for i in range(len(ordered) - 1, 0, -1):
        if _CORRECTED.search(text, ordered[i - 1].end, ordered[i].end):
            return i
    return 0


def spoken_number(value: object) -> str | None:
    """An integer of JSON as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return str(int(value)) if float(value).is_integer() else None


def unique(values: Mapping[str, Any]) -> set[str]:
    """Keys of what is true."""
    return {key for key, value in values.items() if value}
