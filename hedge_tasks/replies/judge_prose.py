"""A judge's verdict in running text: what a sentence calls the answer, a ticked line, a row of a table.

Firm or not at all: where another outcome is named and not denied, where it is only possible, or where what follows may
take it back, nothing is read, and the judge is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hedge_tasks.replies.refusal import OF_ANY, denied_abroad, leaves_open
from hedge_tasks.replies.text import is_foreign, normalise, spelled_out

_OPPOSITE = {"supported": "hallucinated", "hallucinated": "supported"}
"""Outcomes of which one is what the other is not, where there is no third for answers that say something."""

_NO_THIRD = frozenset(("supported", "hallucinated", "no_answer"))

_SENTENCE = re.compile(r"(?<=[\w)\"'*])[.!?;]+(?=\s|\Z)|\n")
_SUBJECT = (
    r"(?:(?:candidate|model|given|generated|provided|predicted|user|assistant)(?:'s)?\s+)?(?:answer|reply|response|output"
    r"|candidate|prediction|statement|claim|verdict|label|category|class|outcome|judge?ment|decision|classification|rating"
    r"|conclusion|result|assessment|score|it|this|this\s+one|that)"
)
_IS = (
    r"(?:is|was|are|seems|appears|remains|counts?\s+as|qualif(?:y|ies)\s+as|constitutes|contains|(?:should|must|can|has\s+to"
    r"|needs\s+to)\s+be|(?:should|must|can|has\s+to)\s+be)(?:\s+(?:to\s+be|rated|classified|labell?ed|marked|judged"
    r"|considered|deemed|called|categori[sz]ed|graded|scored|as|therefore|thus|hence|clearly|fully|entirely|completely"
    r"|directly|definitely|indeed|simply|just|best|an?|the|well|right|most|likely))*"
)
_CALLS = (
    r"(?:i|we)\s+(?:would\s+|will\s+|therefore\s+|must\s+|have\s+to\s+|also\s+|can\s+)*(?:label|rate|call|mark|classify|judge|find"
    r"|deem|consider|choose|pick|select|say|conclude|assign|go\s+with|answer|grade)(?:\s+(?:that|this|one|it|the|answer|reply"
    r"|response|is|as|with|to\s+be|statement|claim|an?|category|label|candidate|verdict|option))*"
)
_CONCLUDES = (
    r"(?:so|therefore|thus|hence|overall|consequently|accordingly|in\s+conclusion|in\s+short|in\s+summary|final(?:ly)?)"
)
_DENIES = re.compile(
    r"(?:\b(?:not|never|neither|nor|hardly|rather\s+than|instead\s+of|anything\s+but|far\s+from|by\s+no\s+means|no|nothing|without"
    r"|than|against|too\s+\w+\s+to\s+be)\s+(?:\w+ly\s+)?(?:at\s+all\s+|be(?:ing)?\s+(?:(?:considered|called|deemed|labell?ed|rated)\s+)?|really\s+|quite\s+|as\s+|an?\s+)?)\Z"
)
_PARTLY = re.compile(r"\b(?:partly|partially|mostly|somewhat|largely|nearly|almost|generally|half)\s+\Z")
_HARSH = re.compile(r"[\"']?\s+(?:would|might|could|may|is\s+(?:too|not)|are\s+(?:too|not)|seems\s+too)\b")
_WOULD_BE = re.compile(r"\b(?:would|might) (?:be|have)\b")
_IF = re.compile(r"\b(?:if|unless)\b")
_ON_CONDITION = re.compile(
    r"[\"')\],]*\s*(?:only\s+|or\s+\w+\s+)?(?:if|unless|when|whenever|where|provided|assuming)\b"
)
SOME = r"(?:claims?|content|statements?|parts?|details?|information|elements?|facts?|portions?|sentences?)\b"
"""Of an answer: "supported claims" say nothing of the whole."""
_SOME_ARE = re.compile(rf"\s+{SOME}\s+(?:is|are|was|were)\b")
_OTHERWISE = re.compile(r"\b(?:otherwise|else)\b")
_CALLED = re.compile(rf"{_CALLS}\s*\Z")
_SO = re.compile(rf"\b(?:{_CONCLUDES}|so)\b|,\s*(?:hence|making)\b")
_NEITHER = re.compile(r"\b(?:neither|nor)\b")
_NOT_SAID = re.compile(
    r"\b(?:can\s+not|could\s+not|do\s+not|does\s+not|did\s+not|not|hard\s+to|nothing|no\s+\w+|none|anything|find\s+a)\b[^,:]*\Z"
)
_GOES_ON = re.compile(r"\b(?:but|however|although|though|except|yet|nevertheless|while|whereas)\b")
_AGAINST = re.compile(
    r"\b(?:contradict\w*|conflicts?\s+with|disagree\w*|inconsistent|mismatch\w*|does\s+not\s+(?:match|agree|fit|appear)"
    r"|(?:is|are)\s+not\s+(?:in|mentioned|stated|supported|found))\b"
)
_NOT_AGAINST = re.compile(
    r"\b(?:not|no|nor|never|without|nothing)\s+(?:\w+\s+)?(?:contradict\w*|conflict\w*|disagree\w*)"
)
_FOR = re.compile(
    r"\b(?:match(?:es)?|agrees?\s+with|is\s+consistent\s+with|equivalent|the\s+same\s+as|paraphrase\w*)\b"
)

_TICK = re.compile(r"✓|\[[xX]\]|\([xX]\)|\b(?:true|yes)\b", re.IGNORECASE)
_CROSS = re.compile(r"✗|\[\s?\]|\(\s?\)|\b(?:false|no)\b", re.IGNORECASE)
# What stands behind the verdict in languages whose verb comes last: "supported と判断します", "hallucinated です".
_COPULA_ABROAD = re.compile(
    r"\W*(?:です|である|だ|と判断(?:します|する|できます)|となります|입니다|이다|로 판단(?:합니다|됩니다)|है)?\W*"
)


class _Named(NamedTuple):
    value: str
    stated: bool
    final: bool
    end: int


def ticked(text: str, values: Mapping[str, str]) -> str | None:
    """The outcome of the only line with a tick, where every other outcome's line has a cross or an empty box."""
    yes: set[str] = set()
    no: set[str] = set()
    for line in text.splitlines():
        whole = normalise(_TICK.sub(" ", _CROSS.sub(" ", line)))
        if whole in values:
            (yes if _TICK.search(line) else no if _CROSS.search(line) else set()).add(values[whole])
    return yes.pop() if len(yes) == 1 and no and not yes & no else None


