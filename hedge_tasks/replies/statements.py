"""The answer that a reply states, whatever it chooses among.

In this order, and the first that finds something decides:

1. the answer field of a JSON object, a ticked box, a share;
2. explicit statements: how the reply begins, what stands behind words such as "the answer is" (`words.json`: noun,
   copula, statement), and what stands on a line by itself. Where they differ, one that is called final counts, else the
   reply contradicts itself;
3. a refusal or a doubt: unreadable;
4. what its clauses say of what was asked.

Items of an enumeration are no statements. Where words take back what stands before them, only what stands behind is
read. A reading is firm where there is one explicit statement and nothing against it; of a reply that was cut off only
explicit statements count, and only where it goes on behind them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from hedge_tasks.io.json_objects import Twice, objects_in, whole_object
from hedge_tasks.replies.clauses import AFFIRMED, DENIED, OPEN, Clause, clauses, polarity
from hedge_tasks.replies.declining import declines, doubts
from hedge_tasks.replies.forms import likeliest, shares, ticked
from hedge_tasks.replies.reading import (
    CONTRADICTION,
    CUT,
    DOUBT,
    FORM,
    JSON,
    LEADING,
    LINE,
    NOT_OFFERED,
    NOTHING,
    OPENING,
    REFUSAL,
    SAID_BACK,
    STATED,
    STATEMENT,
    Reading,
    unreadable,
)
from hedge_tasks.replies.text import body, plain
from hedge_tasks.replies.wording import cues, pattern_of, phrases

SEVERAL = "\0several"
"""In place of a value: several answers at once, such as "A or B"."""

OUTSIDE = "\0outside"
"""In place of a value: an answer of the right form that was not offered, such as "(E)" of four options."""

_AHEAD = 400
_DEEPEST = 4
_CLAUSE_END = re.compile(r"[.!?;,\n]|\s-\s|\(|\b(?:but|because|since|as|while)\b", re.IGNORECASE)
_LINE_END = re.compile(r"[.!?;\n]")
_REST = re.compile(r"[\s\"')\].!?,;:✓*]*\Z")
_BLANKS = re.compile(r"[\s\"'(\[:=,#✓>-]*")
_JOIN = re.compile(
    r"(?i)[\"')\].]*\s*(?:/|\||,|&|-|\(|\b(?:or|and|vs)\b|(?<=\s))\s*(?:(?:and|or|maybe|perhaps|even)\s+)*[\"'(\[]*"
)
_ITEM = re.compile(
    r"(?:(?m:^)[ \t>-]*|(?<=[\s,;:]))[(\[]?(?P<mark>[0-9]{1,2}|[A-Za-z])(?:[.):\]]|\s*=|\s*->|\s-)\s*(?=[\w\"'(])"
)
_SHARED = re.compile(r"\A(\w{1,20})(?:[\s,]{1,2}\1\b){2,}\W{0,3}\Z", re.IGNORECASE)
_QUESTION_FIRST = re.compile(r"[^.!?\n]{1,200}\?[\"']?\s+")
_BASED = re.compile(r"(?:based on|looking at|from|in|after|given|according to) [^,.\n]{1,80},\s*", re.IGNORECASE)


class AnswerMatch(NamedTuple):
    """An answer at the beginning of a text: what it says and where it ends."""

    value: str
    end: int


class Answers(ABC):
    """The answers among which a reply may choose."""

    @abstractmethod
    def at(self, text: str) -> AnswerMatch | None:
        """The answer that a text begins with."""

    @abstractmethod
    def said(self, every: list[Clause]) -> list[tuple[str, bool]]:
        """The answers that clauses amount to, each with whether its clause says that and nothing besides."""

    def of_json(self, value: object) -> str | None:
        """The text of a JSON value that is no text."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            return None
        return str(int(value)) if float(value).is_integer() else None

    def in_object(self, some: Mapping[str, Any]) -> set[str]:
        """The answers in an object without a field for an answer: `{"bicycle": false}`, `{"B": true}`."""
        return set()

    def marks(self) -> frozenset[str]:
        """Digits and letters that are answers, and marks of items where several of them follow each other."""
        return frozenset()

    def doubtful(self, value: str, every: list[Clause]) -> bool:
        """Whether clauses put an explicit answer in doubt without saying another one."""
        return False

    def when_unsure(self, text: str) -> str | None:
        """The answer that doubt amounts to, where one is offered for that."""
        return None


