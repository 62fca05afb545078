"""Read a judge's verdict from whatever it wrote around it.

A reply counts only where it says exactly one thing. One that says two different things, or none, is unreadable: it is
asked for again, and at last recorded as not labelled. Nothing here ever falls back to a default. The rules are stricter
than those for an evaluated model's replies: a judge was told to write JSON, and what it judges may try to speak for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedge_tasks.io.json_objects import Twice, objects_in, whole_object
from hedge_tasks.replies.choice import TAKES_BACK, is_answer_field
from hedge_tasks.replies.judge_prose import SOME, at_the_end, flagged, read_prose, ticked
from hedge_tasks.replies.reading import (
    CONTRADICTION,
    JSON,
    LINE,
    NOT_OFFERED,
    NOTHING,
    REASONS,
    REFUSAL,
    STATED,
    Reading,
)
from hedge_tasks.replies.refusal import declines
from hedge_tasks.replies.text import body, normalise, plain

LONGEST_RAW = 2000
"""Characters of a reply that are kept with its verdict."""

_LONGEST_REPLY = 200_000
_LONGEST_JUDGED = 8000
_LONGEST_REASON = 300

# What takes back the outcome that it follows: `supported ✗`, `supported: false`, `supported = 0`, `"supported"? No`, a
# line below "not really", and further on in the same clause "supported by nothing". A clause ends where an explanation
# begins: "hallucinated because nothing ...".
_NEGATIVE = r"(?:false|no|not|none|nothing|never|neither|nor|nowhere|nobody|without|hardly|barely|n/a)"
_DENIED = re.compile(
    rf"""
    [\s"'`*_)\]:=.-]* ✗
    | [\s"'`*_)\].,!]* \n \W* (?: not\ (?:really|quite|at\ all)|nope\b|no[.,!\n]|wrong\b|incorrect\b|false\b)
    | [\s"'`*_)\]]* \?
    | [\s"'`*_)\]]* (?: [:=] | -+> ) [\s"'`*_(\[]* (?: (?:false|no|not|none|never|n/a|wrong|incorrect)\b | [01]\b )
    | (?: (?!\b(?:because|since|as|for|but|while|although)\b) [^\n.,;:(/\u2013\u2014-] )*?
      \b (?: {_NEGATIVE}\b | \w+n't\b )
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The reading of one reply of a judge.

    Attributes:
        reading: the outcome, or why none can be read.
        reason: the judge's own words on one line; of an unreadable reply, what is wrong with it.
    """

    reading: Reading
    reason: str


class _Unclear(ValueError):
    """No single outcome; carries the reason among `REASONS` and what is wrong."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def read_judgement(reply: str, values: Mapping[str, str], field: str, judged: str = "") -> Judgement:
    """Read a judge's reply.

    Args:
        reply: all that the judge wrote.
        values: the outcome that each spelling stands for; spellings as `normalise` gives them.
        field: name of the JSON field that holds the outcome.
        judged: the answer that it judged. A verdict that stands in there is no verdict of the judge's where it quotes
            it in running text.

    Example:
        >>> values = {"supported": "supported", "hallucinated": "hallucinated"}
        >>> read_judgement("**Verdict:** hallucinated", values, "verdict").reading.value
        'hallucinated'
    """
    try:
        return _read(reply[:_LONGEST_REPLY].strip(), values, field, normalise(judged[:_LONGEST_JUDGED]))
    except _Unclear as problem:
        return Judgement(Reading(None, problem.reason), str(problem))


def bounded(text: str) -> str:
    """A reply for the record: its beginning and end where it is long, and nothing that cannot be written."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= LONGEST_RAW:
        return text
    tail = LONGEST_RAW // 4
    return f"{text[: LONGEST_RAW - tail - 5]} ... {text[-tail:]}"


def _read(reply: str, values: Mapping[str, str], field: str, judged: str) -> Judgement:
    # Before thoughts are looked for, or an answer that makes a judge quote their mark could cut a verdict off.
    whole = whole_object(reply)
    if whole is None:
        spoken = body(reply)
        if isinstance(spoken, Reading):
            raise _Unclear(spoken.basis, "the reply is empty" if not reply else REASONS[spoken.basis])
        reply = spoken
        whole = whole_object(reply)
    if whole is not None:
        return _single_outcome([whole], values, field)
    return _read_text(reply, values, field, judged)


def _read_text(text: str, values: Mapping[str, str], field: str, judged: str) -> Judgement:
    objects, remainder = objects_in(text)
    own = [o for source, o in objects if _outcome_field(o, field, values) is not None and not _quoted(source, judged)]
    if own:
        judgement = _single_outcome(own, values, field)
        behind = plain(text[text.rfind("}") + 1 :])
        others = {value for value, _ in _stated_outcomes(plain(remainder), values, field, judged)} | _outcomes_named(
            behind, values
        )
        if others - {judgement.reading.value} or TAKES_BACK.search(behind):
            raise _Unclear(CONTRADICTION, "the reply contradicts itself: its text says something else than its JSON")
        return judgement
    if objects and not remainder.strip():
        raise _Unclear(NOTHING, f"no field {field!r} in the reply's JSON")
    said_plainly = _REPEATED.sub(r"\1", plain(text))
    if (tick := ticked(said_plainly, values)) is not None:
        return Judgement(Reading(tick, LINE), _line(text))
    namings = list(_stated_outcomes(said_plainly, values, field, judged, alone=True))
    spoken = list(dict.fromkeys(value for value, _ in namings))
    if len(spoken) == 1:
        behind = said_plainly[max(end for _, end in namings) :]
        keys = {spelled: key for spelled, key in values.items() if spelled == normalise(key)}
        if TAKES_BACK.search(behind) or _outcomes_named(behind, keys) - {spoken[0]}:
            corrected = _read_sentences(behind, values, judged) if TAKES_BACK.search(behind) else None
            if corrected is not None:
                return Judgement(Reading(corrected, STATED), _line(text))
            raise _Unclear(CONTRADICTION, "the reply takes its verdict back")
        return Judgement(Reading(spoken[0], STATED), _line(text))
    if spoken:
        raise _Unclear(CONTRADICTION, "the reply contradicts itself")
    prose = _read_sentences(said_plainly, values, judged)
    if prose is not None:
        return Judgement(Reading(prose, STATED), _line(text))
    refused = declines(text)
    raise _Unclear(REFUSAL if refused else NOTHING, "the judge declines" if refused else "no verdict in the reply")


def _read_sentences(text: str, values: Mapping[str, str], judged: str) -> str | None:
    """Statements of sentences, behind the last words that take something back."""
    ends = [correction.end() for correction in TAKES_BACK.finditer(text)]
    text = text[max(ends, default=0) :]
    return read_prose(text, values, judged) or at_the_end(text, values)


def _single_outcome(objects: list[dict[str, Any]], values: Mapping[str, str], field: str) -> Judgement:
    """The outcome that all the objects name."""
    reasons_by_outcome: dict[str, str] = {}
    for fields in objects:
        name = _outcome_field(fields, field, values)
        if name is None:
            raise _Unclear(NOTHING, f"no field {field!r} in the reply's JSON")
        if isinstance(fields, Twice):
            raise _Unclear(CONTRADICTION, "the reply contradicts itself: a field is given twice")
        outcome = outcome_of(fields[name], values) if name else flagged(fields, values)
        if outcome is None:
            value = json.dumps(fields[name], ensure_ascii=False)[:80]
            raise _Unclear(NOT_OFFERED, f"{field} is {value}, which is none of the outcomes")
        reason = fields.get("reason")
        if isinstance(reason, str) and _PLACEHOLDER.fullmatch(reason.strip()):
            raise _Unclear(NOTHING, "the reply copies the form that it was to fill in")
        reasons_by_outcome.setdefault(outcome, reason if isinstance(reason, str) else "")
    if len(reasons_by_outcome) > 1:
        raise _Unclear(CONTRADICTION, f"the reply contradicts itself: {' and '.join(reasons_by_outcome)}")
    [(outcome, reason)] = reasons_by_outcome.items()
    return Judgement(Reading(outcome, JSON), _line(reason))


def _outcome_field(fields: Mapping[str, Any], field: str, values: Mapping[str, str]) -> str | None:
    """The object's own name of a field, whatever its case, or another name for it; None where it has none, or several.

    "" where the object has a flag for each outcome instead.
    """
    if field in fields:
        return field
    names = [name for name in fields if name.strip().casefold() == field.casefold()]
    if not names:
        names = [name for name in fields if is_answer_field(name) and outcome_of(fields[name], values) is not None]
    if not names and flagged(fields, values) is not None:
        return ""
    return names[0] if len(names) == 1 else None


def _outcomes_named(text: str, values: Mapping[str, str]) -> set[str]:
    """Outcomes that are named anywhere in a text and not denied; numbers name none."""
    words = "|".join(_spelling(s) for s in sorted(values, key=len, reverse=True) if not s.isdecimal())
    if not words:
        return set()
    pattern = re.compile(
        rf"(?P<not>\b(?:not|no|never|than|of|n't|nothing|none|without)\W+(?:\w+\W+)?)?\b(?P<word>{words})\b",
        re.IGNORECASE,
    )
    return {
        values[normalise(m["word"])]
        for m in pattern.finditer(text)
        if m["not"] is None and not _ONLY_POSSIBLE.search(text, max(0, m.start() - 80), m.start())
    }


def _spelling(spelled: str) -> str:
    return r"[\W_]+".join(map(re.escape, spelled.split()))


_LABEL = (
    r"(?:(?:final|overall|my|the|your)\s+){0,3}(?:label|categor(?:y|ie)|kategorie|class|classification|overall|outcome|judge?ment"
    r"|decision|rating|conclusion|result|assessment|evaluation|determination|verdict|answer|final|ver[ie]di[ck]?to?|verdetto"
    r"|urteil|ergebnis|giudizio|jugement|вердикт|итог|вывод|结论|判定|判断|結論|판정|결론|निर्णय|निष्कर्ष|kết\s+luận|الحكم|النتيجة"
    r"|ผลการตัดสิน|สรุป|karar|sonuç|wyrok|ocena|wniosek|kesimpulan|putusan|omdöme|oordeel|conclusi[oó]ne?|conclus[aã]o)"
)
# "Nothing in the answer is hallucinated", "one might argue that the first half is supported": neither names a verdict.
_ONLY_POSSIBLE = re.compile(
    r"\b(?:nothing|none|no (?:part|claim|statement))\b[^.!?,;:\n]*\Z|\b(?:could|might|may)\b[^.!?,;\n]*\Z",
    re.IGNORECASE,
)
_WHEN = re.compile(r"\b(?:if|when|unless)\b", re.IGNORECASE)
_TABLE = re.compile(r"\|\s?:?-{2,}")
_REPEATED = re.compile(r"\A(\w{1,30})(?:\s+\1\b)+\W*\Z", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"<[^<>]*>|\.{3}|…")


def outcome_of(value: object, values: Mapping[str, str]) -> str | None:
    """The outcome that the value of a JSON field stands for; None where it is none.

    Args:
        value: text or a whole number, such as 3, 3.0, "3" or "Supported".
        values: as for `read_judgement`.
    """
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    return values.get(normalise(str(value))) if isinstance(value, (str, int)) else None


def _stated_outcomes(
    text: str, values: Mapping[str, str], field: str, judged: str, *, alone: bool = False
) -> Iterator[tuple[str, int]]:
    """Outcomes named in running text, with their ends: after the field's name, and with `alone` in front of a line.

    A bare outcome word somewhere in a sentence is no verdict: "nothing that is hallucinated".

    Raises:
        _Unclear: an outcome is named and denied at once: "supported: false", "supported by nothing".
    """
    words = "|".join(map(_spelling, sorted(values, key=len, reverse=True)))
    # Neither half of a number nor one of several choices, as in a form that was copied: `"supported" | "hallucinated"`.
    end = rf"""(?![.,]\d)(?![\s"'`*)\]]*(?:\bor\b|\band\b|[/|,])[\s"'`*(\[]*(?:{words})\b)(?!\s+{SOME})"""
    patterns = [
        rf"\b(?:{re.escape(field)}|verdict|final answer)\b(?:\s+is)?[\W_]{{1,10}}({words})\b{end}",
        rf"(?:^|(?<=[\n|.;>] )|(?<=[\n|]))\W{{0,6}}{_LABEL}\s*(?:\([^()\n]{{0,80}}\)\W{{0,3}})?"
        rf"[:=|\n-][\W_]{{0,9}}({words})\b{end}",
    ]
    if alone:
        # `A. 3`, `Supported.`, `With Hallucination, because`, `**hallucinated**`
        patterns.append(rf"(?m)^\W{{0,6}}(?:A\W{{1,3}})?({words})\b{end}\s*\W{{0,4}}(?:$|[,.;:|(\n]|(?<=\s)-\s)")
        # The last sentence: "... describe the same finding. Supported."
        patterns.append(rf"(?<=[a-z)][.!] )({words})\W{{0,3}}\Z")
        if text.count("->") == 1 and not _WHEN.search(
            text, text.rfind("\n") + 1
        ):  # "Wrong side -> hallucinated"; with a second arrow it is a legend
            patterns.append(rf"->\W{{0,4}}({words})\W*\Z")
        if _TABLE.search(text):
            patterns.append(rf"\|\W{{0,6}}({words})\b{end}\W{{0,4}}(?=\||$|\n)")
    for pattern in patterns:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if _quoted(match[0], judged):
                continue
            if (
                _DENIED.match(text, match.end(1))
                or "✗" in match[0][: match.start(1) - match.start()].rpartition("\n")[2]
            ):
                raise _Unclear(CONTRADICTION, f"the reply names {match[1]!r} and denies it")
            yield values[normalise(match[1])], match.end()


def _quoted(source: str, judged: str) -> bool:
    """Whether a piece of the reply stands in the answer that was judged, which comes normalised."""
    piece = normalise(source)
    # A judged answer "supported" must not take the word away from the judge.
    return " " in piece and piece in judged


def _line(text: str) -> str:
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