def flagged(fields: Mapping[str, object], values: Mapping[str, str]) -> str | None:
    """The outcome of an object with one flag an outcome: `{"supported": false, "hallucinated": true}`."""
    flags = {values[normalise(key)]: value for key, value in fields.items() if normalise(key) in values}
    if not flags or not all(isinstance(value, bool) for value in flags.values()):
        return None
    true = [key for key, value in flags.items() if value]
    if len(true) == 1:
        return true[0]
    [key] = flags if len(flags) == 1 else [""]
    return _other(key, values) if not true else None


def at_the_end(text: str, values: Mapping[str, str]) -> str | None:
    """The outcome that a text in another language ends with, and the only one in it: "por lo tanto: supported"."""
    spoken = "|".join(
        r"[\W_]+".join(map(re.escape, s.split())) for s in sorted(values, key=len, reverse=True) if len(s) > 3
    )
    matches = list(re.finditer(rf"(?<![a-z])(?:{spoken})(?![a-z])", text, re.IGNORECASE)) if spoken else []
    if (
        len(matches) != 1
        or not is_foreign(text[: matches[0].start()])
        or not _COPULA_ABROAD.fullmatch(text, matches[0].end())
    ):
        return None
    near = re.split(r"[.!?,;:]", text[max(0, matches[0].start() - 40) : matches[0].start()])[-1]
    return None if denied_abroad(near) else values[normalise(matches[0][0])]