@dataclass(frozen=True, slots=True)
class _Stated:
    value: str
    start: int
    end: int
    basis: str
    final: bool = False


def choose(reply: str, answers: Answers, *, cut: bool = False) -> Reading:
    """Read which answer a reply chooses; see the top of this module for the rules.

    Args:
        reply: all that the model wrote.
        answers: what it may choose among.
        cut: whether the reply ended because it had become too long.
    """
    # Before thoughts are looked for: an object may quote their mark.
    spoken = reply.strip() if whole_object(reply.strip()) is not None else body(reply, cut=cut)
    if isinstance(spoken, Reading):
        return spoken
    structured, remainder = _structured(spoken, answers)
    text = _SHARED.sub(r"\1", plain(remainder))
    if structured is None:
        return _of_form(text, answers) or _of_text(text, answers, cut)
    against = {stated.value for stated in _explicit(text, answers)} - {structured.value}
    if structured.readable and (against or cues("take_back").search(text)):
        return unreadable(CONTRADICTION)
    return structured


# --- forms ------------------------------------------------------------------------------------------------------------


def _structured(text: str, answers: Answers) -> tuple[Reading | None, str]:
    """Read the JSON of a reply, if it has an answer, and return it with the text without that JSON."""
    whole = whole_object(text)
    objects, remainder = ([(text, whole)], "") if whole is not None else objects_in(text)
    readings = {reading for _, some in objects if (reading := _of_object(some, answers)) is not None}
    if not readings:
        # Of an object without an answer only its texts may say something; its keys and flags are no sentences.
        return None, text if whole is None else "\n".join(v for v in whole.values() if isinstance(v, str))
    return (readings.pop() if len(readings) == 1 else unreadable(CONTRADICTION)), remainder


def _of_object(some: Mapping[str, Any], answers: Answers, depth: int = 0) -> Reading | None:
    """Answer fields of an object, be it in an object within it; None where it has none."""
    numbers = {key: value for key, value in some.items() if type(value) in (int, float)}
    if len(numbers) == len(some) and (by_share := _of_shares(numbers, answers, JSON)) is not None:
        return by_share
    readings = _of_fields(some, answers, depth)
    if readings and isinstance(some, Twice):
        return unreadable(CONTRADICTION)
    if not readings and depth < _DEEPEST:
        inner = (_of_object(value, answers, depth + 1) for value in some.values() if isinstance(value, dict))
        readings = {reading for reading in inner if reading is not None}
    if not readings:
        return None
    return readings.pop() if len(readings) == 1 else unreadable(CONTRADICTION)


def _of_fields(some: Mapping[str, Any], answers: Answers, depth: int) -> set[Reading]:
    """Answer fields of an object itself, or what its names and flags say."""
    values = [value for key, value in some.items() if is_answer_field(key)]
    if not values:
        return {Reading(value, JSON) for value in answers.in_object(some)}
    values = [value for value in values if type(value) is not float] or values  # "score": 0.77 is how sure it is
    return {_of_value(value, answers, depth) for value in values}


def _of_value(value: object, answers: Answers, depth: int) -> Reading:
    if isinstance(value, dict) and depth < _DEEPEST:
        return _of_object(value, answers, depth + 1) or unreadable(NOTHING)
    if isinstance(value, list) and len(value) == 1:
        [value] = value
    text = value if isinstance(value, str) else answers.of_json(value)
    inner = unreadable(NOTHING) if text is None else choose(text, answers)
    return Reading(inner.value, JSON) if inner.readable else inner


def is_answer_field(key: str) -> bool:
    """Whether a JSON field of this name holds an answer.

    Example:
        >>> is_answer_field("Final Answer"), is_answer_field("reason")
        (True, False)
    """
    return re.sub(r"[\s_-]+", "_", key.strip().casefold()) in phrases("field")


