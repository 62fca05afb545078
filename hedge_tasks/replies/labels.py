"""Verdicts: the digits of a prompt (0 factual, 1 hallucinated, 2 not sure) and the outcomes that a judge may name.

A label is read where it is stated by name, or where a clause calls the answer right or wrong in any words
(`words.json`: good, bad) and its labels have both. Nothing here ever falls back to a default: a reply
that says two different things, or none, is unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.io.json_objects import objects_in, whole_object
from hedge_tasks.replies.clauses import AFFIRMED, DENIED, OPEN, Clause, polarity
from hedge_tasks.replies.reading import JSON, NOTHING, REASONS, UNCONFIRMED, Reading, unreadable
from hedge_tasks.replies.statements import OUTSIDE, SEVERAL, AnswerMatch, Answers, choose, is_answer_field
from hedge_tasks.replies.text import normalise, plain, spelled_out
from hedge_tasks.replies.wording import cues

FACTUAL, HALLUCINATED, NOT_SURE = "0", "1", "2"

LONGEST_RAW = 2000
"""Characters of a reply that are kept with its verdict."""

_LONGEST_REPLY = 200_000
_LONGEST_JUDGED = 8000
_LONGEST_REASON = 300
_NEAR = 200

_DIGIT = re.compile(r"([0-9])(?:\.0)?(?![.,]?\w)(?!\s*(?:-|/|to|out of)\s*\d)(?!\s*%)")
_DIGIT_END = re.compile(
    r"\s*(?:[.,;:!?()\]\"'\n/&✓✗-]|\Z|(?:because|since|as|and|for|or|weil|porque|car)\b|[^\x00-\x7f])"
)
_END = re.compile(r"\s*(?:[.,;:!?()\]\"'\n/&✓✗|*-]|\Z|(?:because|since|as|and|for|or|but|with|due|in)\b)")
_BEFORE = re.compile(r"(?:\w+[ -]+){0,4}\Z")
_CLAUSE = re.compile(r"[^(.,;:!?\n]+")
"""The words behind a name, as far as its clause goes: they may deny it, "hallucinated in no way"."""
_LEGEND = re.compile(r"\s*(?:=|:|->|\()\s*[0-9]\)?\s*(?:[,;/|\n]|and\b|or\b)\W*[a-z -]+?\s*(?:=|:|->|\()\s*[0-9]", re.I)
_IS_THERE = re.compile(r"(?:\s+(?:is|are|was|were))?\s+(?:detected|found|present|identified|seen)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\A(?:<[^<>]*>|\.{3}|…)\Z")
_PAIR = re.compile(
    r"(?<![\w.])[\"']?[0-9][\"']?\s*(?:=|:|if|for|means|when|\()[^0-9\n]{1,80}?[\"']?[0-9][\"']?\s*(?:=|:|if|for|means|when|\()",
    re.I,
)


@dataclass(frozen=True)
class Labels(Answers):
    """The labels that a reply may name.

    Attributes:
        spelled: by spelling, as `normalise` gives it, the label that it stands for.
        good, bad: the labels of an answer that is right and of one that is wrong; None where there is none such.
        unsure: the label of doubt; None where none is offered.
        digits: whether any digit is of the form of a label, offered or not.
    """

    spelled: Mapping[str, str] = field(default_factory=dict)
    good: str | None = None
    bad: str | None = None
    unsure: str | None = None
    digits: bool = False

    @classmethod
    def of_digits(cls, offered: str) -> Labels:
        named = {
            "0": ("zero",),
            "1": ("one",),
            "2": ("two", "not sure", "unsure", "uncertain", "pass", "skip", "undecided"),
        }
        spelled = {digit: digit for digit in offered} | {
            n: d for d, names in named.items() if d in offered for n in names
        }
        return cls(spelled, FACTUAL, HALLUCINATED, NOT_SURE if NOT_SURE in offered else None, digits=True)

    @classmethod
    def of_outcomes(cls, spelled: Mapping[str, str]) -> Labels:
        keys = set(spelled.values())
        two = {"supported", "hallucinated"} <= keys and keys <= {"supported", "hallucinated", "no_answer"}
        return cls(spelled, "supported" if two else None, "hallucinated" if two else None)

    @cached_property
    def _names(self) -> re.Pattern[str]:
        names = (name for name in self.spelled if not name.isdecimal())
        spaced = "|".join(r"[\W_]+".join(map(re.escape, n.split())) for n in sorted(names, key=len, reverse=True))
        return re.compile(rf"(?<![\w-])(?:{spaced})(?![\w])" if spaced else r"(?!)", re.IGNORECASE)

    @cached_property
    def _any_name(self) -> re.Pattern[str]:
        return re.compile(f"{self._names.pattern}|{cues('good', 'bad').pattern}", re.IGNORECASE)

    def affirmed(self, text: str) -> list[re.Match[str]]:
        """The labels' names in a text that no clause denies or leaves open."""
        every = [m for m in self._names.finditer(text) if not cues("some").match(text, m.end() + 1)]
        return [m for m in every if polarity(re.split(r"[.,;:!?\n]", text[: m.end()][-_NEAR:])[-1]) == AFFIRMED]

    def marks(self) -> frozenset[str]:
        return frozenset("0123456789" if self.digits else (name.upper() for name in self.spelled if len(name) == 1))

    def at(self, text: str) -> AnswerMatch | None:
        if match := _DIGIT.match(text):
            if not _DIGIT_END.match(text, match.end()) or not (self.digits or match[1] in self.spelled):
                return None
            return AnswerMatch(self.spelled.get(match[1], OUTSIDE), match.end())
        if (match := re.match(r"([A-Z])(?=[.):\s]|\Z)", text)) and match[1].casefold() in self.spelled:
            return AnswerMatch(self.spelled[match[1].casefold()], match.end())
        match = self._names.match(text)
        if match is None or not _END.match(text, match.end()) or _LEGEND.match(text, match.end()):
            return self._called_at(text)
        behind = _CLAUSE.match(text, match.end(), match.end() + _NEAR)
        ends = cues("break").search(behind[0]) if behind else None
        denied = behind is not None and polarity(behind[0][: ends.start() if ends else None]) == DENIED
        return AnswerMatch(SEVERAL if denied else self.spelled[normalise(match[0])], match.end())

    def _called_at(self, text: str) -> AnswerMatch | None:
        """Right or wrong at the beginning of a text: "not quite correct", "no hallucination"."""
        if self.good is None:
            return None
        match = cues("good", "bad").search(text[:80])
        if match is None or not _BEFORE.fullmatch(text[: match.start()]):
            return None
        front, end = text[: match.start()], _IS_THERE.match(text, match.end())
        # A bare flag does not say of what: of the answer, or of "hallucinated".
        is_bare = match[0].casefold() in ("true", "false") and not front.strip()
        if is_bare or not _END.match(text, end.end() if end else match.end()) or _LEGEND.match(text, match.end()):
            return None
        if re.search(r"\b(?:is|are|was|the|answer|it|this)\b", front, re.I):
            return None
        value = self._sign(text[: match.end()], match[0])
        return AnswerMatch(value or SEVERAL, match.end())

    def _sign(self, clause: str, called: str) -> str | None:
        """The label of a clause that calls something right or wrong; None where it leaves it open."""
        side = polarity(spelled_out(clause).rpartition(spelled_out(called))[0])
        if side == OPEN:
            return None
        wrong = cues("bad").fullmatch(called) is not None
        return self.bad if wrong == (side == AFFIRMED) else self.good

    def said(self, every: list[Clause]) -> list[tuple[str, bool]]:
        return [(value, True) for clause in every for value in self._clause(clause)]

    def _clause(self, clause: Clause) -> Iterator[str]:
        if cues("of_any").match(clause.text) or _PAIR.search(clause.text):
            return
        for match in self._any_name.finditer(clause.text):
            front = clause.text[max(0, match.start() - _NEAR) : match.start()]
            behind = clause.text[match.end() : match.end() + _NEAR]
            named = self.spelled.get(normalise(match[0]))
            if (
                not cues("of_answer").search(front)
                or cues("some").match(behind.strip())
                or polarity(front) == OPEN
                or cues("condition").match(behind.strip())
                or re.search(r"\b(?:some|part|parts|nothing|none|reference|if|must|should|every)\b", front)
            ):
                continue
            if cues("good", "bad").fullmatch(match[0]) and self.good is not None:
                value = self._sign(front + match[0], match[0])
            else:
                value = named if polarity(front) == AFFIRMED else None
            if value is not None and polarity(behind) != OPEN:
                yield value

    def in_object(self, some: Mapping[str, Any]) -> set[str]:
        """`{"hallucinated": true}`, `{"supported": false, "hallucinated": true}`."""
        if self.good is None:
            return set()
        flags = {"true": True, "yes": True, "false": False, "no": False}
        values = set()
        for key, value in some.items():
            named = re.sub(r"^(?:is|contains|has) ", "", normalise(key))
            flag = flags.get(value.strip().casefold()) if isinstance(value, str) else value
            if cues("good", "bad").fullmatch(named) and isinstance(flag, bool):
                wrong = cues("bad").fullmatch(named) is not None
                values.add(str(self.bad if flag == wrong else self.good))
        return values

    def when_unsure(self, text: str) -> str | None:
        return self.unsure if cues("not_sure").search(spelled_out(text)) else None


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
    return choose(_without_legend(reply), Labels.of_digits(offered), cut=cut)