def read_prose(text: str, values: Mapping[str, str], judged: str) -> str | None:
    """The outcome that the sentences of a text state, or None where they state none, several, or one that is open.

    Args:
        text: plain, with contractions.
        values: the outcome that each spelling stands for; spellings as `normalise` gives them.
        judged: the answer that was judged, normalised: its words are none of the judge's.
    """
    words = {spelled: key for spelled, key in values.items() if not spelled.isdecimal() and len(spelled) > 2}
    if not words:
        return None
    spoken = "|".join(r"[\W_]+".join(map(re.escape, s.split())) for s in sorted(words, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w-])(?:{spoken})(?![\w-])")
    stating_words = re.compile(
        rf"(?:\b{_SUBJECT}(?:\s+here)?\s*,?\s*{_IS}|\bmaking\s+(?:it|this|the\s+\w+)(?:\s+an?)?\s|\b{_CALLS}|\b{_CONCLUDES}\b[,:]?(?:\s+(?:it|this|that|a|an|the|is))*)[\s:\"'(]*\Z"
    )
    spoken_text = spelled_out(text)
    start, named, last = 0, list[_Named](), ""
    for sentence, end in _sentences(spoken_text):
        in_sentence = list(_in_sentence(sentence, end - len(sentence), words, pattern, stating_words, judged))
        named += in_sentence
        last, start = (sentence, end) if sentence.strip() else (last, start)
    claims = [naming for naming in named if naming.stated]
    if not claims or "" in {naming.value for naming in named if naming.end > claims[-1].end}:
        return None
    chosen = claims[-1]
    if not chosen.final and {naming.value for naming in named} - {chosen.value} - ({""} if len(claims) == 1 else set()):
        return None
    behind = spoken_text[chosen.end :]
    if any(naming.value != chosen.value for naming in named if naming.end > chosen.end) or _GOES_ON.search(behind):
        return None
    if len(claims) == 1 or not chosen.final:
        against, agrees = _AGAINST.search(_NOT_AGAINST.sub(" ", spoken_text)), _FOR.search(spoken_text)
        if (chosen.value == "supported" and against) or (chosen.value == "hallucinated" and agrees and not against):
            return None
    return chosen.value


def _sentences(text: str) -> Iterator[tuple[str, int]]:
    at = 0
    for end_mark in _SENTENCE.finditer(text):
        if end_mark[0].startswith("?"):
            at = end_mark.end()
            continue
        yield text[at : end_mark.start()], end_mark.start()
        at = end_mark.end()
    yield text[at:], len(text)


def _in_sentence(
    sentence: str,
    start: int,
    words: Mapping[str, str],
    pattern: re.Pattern[str],
    stating_words: re.Pattern[str],
    judged: str,
) -> Iterator[_Named]:
    """The outcomes that a sentence names; "" in the place of one that nobody could tell."""
    for match in pattern.finditer(sentence):
        before = sentence[max(0, match.start() - 120) : match.start()]
        spelled = normalise(match[0])
        value = words[spelled]
        previous = before.split()[-1:] or [""]
        if judged and f" {normalise(previous[0])} {spelled} " in f" {judged} ":
            continue
        if (
            _SOME_ARE.match(sentence, match.end())
            or _ON_CONDITION.match(sentence, match.end())
            or _OTHERWISE.search(before)
            or OF_ANY.match(sentence)
        ):
            continue  # "An answer is called supported if all of its claims follow"
        is_open = _HARSH.match(sentence, match.end()) or leaves_open(before) or _WOULD_BE.search(before)
        if is_open and (_IF.search(before) or not _CALLED.search(before)):
            continue
        denied = _DENIES.search(before)
        if denied and _NEITHER.search(denied[0]):
            yield _Named("", False, False, start + match.end())
            continue
        if denied:
            before, value = before[: denied.start()] + " ", _other(value, words) or ""
            if not value or not stating_words.search(before):
                continue
        elif _PARTLY.search(before):
            yield _Named("", False, False, start + match.end())
            continue
        is_stated = bool(stating_words.search(before))
        if is_stated and _NOT_SAID.search(stating_words.sub("", before)):
            yield _Named("", False, False, start + match.end())
            continue
        final = is_stated and bool(_SO.search(before))
        yield _Named(value, is_stated, final, start + match.end())


def _other(key: str, values: Mapping[str, str]) -> str | None:
    """The outcome that is meant by denying one; None where it may be any of several."""
    return _OPPOSITE.get(key) if set(values.values()) <= _NO_THIRD else None