def _of_form(text: str, answers: Answers) -> Reading | None:
    """Read boxes and shares; None of any other text."""
    by_share = _of_shares(shares(text), answers, FORM)
    if by_share is not None:
        return by_share
    values = ticked(text, lambda name: _whole(name, answers))
    if len(values) > 1:
        return unreadable(CONTRADICTION)
    return Reading(values.pop(), FORM) if values else None


def _of_shares(numbers: Mapping[str, float], answers: Answers, basis: str) -> Reading | None:
    of_all, value = likeliest(numbers, lambda name: _whole(name, answers))
    if not of_all:
        return None
    return unreadable(CONTRADICTION) if value is None else Reading(value, basis)


def _whole(name: str, answers: Answers) -> str | None:
    """The answer that a text is, and nothing besides."""
    answer = answers.at(name.strip())
    is_whole = answer is not None and answer.value not in (SEVERAL, OUTSIDE) and _REST.match(name.strip(), answer.end)
    return answer.value if answer is not None and is_whole else None


# --- texts ------------------------------------------------------------------------------------------------------------


def _of_text(text: str, answers: Answers, cut: bool) -> Reading:
    text = _without_items(text, answers)
    stated = list(_explicit(text, answers))
    if stated and (behind := _taken_back(text, stated)) is not None:
        read = _of_text(text[behind:], answers, cut)
        if read.value is None:
            return read if read.basis in (REFUSAL, DOUBT, CUT) else unreadable(CONTRADICTION)
        return Reading(read.value, read.basis if read.basis == STATED else LEADING)
    if cut:
        stated = [
            statement
            for statement in stated
            if not _REST.match(text, statement.end) and not _may_list(statement, text, answers)
        ]
        if not stated:
            return unreadable(REFUSAL if declines(text) else CUT)
    if stated:
        return _settled(stated, text, answers)
    if declines(text):
        return unreadable(REFUSAL)
    return _of_clauses(text, answers)


def _may_list(statement: _Stated, text: str, answers: Answers) -> bool:
    """Whether a reply that was cut off may have begun to go through what is offered: "A. The car ..."."""
    start = statement.start - (text[statement.start - 1 : statement.start] in ("(", "["))
    item = _ITEM.match(text, start)
    return statement.basis == OPENING and item is not None and item["mark"].upper() == min(answers.marks(), default="")


def _settled(stated: list[_Stated], text: str, answers: Answers) -> Reading:
    """The answer of explicit statements, firm where nothing else in the reply is against it."""
    deciding = _deciding(stated)
    values = {statement.value for statement in deciding}
    if len(values) > 1 or SEVERAL in values:
        return unreadable(CONTRADICTION)
    [value] = values
    if value == OUTSIDE:
        return unreadable(NOT_OFFERED)
    return _weighed(value, deciding, text, answers)


def _weighed(value: str, deciding: list[_Stated], text: str, answers: Answers) -> Reading:
    """The reading of statements of one answer, beside the rest of the reply."""
    basis = next(b for b in (STATED, LINE, OPENING) if b in {statement.basis for statement in deciding})
    if basis != STATED and declines(text[: deciding[0].end + 200]):
        return unreadable(REFUSAL)
    every = clauses(text)
    said = {value for value, _ in answers.said(every)}
    unsaid = basis == OPENING and value not in said
    if said - {value} and not deciding[0].final:
        return unreadable(CONTRADICTION) if unsaid else Reading(value, LEADING)
    remainder = text[min(statement.end for statement in deciding) :]
    limited = cues("condition").match(remainder.lstrip(" ,\"')-")) is not None
    weak = limited or (unsaid and _doubtful(remainder)) or answers.doubtful(value, every)
    return Reading(value, LEADING if weak else basis)


def _deciding(stated: list[_Stated]) -> list[_Stated]:
    """The statements that count: the last final one with what follows it, and of several at once the explicit ones."""
    finals = [statement for statement in stated if statement.final]
    if finals:
        return [finals[-1], *(statement for statement in stated if statement.start > finals[-1].end)]
    explicit = [statement for statement in stated if statement.basis == STATED and statement.value != SEVERAL]
    return explicit if explicit and stated[0].value == SEVERAL else stated