def _without_legend(reply: str) -> str:
    """A reply without the sentences that tell what the digits stand for."""
    if not _PAIR.search(reply):
        return reply
    return "\n".join(part for part in re.split(r"(?<=[.!?])\s+|\n", reply) if not _PAIR.search(part)) or "()"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The reading of one reply of a judge.

    Attributes:
        reading: the outcome, or why none can be read.
        reason: the judge's own words on one line; of an unreadable reply, what is wrong with it.
    """

    reading: Reading
    reason: str


def read_judgement(reply: str, values: Mapping[str, str], field: str, judged: str = "") -> Judgement:
    """Read a judge's reply: firmly or not at all.

    Args:
        reply: all that the judge wrote.
        values: the outcome that each spelling stands for; spellings as `normalise` gives them.
        field: name of the JSON field that holds the outcome.
        judged: the answer that it judged. What the reply quotes of it is none of the judge's words.

    Example:
        >>> values = {"supported": "supported", "hallucinated": "hallucinated"}
        >>> read_judgement("**Verdict:** hallucinated", values, "verdict").reading.value
        'hallucinated'
    """
    reply = _own_words(reply[:_LONGEST_REPLY].strip(), judged[:_LONGEST_JUDGED].strip())
    labels = Labels.of_outcomes(values)
    whole = whole_object(reply) or next((some for _, some in objects_in(reply)[0] if field in some), {})
    if field in whole and not any(map(is_answer_field, whole)):
        reply = reply.replace(f'"{field}"', '"verdict"')
    read = choose(reply, labels)
    names = {labels.spelled[normalise(m[0])] for m in labels.affirmed(plain(objects_in(reply)[1]))}
    if _PLACEHOLDER.search(str(whole.get("reason"))):
        return Judgement(unreadable(NOTHING), REASONS[NOTHING])
    beside = whole and read.readable and read.basis != JSON
    if read.soft or beside or names - {read.value}:
        read = unreadable(UNCONFIRMED)
    if not read.readable:
        return Judgement(read, "the reply is empty" if not reply else REASONS[read.basis])
    reason = whole.get("reason")
    return Judgement(read, _line(reason if isinstance(reason, str) else reply))


def _own_words(reply: str, judged: str) -> str:
    """A judge's reply without its thoughts, and without what it quotes of the answer that it judged."""
    if whole_object(reply) is None:  # an object may quote the mark of a thought
        answer, is_open = without_thoughts(reply)
        reply = reply if is_open else answer.strip()
    if whole_object(reply) is None and " " in judged:
        reply = reply.replace(judged, " ").strip()
    return reply


def outcome_of(value: object, values: Mapping[str, str]) -> str | None:
    """The outcome that the value of a JSON field stands for; None where it is none.

    Args:
        value: text or a whole number, such as 3, 3.0, "3" or "Supported".
        values: as for `read_judgement`.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return values.get(normalise(str(value))) if isinstance(value, (str, int)) else None


def bounded(text: str) -> str:
    """A reply for the record: its beginning and end where it is long, and nothing that cannot be written."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= LONGEST_RAW:
        return text
    tail = LONGEST_RAW // 4
    return f"{text[: LONGEST_RAW - tail - 5]} ... {text[-tail:]}"


def _line(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
