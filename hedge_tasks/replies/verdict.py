"""Verdicts of one digit (0 factual, 1 hallucinated, 2 not sure), as a digit or in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from hedge_tasks.replies.abroad import BECAUSE, states_abroad, verdicts_abroad
from hedge_tasks.replies.choice import OUTSIDE, SEVERAL, AnswerMatch, choose, spoken_number
from hedge_tasks.replies.reading import Reading
from hedge_tasks.replies.refusal import OF_ANY, leaves_open, undecided
from hedge_tasks.replies.text import spelled_out
from hedge_tasks.replies.word_sets import word_set

FACTUAL, HALLUCINATED, NOT_SURE = "0", "1", "2"

_GOOD = (
    r"(?:factual|accurate|correct|true|(?:well[ -])?supported|valid|faithful|truthful|reliable|sound|consistent|right)"
)
_BAD = (
    r"(?:hallucinat(?:ed|ion|ions|ory|es|ing)|non-?\s?factual|unfactual|inaccurate|incorrect|false|untrue|wrong"
    r"|fabricated|made[ -]up|unsupported|misleading|invented|inconsistent|erroneous|invalid|mistaken|unfounded"
    r"|untruthful|unreliable|contradicted|fictitious)"
)
_DENIES = word_set("not no never hardly barely scarcely neither nor without lacks unlikely non")
_DENIES_IN_WORDS = re.compile(
    r"\b(?:far from|anything but|by no means|in no way|nowhere near|free (?:of|from)|devoid of)\b"
)
_PARTLY_WORDS = word_set("partly partially mostly somewhat largely nearly almost generally broadly half")
_BEFORE = (
    r"(?:(?:far from|anything but|by no means|in no way|nowhere near|free (?:of|from)|devoid of|in fact|not|no|never"
    r"|non|neither|without|half|quite|very|rather|so|also|both|all|any|an?|be|seem|to be|\w+ly|hardly|barely|scarcely"
    r"|somewhat|almost)[ -]+){0,5}"
)
_END = r"(?=\s*(?:[.,;:!?()\]\"'\n/&✓✗|-]|\Z|(?:because|since|as|and|for|or|but|with|due|in|to)\b))"
_DIGIT_END = (
    r"(?![.,]\d)(?!\s*(?:-|/|to|out of)\s*\d)(?=\s*(?:[.,;:!?()\]\"'\n/&✓✗|-]|\(|\Z|(?:because|since|as|and|for|or)\b"
    rf"|{BECAUSE}(?!\w)))"
)
_DIGIT = re.compile(rf"([0-9])(?:\.0)?\b{_DIGIT_END}")
_FLAG = re.compile(
    r"hallucinat(?:ed|ions?)(?: detected| found| present)?\s*[:=?]\s*(?:(yes|true)|no|none|false)\b", re.IGNORECASE
)
_DIGIT_NAMES = {"zero": "0", "one": "1", "two": "2"}
_LETTERED = re.compile(r"[(\[]?[A-D][).:\]]+\s+(?=(?:factual|hallucinated|correct|incorrect)\W*\Z)", re.IGNORECASE)
_SPELLED = re.compile(r"(zero|one|two)(?=\W*\Z)", re.IGNORECASE)
_WORDS = re.compile(rf"(?P<before>{_BEFORE})(?:(?P<bad>{_BAD})|(?P<good>{_GOOD})){_END}", re.IGNORECASE)
_POLAR = re.compile(rf"\b(?P<before>{_BEFORE})(?:(?P<bad>{_BAD})|(?P<good>{_GOOD}))\b", re.IGNORECASE)
# "Factual: 0, hallucinated: 1" tells what the digits mean.
_LEGEND = re.compile(
    r"\s*(?:=|:|->|\()\s*[0-9]\)?\s*(?:[,;/|\n]|and\b|or\b)\W*[a-z -]+?\s*(?:=|:|->|\()\s*[0-9]", re.IGNORECASE
)
_UNSURE = re.compile(rf"(?:not[ -]sure|unsure|uncertain|pass|skip|undecided|i pass){_END}", re.IGNORECASE)

_CLAIM = re.compile(
    rf"""\b(?:answer|it|this|that|response|statement|claim|information|everything|text)\b
    (?:\ \w+){{0,2}}?\ (?:is|are|was|seems|appears|looks|contains|includes|has|does|do|there\ is)\b
    (?P<between>(?:\ [a-z-]+){{0,6}}?)\ (?:(?P<bad>{_BAD})|(?P<good>{_GOOD}))\b
    | \bthere\ (?:is|are)\ (?P<some>(?:[a-z]+\ ){{0,3}}?)hallucinations?\b
    | \b(?:would|do|does)\ (?P<called>not)\ (?:call|label|consider|classify|rate)
      \ (?:it|this|that|the\ \w+)(?:\ as|\ an?|\ to\ be)?\ (?:(?P<bad_call>{_BAD})|(?P<good_call>{_GOOD}))\b
    | \b(?P<nothing>(?:not|no)\ (?:\w+\ ){{0,2}}?(?:find|see|detect|identify|contain)\ any\ hallucinations?)\b
    | \bmak(?:es|ing)\ (?:it|this|that|the\ answer)\ (?P<made>hallucinated|nonfactual)\b
    | \A(?:no|without|zero)\ (?P<none>hallucinations?)\b
    | \A(?P<found>hallucinations?)\ (?:is\ |are\ |was\ |were\ )?(?:detected|found|present)\b""",
    re.VERBOSE,
)
_NOT_THAT = re.compile(
    r"\b(?:not (?:think|believe|say|see|find|claim|true|the case|correct)|unlikely|doubt"
    r"|no (?:evidence|indication|sign|reason)"
    r"|(?:no|none|nothing|neither|not|hardly any)\b(?: \w+)? (?:of|in|about))\b[^,;:]*\Z"
)
_PARTLY = re.compile(r"\b(?:in part|some of|parts of)\b")
_KEY = re.compile(
    r"(?:is_?|contains_?|has_?)?(?:(factual|accurate|correct|true|supported)|(hallucinat\w+|false|incorrect))"
)
_CLAUSE = re.compile(r"[.!?;]+(?=\s|\Z)|\n|\b(?:but|however|although|whereas)\b")


_OF_VERDICT = re.compile(r"\b(?:i|we|answer|response|statement|claim|verdict)\b")
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Verdicts:
    """The digits that a prompt offers; see `choice.Choices`."""

    offered: str = "012"
    says_no: ClassVar[bool] = False

    def at(self, text: str) -> AnswerMatch | None:
        if match := _DIGIT.match(text):
            return AnswerMatch(match[1] if match[1] in self.offered else OUTSIDE, match.end())
        if (match := _SPELLED.match(text)) and (digit := _DIGIT_NAMES[match[1].casefold()]) in self.offered:
            return AnswerMatch(digit, match.end())
        if match := _FLAG.match(text):
            return AnswerMatch(HALLUCINATED if match[1] else FACTUAL, match.end())
        if match := _UNSURE.match(text):
            return AnswerMatch(NOT_SURE if NOT_SURE in self.offered else OUTSIDE, match.end())
        mark = _LETTERED.match(text)
        if match := _WORDS.match(text, mark.end() if mark else 0):
            if _LEGEND.match(text, match.end()):
                return None
            if (value := _sign(match["before"], match["bad"] is not None)) is not None:
                return AnswerMatch(value, match.end())
            return AnswerMatch(SEVERAL, match.end())
        return None

    def answers_in_object(self, fields: Mapping[str, Any]) -> set[str]:
        verdicts = set()
        for key, value in fields.items():
            named = _KEY.fullmatch(re.sub(r"[\s_-]+", "_", key.strip().casefold()))
            flag = _FLAGS.get(value.strip().casefold()) if isinstance(value, str) else value
            if named and isinstance(flag, bool):
                verdicts.add(HALLUCINATED if flag == (named[2] is not None) else FACTUAL)
        return verdicts

    def json_text(self, value: object) -> str | None:
        return spoken_number(value)

    def stated(self, text: str) -> set[str]:
        verdicts: set[str] = set()
        for clause in _CLAUSE.split(spelled_out(text)):
            clause = " ".join(clause.split())
            if leaves_open(clause) or OF_ANY.match(clause):
                continue
            for match in _CLAIM.finditer(clause):
                claimed = None if _PARTLY.search(clause) else _claimed(match)
                verdicts |= {FACTUAL, HALLUCINATED} if claimed is None else {claimed}
        return verdicts

    def restated_answers(self, text: str) -> set[str]:
        verdicts = self.stated(text)
        return {value for value in verdicts if len(verdicts) == 1 and not self.opposed(text, value)}

    def opposed(self, text: str, value: str) -> bool:
        if value == NOT_SURE:
            return False
        verdicts = (_sign(match["before"], match["bad"] is not None) for match in _POLAR.finditer(spelled_out(text)))
        return any(verdict != value for verdict in verdicts)

    def contradicts(self, text: str, value: str) -> bool:
        return bool(self.stated(text) - {value})

    def mentioned(self, text: str) -> set[str]:
        return set()

    def foreign_answers(self, text: str) -> set[str]:
        return verdicts_abroad(text) if states_abroad(text) else set()

    def when_unsure(self, text: str) -> str | None:
        """Not sure, where the speaker doubts the verdict; a legend of digits and doubt about the evidence are none."""
        clauses = [clause for clause in _CLAUSE.split(spelled_out(text)) if undecided(clause)]
        speaks = any(_OF_VERDICT.search(clause) and not re.search(r"\d", clause) for clause in clauses)
        return NOT_SURE if speaks and NOT_SURE in self.offered else None


def _claimed(match: re.Match[str]) -> str | None:
    if match["none"] is not None or match["nothing"] is not None:
        return FACTUAL
    if match["made"] is not None or match["found"] is not None:
        return HALLUCINATED
    if match["called"] is not None:
        return FACTUAL if match["bad_call"] is not None else HALLUCINATED
    wrong = match["some"] is not None or match["bad"] is not None
    value = _sign((match["some"] if match["some"] is not None else match["between"]) or "", wrong)
    if value is None or not _NOT_THAT.search(match.string, 0, match.start()):
        return value
    return FACTUAL if value == HALLUCINATED else HALLUCINATED


def _sign(before: str, bad: bool) -> str | None:
    """Read the verdict in an adjective and the words in front of it; None for "mostly accurate".

    Example:
        >>> _sign("far from ", bad=False), _sign("factually ", bad=True), _sign("not entirely ", bad=False)
        ('1', '1', '1')
    """
    before = before.casefold()
    words = re.findall(r"[a-z]+", _DENIES_IN_WORDS.sub(" not ", before))
    denied = sum(word in _DENIES for word in words) - ("not only" in before)
    if not denied and _PARTLY_WORDS & set(words):
        return None
    return HALLUCINATED if bad != bool(denied % 2) else FACTUAL


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
