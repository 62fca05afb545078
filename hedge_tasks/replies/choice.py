"""The rules that are the same whatever a reply chooses among: where an answer is stated, and what to make of several.

In this order, and the first that finds something decides:

1. the answer field of a JSON object;
2. what is stated as the answer (`Final answer: X`, boxed, tagged, "the answer is X", "I choose X", "so, X"), what
   stands on a line by itself, and how the reply begins. If they differ, one that is called final counts; otherwise the
   reply contradicts itself;
3. a refusal or a doubt: unreadable, and the next rules are not asked;
4. a sentence about what was asked;
5. the only answer that is mentioned.

Where words take back what stands before them ("wait", "on second thought"), only what stands behind them is read.

A reading is firm (see `reading.SOFT`) where nothing else in the reply could take it back: a beginning that goes on in
the same sentence, a condition, a contrast or a doubt behind it leave it a soft one.

Of a reply that was cut off only 1 and 2 count, and only where it goes on behind the answer: "the answer is no" may have
been about to become "nothing".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

from hedge_tasks.io.json_objects import Twice, objects_in, whole_object
from hedge_tasks.replies.forms import FORM_MARKS, fields, likeliest, shares, ticked
from hedge_tasks.replies.reading import (
    CONTRADICTION,
    CUT,
    DOUBT,
    FORM,
    JSON,
    LEADING,
    LINE,
    MENTION,
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
from hedge_tasks.replies.refusal import declines, denied_abroad, doubts, leaves_open
from hedge_tasks.replies.text import body, is_foreign, plain
from hedge_tasks.replies.word_sets import word_set

SEVERAL = "\0several"
"""In place of a value: several answers at once, such as "A or B"."""

OUTSIDE = "\0outside"
"""In place of a value: an answer of the right form that was not offered, such as "(E)" of four options."""


class AnswerMatch(NamedTuple):
    """An answer at the beginning of a text: what it says and where it ends."""

    value: str
    end: int


class Choices(Protocol):
    """The options among which a reply may choose.

    Attributes:
        says_no: whether "no" is an answer; where it is none, "C ... no, A" takes an answer back.
    """

    says_no: ClassVar[bool]

    def at(self, text: str) -> AnswerMatch | None:
        """The answer that a text begins with."""

    def json_text(self, value: object) -> str | None:
        """The text of a JSON value that is no text."""

    def answers_in_object(self, fields: Mapping[str, Any]) -> set[str]:
        """The answers in a JSON object that has no field for an answer: `{"bicycle": false}`, `{"B": true}`."""

    def stated(self, text: str) -> set[str]:
        """The answers that sentences of the text amount to."""

    def restated_answers(self, text: str) -> set[str]:
        """Those of them whose sentence says or denies what was asked in its own words and no others."""

    def opposed(self, text: str, value: str) -> bool:
        """Whether another answer than `value` is named in the text in a way that may take it back."""

    def contradicts(self, text: str, value: str) -> bool:
        """Whether a sentence that begins with an answer goes on to say another one: "No, there is a dog"."""

    def mentioned(self, text: str) -> set[str]:
        """The answers that are mentioned anywhere and not denied."""

    def foreign_answers(self, text: str) -> set[str]:
        """The answers that a text in another language than English gives; none where anything in it is not known."""

    def when_unsure(self, text: str) -> str | None:
        """The answer that doubt amounts to, where one is offered for that."""


FIELDS = word_set(
    "answer final_answer finalanswer final ans verdict label choice option prediction result response judgment "
    "judgement output decision classification category score rating outcome veredicto verdetto urteil antwort "
    "respuesta réponse risposta resposta"
)
"""Names that JSON fields with an answer have, in lower case."""

_NOUN = (
    r"(?:answers?|verdict|judge?ment|label|output|choice|option|conclusion|decision|score|rating|prediction"
    r"|classification"
    r"|result|response|category|assessment|evaluation|correction|match|guess|pick|digit|number|letter|selection|vote"
    r"|majority|consensus|determination|class|grade|reply|diagnosis(?=\s*:))"
)
_IS = r"""["']?\s*\#*(?:(?:is|was|would\ be|should\ be|must\ be|will\ be|are)\b(?:\s*:)?|[:=]|-+>|-(?=\s))"""
_FINAL = re.compile(
    rf"\b(?:final|ultimate) {_NOUN}\b(?:\ to\ [^.\n]{{1,120}}?)?\s*{_IS}|^\s*####|\bcorrection\s*:"
    rf"|\bmajority(?:\ vote)?\s*{_IS}|\bfinal\s*[:=]"
    r"|最终答案(?:是|为)?\s*:?",
    re.IGNORECASE | re.MULTILINE,
)
_STATED = re.compile(
    rf"""\b{_NOUN}\b(?:\ (?:here|to\ [^.\n]{{1,120}}?))?\s*{_IS}
    | \bI(?:'d|'ll|'m)?(?:\ (?:would|will|must|have\ to|can|do|therefore|also|am))?\ (?:choose|pick|select
      |go(?:ing)?\ with|say|answer|vote\ for|opt\ for|settle\ on|guess|suggest|bet\ on|lean\ (?:towards?|to)|assign)\b
      (?:\ an?\b(?=\ (?:[0-9]|yes|no)\b))?\s*:?
    | \b(?:give|gives|assign|award|label|rate|mark|score|grade)\ (?:it|this|that|the\ \w+)(?:\ an?\b)?
      (?=\ \S{{1,4}}(?:\W|\Z))
    | \bgets?\ an?\b
    | \b(?:classified|labell?ed|rated|marked|scored|graded|categori[sz]ed)\ (?:as|with)\b\s*:?
    | \b(?:label|rate|classify|mark|score|judge|grade)\ (?:this|it|that|the\ \w+)(?:\ \w+)?
      \ (?:as|with|an?|to\ be)\b\s*:?
    | \b(?:that|this|which)\ (?:only\ )?leaves(?:\ us)?(?:\ with)?(?:\ only)?\b\s*:?
    | (?:->|=>)\s*(?=\S{{1,40}}\s*$)
    | \bI\ (?:think|believe|guess|suppose)(?:\ that)?(?:\ it(?:'s|\ is))?\s
    | \bmakes\ me\ (?:lean|say|think|choose|pick)\b(?:\ (?:towards?|to)\b)?\s*:?
    | \b(?:so|therefore|thus|hence|in\ conclusion|overall|in\ summary|in\ short|to\ conclude)\b[,:]?\s
    | \b(?:réponse|respuesta|antwort|resposta|risposta|ответ)\b\s*(?:[:=]|est|es|ist|é|è|-)
    | (?:答案|回答|判断|答え)\s*(?:应该)?(?:是|为)?\s*:?
    | \bnot\ [^.,;:!?\n]{{1,60}}
      (?:[.,;]?\s+(?:but(?:\ rather)?|rather|instead)|[.,;]\s+(?:it\ is|it's|that\ is|that's))\b\s*:?
    | \b(?:nicht|keine?|niet|geen|no|non|pas|n[ãa]o|не|ні|nie)
      \ (?!(?:nur|alleen|s[oó]lo|solamente|solo|soltanto|seulement|apenas|somente|только|лише|tylko)\b)
      [^.,;:!?\n]{{1,60}},\ (?:sondern|maar|sino|bens[iì]|mais|mas(?:\ sim)?|а|lecz)\b
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
# The same in other languages: the noun, a word such as "correct", a copula and an article; and what may stand behind.
_ABROAD = re.compile(
    # As `plain` leaves a reply: some vowel signs are two characters then.
    unicodedata.normalize(
        "NFKC",
        r"""(?:
      \b(?:r[ée]ponses?|respuesta|antwort|resposta|risposta|ответ|odpowied[źz]|cevap|yanıt|jawaban|antwoord|svar(?:et)?
        |vastaus|odpověď|răspuns(?:ul)?|opci[oó]n|opção|opzione|alternativa|giudizio
        |option(?!\ \(?[A-Z]\)?(?::|\.\s))|urteil|jugement|juicio|ver[ie]dic?to|verdetto
        |вердикт|оценка|вариант|kategorie|bewertung|đáp\ án|câu\ trả\ lời|richtig|lösung)
      (?:\ (?:correct[ae]?|corretta|correta|exacte?|bonne|juste|richtige|finale?|правильный|верный|prawidłowa|doğru
        |đúng|benar|juiste|korrekte|rätt|riktige))?
      \s*(?:(?:est|es|ist|é|è|to|là|adalah|is|är|er|on|je|este|jest|lautet)\b\s*:?|[:=]|-)?\s*(?:(?:la|le|el|l'|a|o|die|das|der)\b)?
      |(?:答案|回答|判断|判定|评分|结论|正确答案|答え|正解|正答|判定|選択肢|选择|選択|因此选|所以选|故选|应选|选|選|よって|したがって)\s*(?:应该|应)?
        (?:是|为|為|は|が)?\s*:?
      |(?:정답|답변|답|판정|결론)(?:은|는|:)?\s*:?
      |(?:الإجابة|الجواب|الاجابة|جواب|پاسخ)(?:\s+الصحيحة|\s+الصحيح|\s+صحیح)?\s*(?:هي|هو|:)?\s*:?
      |(?:उत्तर|जवाब|विकल्प)\s*(?:है|:)?\s*:?
      |(?:คำตอบ)(?:คือ|:)?\s*(?:ข้อ)?\s*
    )[\s"'(\[]*(?P<said>[A-Za-z](?!\w)|[A-Za-z](?=[^\x00-\x7f])|[0-9](?![\w.,]\d|\d))""",
    ),
    re.IGNORECASE | re.VERBOSE,
)
_ENDS_ABROAD = re.compile(
    r"""["')\]]*\s*(?:\([^()\n]{0,60}\)\s*)?(?:[.;\n:,]|\Z|です|だ(?=[.\s]|\Z)|となります|になります|입니다|이다|예요|है|।|şıkkı|の|का|"""
    r"""(?:es|est|ist|é|è|jest|är|er|is|on|je)\ (?:la\ |le\ |die\ )?"""
    r"""(?:correct[ao]?|corrett[ao]|correto|correcte|exacte?|richtig|korrekt"""
    r"""|prawidłowa|poprawna|juist|rätt|riktig|správn\w+)\b|"""
    r"""(?:porque|parce|car|weil|denn|da|perch[ée]|poiché|pois|потому|так|bo|ponieważ|çünkü|karena|vì|因为)\b)"""
)
_CLAUSE_END = re.compile(r"[.!?,;:\n]\s*")
_BETWEEN = " \"').:]"
_ALONE_ABROAD = re.compile(r"(?:[:\s]|(?<=[^\x00-\x7f]))[(\[\"']*([0-9])[)\]\"'.]*\s*(?:\([^()]{0,40}\)\W*)?\Z")
# "If the answer is factual" and "the wrong answer is A" state nothing.
_OPEN = re.compile(
    r"\b(?:if(?! (?:i|we)(?:'d)? (?:had|have|must|were)\b| (?:forced|pressed|pushed)\b)|whether|when|unless|wrong"
    r"|incorrect|worst|why|what|not (?:the case|true|correct) that|unlikely|doubt"
    r"|(?:not|\w+n't|cannot|never) (?:think|believe|say|see|find|claim)|no (?:evidence|indication|sign|reason)"
    r"|(?:no|none|nothing|neither|not|hardly any)(?: \w+)? (?:of|in|about)|each|every)\b"
    r"[^.!?,;:\n]*\Z|(?:\b(?:not|never|cannot)|n't)(?:\s\w+ly)?\s*\Z",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"(?:no|nope|wait|sure(?: thing)?|of course|certainly|absolutely|(?:great|good) question|thank you[^.!\n]{0,60}"
    r"|thanks[^.!\n]{0,60}|(?:i am |i'm )?happy to help|okay|ok|well|alright|hello|hi|actually|hmm|oh|unfortunately"
    r"|based on [^,.\n]{1,60}|that said|having said that|even so|still|nevertheless"
    r"|(?:i am |i'm )?(?:sorry|afraid)|i apologi[sz]e|[^.!?\n]{0,60}\b(?:sure|certain)"
    r"(?: about [^.!?,\n]{1,40})?)\b[.!,:]+\s*(?:but\s+)?|[^.!?\n]{1,120}\?[\"']?\s+",
    re.IGNORECASE,
)
_SKIPPED = re.compile(
    r"""(?:[\s"'(\[:=,✓]+|->
    |(?:only|just|definitely|clearly
    |most\ likely|very\ likely|likely|probably|presumably|simply|certainly|indeed|therefore|thus
    |it\ is|it's|(?:it|that|this)\ (?:would|should|must)\ be|that\ is|that's|that|as|option|choice
    |final\ answer|answer|verdict|label
    |with|an?(?=\ [0-9]\b))\b[\s:]*
    |(?:the|this)\ (?:\w+\ )?(?:statement|answer|response|claim|text)\ (?:is|seems|appears)(?:\ to\ be)?\b
    ){0,6}""",
    re.IGNORECASE | re.VERBOSE,
)
TAKES_BACK = re.compile(
    r"""(?:\A|[.!?;,:\n(-]\s*|\b(?:but|hmm+|oh|and|no|pero|mais|aber|ma|mas|maar|но)\b[,.]*\s*)(?:
      wait\b|hold\ on\b|hang\ on\b|on\ (?:second\ thoughts?|reflection|closer\ (?:look|inspection|examination))\b
      |correction\b|scratch\ that\b|strike\ that\b|make\ that\b|i\ mean\b|oops\b
      |(?:sorry|actually)\s*[,:-]|actually\s+(?=\S+\s*(?:[.,;:!]|\Z))
      |(?:looking|thinking)\ (?:again|closer|more\ closely)\b|let\ me\ (?:re\w+|correct|look\ again)\b
      |i\ (?:was\ wrong|(?:have\ )?made\ (?:a\ mistake|an\ error)|take\ (?:that|it)\ back|stand\ corrected)\b
      |my\ mistake\b
      |esper[ae]\b|un\ momento\b|attend(?:s|ez)\b|warte\b|(?:einen\ )?moment\ mal\b|halt\b|aspett[ai]\b|wacht\b
      |подожди(?:те)?\b|погоди(?:те)?\b|стоп\b|czekaj\b|bekle\b|tunggu\b|等等|等一下|待って|いや[,、]|잠깐|انتظر|रुकिए
      |(?:i(?:'ll|'d)?\ (?:will\ |would\ (?:like\ to\ )?|have\ to\ |must\ |need\ to\ )?(?:now\ )?)?
        (?:chang|revis|correct|switch|updat)(?:e|ing)?
        \ (?:my(?:self|\ (?:answer|choice|mind|selection|verdict|response|reply))|that|this)\b
        (?:\ from\ \S{1,20})?(?:\ to\b)?
    )[\s,.:;!-]*""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words that take back what stands in front of them."""

# The same where "no" is no answer: "C ... no, A".
_MARK_ALONE = re.compile(
    r"(?:(?m:^)\W{0,3}|(?<!\w)[(\[]?[0-9A-Za-z][.):\]]+\s[^.!?,;:\n]{1,40}\s[(\[]?)(?:[0-9]{1,2}|[A-Za-z])\Z"
)
# "No ulcer is visible" takes nothing back.
_NO_RATHER = re.compile(
    r"[.!?;,\n-]\s*no(?:pe)?\b(?:\s*[,.:;!-]+\s*(?=[(\"'\w])|\s+(?=[(\[]?[A-Z0-9][)\].,]?(?:\s|\Z)))", re.IGNORECASE
)
# What was thought once: "A seemed right at first, but ...".
_EARLIER = re.compile(r"\b(?:at first|initially|first thought|at first glance)\b", re.IGNORECASE)
# What takes an answer back at once: "supported? No", "B is wrong", "1: false", "A is less likely than B".
_DENIED = re.compile(
    r"""[\s"'`)\].]*(?:
    (?:[:=?]|-+>)[\s"'(]*(?:false|no|not|none|never|n/a|wrong|incorrect)\b
    |\s*[:=,-]?\s*(?:fals[oae]|falsch|faux|fausse|incorrect[oae]?|errad[oa]|errat[oa]|неверно|неправильно|错误|不对)\b|(?:[:=-]\s*)?✗|\?
    |\s(?:is|are|was|were|would\ be|seems|looks)\ (?:\w+ly\ )?(?:not|n't|wrong|incorrect|false|out|less|unlikely
    |possible|plausible|close|tempting|similar|attractive|excluded|eliminated|ruled|improbable|inconsistent)\b
    |(?:isn't|aren't|wasn't|weren't)\b|\s(?:no|nicht|ne|non|não)\s(?:es|está|sono|ist|sind|est|é|è|correct))""",
    re.IGNORECASE | re.VERBOSE,
)
_ON_CONDITION = re.compile(r"[\s,)\"'-]*(?:only\ )?(?:if|unless|when|provided|assuming|depending)\b", re.IGNORECASE)
_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|except|nevertheless|nonetheless|that said|yet)\b", re.IGNORECASE
)
_OR = re.compile(
    r"""["')\].]*\s*(?:/|\||,|&|-|\bor\b|\band\b|\bvs\.?)\s*(?:(?:and|or|maybe|perhaps|possibly|even)\b\s*)*["'(\[]*""",
    re.IGNORECASE,
)
_REST = re.compile(r"(?:\s+it\s+is\b)?[\s\"')\].!?,;:✓]*\Z")
_SET_OFF = re.compile(r"""["')\]]*\s*(?:[.,;:!\n(-]|\Z)""")
_ITEM = re.compile(
    r"[(\[]?([0-9]{1,2}|[A-Za-z])(?:[.):\]]|\s*(?:=|->|means\b|stands for\b|for (?=[a-z-]+[,;]))|\s-(?=\s))"
    r"\s*(?=\S)"
)
_MARKER = re.compile(
    r"(?<![\w(])[(\[]?([0-9]{1,2}|[A-Za-z])(?:[.):\]](?=\s)|\s*(?:=|->|means\b|stands for\b|for\b)|\s-(?=\s))"
)

_PIECE = re.compile(r"(?<=[^\s.])[.!](?=\s|\Z)|[;\n]+|,?\s+\b(?:but|however|although)\b,?")

_LAST_SENTENCE = re.compile(r"[.!?]\s+(?=[^.!?\n]{1,60}[.!?]?\s*\Z)")

_LINE_MARKER = re.compile(rf"(?m)^\W{{0,3}}{_MARKER.pattern}")
_BEGINS_A_LIST = re.compile(r"[(\[]?(?:[0-9]|[A-Za-z])[.):\]]\s")
_SENTENCE = re.compile(r"(?<=[\w)\"'])[.!?]\s+|\n")
_DIGITS = re.compile(r"\d+")
_DEEPEST = 4
_MARK_ENDS_LINE = re.compile(r"""[(\[]?(?:[0-9]{1,2}|[A-Za-z])[.)\]"']*[ \t]*(?:\n|\Z)""")
_FIRST_ITEM = re.compile(r"[(\[]?1[.):]\s+(?:first|step|check|the question|misinterpretation)\b", re.IGNORECASE)

_SHORT_LINE = 200
_ENDS_WITH_LETTER = re.compile(r"[^.!?;,:\n()]{1,120}\(([A-Z])\)\W*")
_A_FEW = 3
_OF_ANSWER = re.compile(
    r"\b(?:the|this) (?:candidate )?(?:answer|response|claim|statement) [^.!?;\n]{1,200}", re.IGNORECASE
)
_ASKED_KEYS = frozenset(["question", "prompt", "query", "options", "claim", "statement"])


@dataclass(frozen=True, slots=True)
class _Candidate:
    value: str
    start: int
    end: int
    basis: str
    final: bool = False


_TOKEN_REPEATED = re.compile(r"\A(\w{1,20})(?:[\s,]{1,2}\1\b){2,}\W{0,3}\Z", re.IGNORECASE)


def choose(reply: str, choices: Choices, *, cut: bool = False) -> Reading:
    """Read which option a reply chooses; see the top of this module for the rules.

    Args:
        reply: all that the model wrote.
        choices: what it may choose among.
        cut: whether the reply ended because it had become too long.
    """
    spoken = body(reply)
    if isinstance(spoken, Reading):
        return spoken
    structured, remainder = _read_json(spoken, choices)
    text = _TOKEN_REPEATED.sub(r"\1", plain(remainder))
    if structured is None:
        return _read_form(text, choices) or _read_text(text, choices, cut)
    answers = {c.value for c in _candidates(text, choices)}
    if structured.readable and not remainder.strip():
        # `{"verdict": "factual", "reason": "... the answer is hallucinated"}`
        whole = whole_object(spoken)
        reasons = [text for text in _texts_in(whole) if len(text.split()) > _A_FEW] if whole is not None else []
        statements = [statement for text in reasons for statement in _OF_ANSWER.findall(plain(text))]
        stated = choices.stated("\n".join(statements)) if statements else set()
        answers |= stated if structured.value not in stated else set()
    at_odds = structured.readable and (answers - {structured.value} or (not answers and TAKES_BACK.search(text)))
    return unreadable(CONTRADICTION) if at_odds else structured


def _read_form(text: str, choices: Choices) -> Reading | None:
    """Read boxes, tables, fields and shares; None of any other text."""
    if not any(mark in text for mark in FORM_MARKS) and "(" not in text:
        return None

    def named(name: str) -> str | None:
        answer = choices.at(name)
        is_whole = answer is not None and answer.value not in (SEVERAL, OUTSIDE) and _REST.match(name, answer.end)
        return answer.value if answer is not None and is_whole else None

    of_all, value = likeliest(shares(text), named)
    if of_all:
        return unreadable(CONTRADICTION) if value is None else Reading(value, FORM)
    answers = ticked(text, named) or choices.answers_in_object(fields(text))
    if len(answers) > 1:
        return unreadable(CONTRADICTION)
    return Reading(answers.pop(), FORM) if answers else None


def _read_text(text: str, choices: Choices, cut: bool) -> Reading:
    candidates = list(_candidates(text, choices))
    if candidates and (behind := _taken_back(text, candidates, choices)) is not None:
        return _corrected(text[behind:], choices, cut)
    if cut:
        candidates = [c for c in candidates if not _REST.match(text, c.end) and not _may_go_on(c, text, choices)]
    if candidates:
        settled = _settle(candidates, text)
        if settled.basis == LEADING and declines(_opening(text)):
            return unreadable(REFUSAL)
        if settled.value is None or settled.basis != LEADING:
            return settled
        if choices.contradicts(text if is_foreign(text) else _first_sentence(text), settled.value):
            return unreadable(CONTRADICTION)
        opens = not cut and _opens(text, candidates, settled.value, choices)
        return Reading(settled.value, OPENING) if opens else settled
    if declines(text):
        return unreadable(REFUSAL) if cut else _beside_a_refusal(text, choices)
    return unreadable(CUT) if cut else _from_sentences(text, choices)


def _beside_a_refusal(text: str, choices: Choices) -> Reading:
    """Weaken a reading that stands beside "I cannot give a diagnosis, but": never more than soft."""
    pieces = [piece for piece in _PIECE.split(text) if not declines(piece)]
    remainder = ". ".join(pieces).strip()
    if not pieces or declines(remainder) or is_foreign(remainder) or doubts(remainder):
        return unreadable(REFUSAL)
    read = _read_text(remainder, choices, False)
    return Reading(read.value, STATEMENT) if read.value is not None else unreadable(REFUSAL)


def _taken_back(text: str, candidates: list[_Candidate], choices: Choices) -> int | None:
    """Where the last words end that take an answer back; None where there are none behind an answer."""
    first = min(c.end for c in candidates)
    ends = [correction.end() for correction in TAKES_BACK.finditer(text, first)]
    if not choices.says_no:
        # "No, A" takes back; "no, it is not" does not.
        ends += [m.end() for m in _NO_RATHER.finditer(text, first) if choices.at(text[m.end() : m.end() + 400])]
    return max(ends, default=None)


def _corrected(tail: str, choices: Choices, cut: bool) -> Reading:
    """Weaken a reading behind words that took an answer back: never more than soft, unless called the answer."""
    read = _read_text(tail, choices, cut)
    if read.value is None:
        return read if read.basis in (REFUSAL, DOUBT, CUT) else unreadable(CONTRADICTION)
    softer = {LINE: LEADING, OPENING: LEADING, SAID_BACK: STATEMENT}
    return Reading(read.value, softer.get(read.basis, read.basis))


def _may_go_on(candidate: _Candidate, text: str, choices: Choices) -> bool:
    """Whether a reply that was cut off may have begun to go through what is offered: "A. The car ..."."""
    if candidate.basis != LEADING:
        return False
    start = candidate.start - 1 if text[candidate.start - 1 : candidate.start] in ("(", "[") else candidate.start
    item = _BEGINS_A_LIST.match(text, start)
    if item is None:
        return False
    own = choices.at(text[item.end() : item.end() + 400])
    return (
        item[0].strip("([")[0] in "Aa"
        or own is None
        or own.value != candidate.value
        or text[item.end() + own.end :].lstrip(" .")[:1] != "\n"
    )


def _opens(text: str, candidates: list[_Candidate], value: str, choices: Choices) -> bool:
    """Whether the beginning of a reply is its answer whatever follows: set off, and not put in question by the rest."""
    remainder = text[min(c.end for c in candidates) :]
    if (
        not (choices.says_no or _SET_OFF.match(remainder))
        or choices.opposed(text, value)
        or (is_foreign(remainder) and not choices.says_no)
    ):
        return False
    if doubts(remainder) or _ON_CONDITION.match(remainder):
        return False
    near = " ".join(_SENTENCE.split(remainder, maxsplit=2)[:2])
    return choices.stated(text) == {value} or not (_CONTRAST.search(remainder) or leaves_open(near))


def _from_sentences(text: str, choices: Choices) -> Reading:
    if is_foreign(text):
        # Of its sentences nothing is known, but for a digit that it ends with, and the only one in it.
        alone = _ALONE_ABROAD.search(text)
        digit = choices.at(alone[1]) if alone is not None and len(_DIGITS.findall(text)) == 1 else None
        is_offered = digit is not None and digit.value not in (OUTSIDE, SEVERAL)
        if digit is not None and is_offered:
            return Reading(digit.value, MENTION)
        answers = choices.foreign_answers(text) or _only_letter(text, choices)
        if len(answers) == 1:
            return Reading(answers.pop(), STATEMENT)
        return unreadable(CONTRADICTION if answers else NOTHING)
    values = choices.stated(text)
    if len(values) > 1:
        return unreadable(CONTRADICTION)
    if values:
        firm = values == choices.restated_answers(text) and not (doubts(text) or _CONTRAST.search(text))
        return Reading(values.pop(), SAID_BACK if firm else STATEMENT)
    if doubts(text):
        unsure = choices.when_unsure(text)
        return unreadable(DOUBT) if unsure is None else Reading(unsure, STATED)
    values = choices.mentioned(text)
    if len(values) > 1:
        return unreadable(CONTRADICTION)
    return Reading(values.pop(), MENTION) if values else unreadable(NOTHING)


def _only_letter(text: str, choices: Choices) -> set[str]:
    """The option whose letter stands in brackets at the end of one sentence that says nothing of another."""
    letter = _ENDS_WITH_LETTER.fullmatch(text)
    answer = choices.at(f"({letter[1]})") if letter is not None else None
    return {answer.value} if answer is not None and answer.value not in (OUTSIDE, SEVERAL) else set()


def _opening(text: str) -> str:
    return text[:300]


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\w\w)[.!?](?=\s)|\n|\bbut\b", text, maxsplit=1)[0]


def _read_json(text: str, choices: Choices) -> tuple[Reading | None, str]:
    """Read the JSON of a reply, if it has an answer field, and return it with the text without that JSON."""
    whole = whole_object(text)
    objects, remainder = ([(text, whole)], "") if whole is not None else objects_in(text)
    readings_by_object = [_read_object(fields, choices) for _, fields in objects]
    readings = {reading for reading in readings_by_object if reading is not None}
    if not readings:
        # Of an object without an answer only its texts may say something; its keys and flags are no sentences.
        return None, text if whole is None else "\n".join(_texts_in(whole))
    return (readings.pop() if len(readings) == 1 else unreadable(CONTRADICTION)), remainder


def _texts_in(fields: Mapping[str, Any]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, str) and key.casefold() not in _ASKED_KEYS:
            yield value


def _read_shares(fields: Mapping[str, Any], choices: Choices) -> Reading | None:
    """Read `{"yes": 0.08, "no": 0.92}`; None where not all values are numbers of two answers or more."""
    numbers = {key: value for key, value in fields.items() if type(value) in (int, float)}
    if len(numbers) < len(fields):
        return None

    def named(name: str) -> str | None:
        answer = choices.at(name)
        return answer.value if answer is not None and _REST.match(name, answer.end) else None

    of_all, value = likeliest(numbers, named)
    if not of_all:
        return None
    return unreadable(CONTRADICTION) if value is None else Reading(value, JSON)


def _read_object(fields: Mapping[str, Any], choices: Choices, depth: int = 0) -> Reading | None:
    """Answer fields of an object, be it in an object within it; None where it has none."""
    if (by_share := _read_shares(fields, choices)) is not None:
        return by_share
    values = [value for key, value in fields.items() if is_answer_field(key)]
    decisive = [value for value in values if type(value) is not float]
    values = decisive or values  # "score": 0.77 beside an answer is how sure the model is
    own = set() if values else choices.answers_in_object(fields)
    if isinstance(fields, Twice) and (values or own):
        return unreadable(CONTRADICTION)
    if len(own) == 1:
        return Reading(own.pop(), JSON)
    readings = {_read_value(value, choices, depth) for value in values}
    if not values and depth < _DEEPEST:
        inner = (_read_object(value, choices, depth + 1) for value in fields.values() if isinstance(value, dict))
        readings = {reading for reading in inner if reading is not None}
    if not readings:
        return None
    return readings.pop() if len(readings) == 1 else unreadable(CONTRADICTION)


def is_answer_field(key: str) -> bool:
    """Whether a JSON field of this name holds an answer.

    Example:
        >>> is_answer_field("Final Answer"), is_answer_field("reason")
        (True, False)
    """
    return re.sub(r"[\s_-]+", "_", key.strip().casefold()) in FIELDS


def _read_value(value: object, choices: Choices, depth: int) -> Reading:
    if isinstance(value, dict) and depth < _DEEPEST:
        return _read_object(value, choices, depth + 1) or unreadable(NOTHING)
    if isinstance(value, list) and len(value) == 1:
        [value] = value
    text = value if isinstance(value, str) else choices.json_text(value)
    if text is None:
        return unreadable(NOTHING)
    inner = choose(text, choices)
    return Reading(inner.value, JSON) if inner.readable else inner


def _candidates(text: str, choices: Choices) -> Iterator[_Candidate]:
    head = _head(text, choices)
    if head is not None:
        yield head
    for pattern, final in ((_FINAL, True), (_STATED, False)):
        for slot in pattern.finditer(text):
            if _OPEN.search(text, max(0, slot.start() - 60), slot.start()):
                continue
            candidate = _after(text, slot.end(), choices)
            if candidate is not None and (head is None or candidate.start >= head.end):
                basis = LEADING if _is_limited(text, candidate.end) else STATED
                yield replace(candidate, basis=basis, final=final)
    yield from _abroad(text, choices)
    start = 0
    for line in text.splitlines(keepends=True):
        if len(line) <= _SHORT_LINE and start:
            candidate = _after(text, start, choices)
            if (
                candidate is not None
                and candidate.end <= start + len(line)
                and _REST.match(line, candidate.end - start)
                and not _goes_on_in_a_list(text, candidate.start)
            ):
                yield replace(candidate, basis=LINE)
        start += len(line)
    last = _LAST_SENTENCE.search(text)
    # In "A. pink\nB. red" and in "A. pink B. red" the last sentence is not "red".
    if last and not _MARK_ALONE.search(text, text.rfind("\n", 0, last.start()) + 1, last.start()):
        candidate = _after(text, last.end(), choices)
        if candidate is not None and _REST.match(text, candidate.end):
            yield replace(candidate, basis=LINE)


def _abroad(text: str, choices: Choices) -> Iterator[_Candidate]:
    """Digits and letters that are stated in another language, where nothing behind them could deny them."""
    for slot in _ABROAD.finditer(text):
        near = _CLAUSE_END.split(text[max(0, slot.start() - 8) : slot.start("said")])[-1]
        ends = _ENDS_ABROAD.match(text, slot.end()) or _own_text_behind(text, slot, choices)
        if (
            not ends
            or _OPEN.search(text, max(0, slot.start() - 60), slot.start())
            or _DENIED.match(text, slot.end())
            or denied_abroad(near)
        ):
            continue
        answer = choices.at(f"{slot['said']}\n")
        if answer is not None and answer.value != OUTSIDE:
            yield _Candidate(answer.value, slot.start("said"), slot.end(), STATED)


def _own_text_behind(text: str, slot: re.Match[str], choices: Choices) -> bool:
    """Whether an option's own text follows its letter, "la d) Ecografía", or it stands in brackets, not denied."""
    letter, tail = slot["said"].upper(), text[slot.end() : slot.end() + 200]
    answer = choices.at(f"({letter}) {tail.lstrip(_BETWEEN)}")
    if answer is None or answer.value != letter:
        return False
    bracketed = text[slot.start("said") - 1 : slot.start("said")] == "(" and tail.startswith(")")
    return answer.end > len(f"({letter}) ") or (bracketed and not denied_abroad(_CLAUSE_END.split(tail)[0]))


def _head(text: str, choices: Choices) -> _Candidate | None:
    at = 0
    for _ in range(3):
        candidate = _after(text, at, choices, listed=True)
        if candidate is not None:
            if _FINAL.search(text, at, candidate.start) or _STATED.search(text, at, candidate.start):
                return None  # it is stated, and found there
            whole = _REST.match(text, candidate.end)
            return replace(candidate, basis=LINE if whole else LEADING)
        lead = _LEAD_IN.match(text, at)
        if lead is None:
            return None
        at = lead.end()
    return None


def _after(text: str, at: int, choices: Choices, *, listed: bool = False) -> _Candidate | None:
    """The answer that stands at a place, behind words such as "definitely" and "option"."""
    # The words may be part of the answer: "certainly not", "option".
    skipped = _SKIPPED.match(text, at)
    places = dict.fromkeys((at, at + len(_leading_blanks(text, at)), skipped.end() if skipped else at))
    for start in places:
        answer = choices.at(text[start : start + 400])
        if answer is None:
            continue
        end = start + answer.end
        if _is_item(text, start, listed):
            return None
        if _DENIED.match(text, end):
            return None
        value, end = _or_several(text, end, answer.value, choices)
        return None if value is None else _Candidate(value, start, end, STATED)
    return None


def _is_item(text: str, start: int, listed: bool) -> bool:
    """Whether a list or a legend begins here, so that its number or letter is no answer: the next item follows.

    Args:
        text: plain.
        start: of what may be an item.
        listed: whether the next item may also stand further on in the line; else only in front of one.
    """
    if _FIRST_ITEM.match(text, start):
        return True
    item = _ITEM.match(text, start)
    if item is None:
        return False
    if not listed and _stands_alone(text, start, item[1]):
        return False
    following = str(int(item[1]) + 1) if item[1].isdecimal() else chr(ord(item[1]) + 1)
    inline = listed and item[1] in ("0", "1", "A", "a")
    return _last_markers(text, inline).get(following, -1) >= item.end()


def _stands_alone(text: str, start: int, mark: str) -> bool:
    """Whether a mark ends the line that it does not begin, or the item before it comes behind: "The answer is (B)."."""
    if not re.search(r"\w", text[text.rfind("\n", 0, start) + 1 : start]):
        return False
    if _MARK_ENDS_LINE.match(text, start):
        return True
    before = str(int(mark) - 1) if mark.isdecimal() else chr(ord(mark) - 1)
    return _first_markers(text).get(before, -1) > start


def _goes_on_in_a_list(text: str, start: int) -> bool:
    """Whether a line is an item whose forerunner stands on a line above."""
    item = _ITEM.match(text, start)
    if item is None or item[1] in ("0", "1", "A", "a"):
        return False
    before = str(int(item[1]) - 1) if item[1].isdecimal() else chr(ord(item[1]) - 1)
    return _first_markers(text).get(before, len(text)) < start


def _is_limited(text: str, end: int) -> bool:
    """Whether the sentence of an answer goes on with a condition or a contrast: "B if it is red", "yes, but"."""
    sentence_end = _SENTENCE.split(text[end : end + 200], maxsplit=1)[0]
    return bool(_ON_CONDITION.match(sentence_end) or _CONTRAST.search(sentence_end))


@lru_cache(maxsize=8)
def _first_markers(text: str) -> dict[str, int]:
    """Where each number and letter stands for the first time as the mark of a line."""
    positions: dict[str, int] = {}
    for marker in _LINE_MARKER.finditer(text):
        positions.setdefault(marker[1], marker.start())
    return positions


@lru_cache(maxsize=8)
def _last_markers(text: str, inline: bool) -> dict[str, int]:
    """Where each number and letter stands for the last time as the mark of an item."""
    pattern = _MARKER if inline else _LINE_MARKER
    return {marker[1]: marker.start() for marker in pattern.finditer(text)}


_BLANKS = re.compile(r"""[\s"'(\[:=,#-]*(?:->)?[\s"'(\[]*""")


def _leading_blanks(text: str, at: int) -> str:
    blanks = _BLANKS.match(text, at)
    return blanks[0] if blanks else ""


def _or_several(text: str, end: int, value: str, choices: Choices) -> tuple[str | None, int]:
    """The value and its end, or `SEVERAL` where another one follows: "0 or 1", "A, B", "0 (hallucinated)".

    None where it is denied together with the other one: "A and C are wrong". The same in other words belongs to it:
    "1 - hallucinated".
    """
    joined = _OR.match(text, end) or re.compile(r"""["')\]]*\s*\(\s*""").match(text, end)
    if joined is None or joined.end() == end:
        return value, end
    second = choices.at(text[joined.end() : joined.end() + 400])
    if second is None:
        return value, end
    if second.value == value:
        return value, joined.end() + second.end if "-" in joined[0] or "(" in joined[0] else end
    if _DENIED.match(text, joined.end() + second.end):
        return (None if re.search(r"and|or|&", joined[0], re.IGNORECASE) else value), end
    return SEVERAL, end


def _settle(candidates: list[_Candidate], text: str) -> Reading:
    if any(c.basis == STATED for c in candidates):
        # "A and B are paired organs, so the answer is C"
        candidates = [c for c in candidates if c.value != SEVERAL or c.basis != LEADING]
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
        if _EARLIER.search(text, ordered[i - 1].end, ordered[i].end):
            return i
    return 0


def spoken_number(value: object) -> str | None:
    """An integer of JSON as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return str(int(value)) if float(value).is_integer() else None