def _doubtful(remainder: str) -> bool:
    """Whether what follows an answer, in the same clause or near it, takes some of it back."""
    near = " ".join(remainder.split()[:30])
    in_doubt = doubts(remainder) or cues("contrast").search(near) is not None
    return in_doubt or polarity(_clause_at(remainder)) == OPEN


def _clause_at(text: str) -> str:
    """The rest of the clause that a text begins in."""
    end = _CLAUSE_END.search(text)
    return text[: end.start()] if end else text


def _taken_back(text: str, stated: list[_Stated]) -> int | None:
    """Where the last words end that take an answer back; None where there are none behind an answer."""
    first = min(statement.end for statement in stated)
    return max((m.end() for m in cues("take_back").finditer(text, first) if _begins(text, m.start())), default=None)


def _begins(text: str, start: int) -> bool:
    """Whether a clause begins at a place."""
    before = text[:start].rstrip(" \t")
    return (
        not before or before[-1] in ".!?;,:\n(-…" or re.search(r"\b(?:but|hmm+|oh|and|no)\Z", before, re.I) is not None
    )


def _of_clauses(text: str, answers: Answers) -> Reading:
    every = clauses(text)
    said = answers.said(every)
    values = {value for value, _ in said}
    if doubts(text) and not any(firm for _, firm in said):
        unsure = answers.when_unsure(text)
        return unreadable(DOUBT) if unsure is None else Reading(unsure, STATED)
    if len(values) != 1:
        return unreadable(CONTRADICTION if values else NOTHING)
    firm = any(whole for _, whole in said) and not any(c.polarity == OPEN for c in every)
    contrast = list(cues("contrast").finditer(text))
    firm = firm and (not contrast or bool(answers.said(clauses(text[contrast[-1].end() :]))))
    return Reading(values.pop(), SAID_BACK if firm else STATEMENT)


# --- explicit statements ----------------------------------------------------------------------------------------------


@cache
def _slot() -> re.Pattern[str]:
    """Words behind which an answer is stated."""
    nouns, copulas = pattern_of(phrases("noun")).pattern, pattern_of(phrases("copula")).pattern
    of_what = r"(?:\s+(?:here|to\s[^.\n]{1,80}?|for\s[^.\n]{1,60}?|of\s[^.\n]{1,60}?))?"
    will = r"(?:'d|'ll|'m|\s+(?:would|will|must|have\s+to|can|do|therefore|also|am))*"
    i = rf"\bi{will}\s+(?:{cues('choosing').pattern})(?:\s+an?(?=\s+\d))?"
    return re.compile(
        rf"(?P<noun>{nouns}){of_what}[\"'*)]*\s*(?:(?:{copulas})\s*:?|[:=]|-+>|-(?=\s))|(?:{i}|{cues('statement').pattern})[,:]?"
        rf"|(?:->|=>)(?=\s*\S{{1,40}}\s*$)",
        re.IGNORECASE | re.MULTILINE,
    )


def _explicit(text: str, answers: Answers) -> Iterator[_Stated]:
    head = _head(text, answers)
    if head is not None:
        yield head
    for slot in _slot().finditer(text):
        front = text[max(0, slot.start() - 80) : slot.start()]
        before = re.split(r"[.!?,;:\n]", front)[-1]
        sentence = re.split(r"[.!?\n]", front)[-1].strip()
        if polarity(before) != AFFIRMED or cues("bad").search(before) or cues("condition").match(sentence):
            continue
        stated = _after(text, slot.end(), answers)
        if stated is not None and (head is None or stated.start >= head.end):
            final = cues("final").search(text, max(0, slot.start() - 30), slot.end()) is not None
            yield _Stated(stated.value, stated.start, stated.end, STATED, final)
    for start, end in _lines(text):
        stated = _after(text, start, answers) if start else None
        if stated is not None and stated.end <= end and _REST.match(text[start:end], stated.end - start):
            yield _Stated(stated.value, stated.start, stated.end, LINE)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each line, and of a last sentence."""
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, start + len(line)
        start += len(line)
    last = re.search(r"(?<=[\w)\"'])[.!?]\s+(?=[^.!?\n]{1,60}[.!?]?\s*\Z)", text)
    if last and not re.search(r"(?:^|\s)[(\[]?(?:[0-9]{1,2}|[A-Za-z])\Z", text[: last.start()]):
        yield last.end(), len(text)


def _head(text: str, answers: Answers) -> _Stated | None:
    """The answer that a reply begins with, behind courtesies and its question."""
    at = 0
    for _ in range(4):
        stated = _after(text, at, answers)
        if stated is not None:
            whole = _REST.match(text, stated.end)
            slot = _slot().search(text, at, stated.start)
            final = slot is not None and cues("final").search(slot[0]) is not None
            return _Stated(
                stated.value, stated.start, stated.end, STATED if slot else LINE if whole else OPENING, final
            )
        lead = cues("lead").match(text, at)
        end = re.compile(r"[^\w]*[.!,:]+\s*(?:but\s+)?").match(text, lead.end()) if lead else None
        end = end or _QUESTION_FIRST.match(text, at) or _BASED.match(text, at)
        if end is None:
            return None
        at = end.end()
    return None


def _after(text: str, at: int, answers: Answers) -> _Stated | None:
    """The answer that stands at a place, behind words such as "definitely" and "option"."""
    starts = [at, _blank(text, at)]
    for _ in range(4):
        skipped = cues("skip").match(text, starts[-1])
        if skipped is None:
            break
        starts.append(_blank(text, skipped.end()))
    for start in dict.fromkeys(starts):
        answer = answers.at(text[start : start + _AHEAD])
        if answer is not None:
            end = start + answer.end
            if _denied_behind(text, end):
                return None
            value, end = _or_several(text, end, answer.value, answers)
            return None if value is None else _Stated(value, start, end, STATED)
    return None


def _blank(text: str, at: int) -> int:
    blank = _BLANKS.match(text, at)
    return blank.end() if blank else at


def _denied_behind(text: str, end: int) -> bool:
    """Whether an answer is denied at once: "supported? No", "B is wrong", "1: false", "A is less likely than B"."""
    behind = text[end : end + 160].lstrip("\"'*)].")
    if behind[:1] == "?" or re.match(r"\s*[:-]?\s*✗", behind):
        return True
    field = re.match(r"\s*(?:[:=?]|-+>|-(?=\s))\s*([^\n,;]{1,30})", behind)
    if field is not None:
        return bool(cues("bad").match(field[1])) or (polarity(field[1]) == DENIED and len(field[1].split()) < 4)
    verb = re.match(
        r"\s+(?:is|are|was|were|would be|seems|looks|does|can|ist|est|es|è|é)\b|(?:isn|aren|wasn)'t", behind, re.I
    )
    clause = _clause_at(behind[1:])
    return verb is not None and (polarity(clause) != AFFIRMED or bool(re.search(r"\bless|tempting|out\b", clause)))


def _or_several(text: str, end: int, value: str, answers: Answers) -> tuple[str | None, int]:
    """The value and its end, or `SEVERAL` where another one follows: "0 or 1", "A, B", "0 (hallucinated)".

    None where it is denied together with the other one: "A and C are wrong".
    """
    joined = _JOIN.match(text, end)
    second = answers.at(text[joined.end() : joined.end() + _AHEAD]) if joined else None
    if joined is None or second is None:
        return value, end
    behind = joined.end() + second.end
    if second.value == value:
        return value, behind if joined[0].strip()[-1:] in ("-", "(") else end
    if _denied_behind(text, behind):
        return (None if re.search(r"and|or|&", joined[0], re.IGNORECASE) else value), end
    return SEVERAL, end


def _without_items(text: str, answers: Answers) -> str:
    """A text without enumerations whose marks are answers: "A. pink B. red", "0 = factual, 1 = hallucinated"."""
    marks = answers.marks()
    items = [m for m in _ITEM.finditer(text) if m["mark"].upper() in marks]
    run: list[re.Match[str]] = []
    for item in items:
        if run and ord(item["mark"].upper()) == ord(run[-1]["mark"].upper()) + 1:
            run.append(item)
        elif len(run) < 2:
            run = [item]
    if len(run) < 2:
        return text
    end = _LINE_END.search(text, run[-1].end())
    behind = text[end.end() :] if end else ""
    return f"{text[: run[0].start()]}\n{behind}".strip()
