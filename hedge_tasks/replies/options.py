"""Options of a multiple-choice question, by their letter or their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from hedge_tasks.replies.abroad import states_abroad
from hedge_tasks.replies.choice import OUTSIDE, SEVERAL, AnswerMatch, choose, spoken_number
from hedge_tasks.replies.reading import ECHO, Reading, unreadable
from hedge_tasks.replies.refusal import leaves_open
from hedge_tasks.replies.text import is_foreign, normalise, plain

_TWO = 2
_LONGEST_LIST = 2_000
_DIGIT = re.compile(r"\d")
_NEAR = 600
_NUMBERS = dict(
    enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
)
_ARTICLES = frozenset(("a", "an", "the"))
# A number is one word with its decimals, its fraction, its range and what it is compared by: "2" is not in "0.2".
_WORD = re.compile(r"(?:[<>≤≥~≈±]\s*=?\s*|(?<![\w)])-)?\d+(?:[.,:/×x^-]\d+)*|[^\W\d_][^\W_]*(?:'[a-z]+)?|[.,;:!?✓✗\n]")
_LETTER = re.compile(
    r"\(([A-Za-z])\)|\[([A-Za-z])\]|([A-Z])(?=(?!['’]\w)\s*(?:[).:,;!?\]\"'\n/]|-\s|\Z)"
    r"|\s+(?:or|and|because|since|as|is|are|over|for|fits|seems|looks|here|it\s+is)\b)|([a-z])(?:[.):](?=\s)"
    r"|[.)]?(?=\n|\Z))"
)
_LETTER_ANYWHERE = re.compile(
    r"(?<!\w)\(([A-Z])\)|\b(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s+\(?([A-Z])\b|(?m:^|[,;|/]\s)([A-Z])[.):](?=\s)"
    r"|\b([A-Z])(?= (?:is|are|was) (?:\w+ly )?(?:the )?(?:right|correct|best|answer|in|wrong)\w*)"
    r"|\b(?i:(first|second|third|fourth|fifth|last) (?:option|choice|alternative))\b(?!\s+of\b)"
)
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "final": -1} | {
    "1st": 0, "2nd": 1, "3rd": 2, "4th": 3, "5th": 4
}  # fmt: skip
_NUMBERED = re.compile(r"(?:option|choice|alternative|number|no\.)\s*#?\s*\(?([1-9])\)?(?=\W*(?:\n|\Z))", re.IGNORECASE)
_ORDINAL = re.compile(
    r"(?:the\s+)?(first|second|third|fourth|fifth|1st|2nd|3rd|4th|5th|last|final)\s+(?:option|choice|one|alternative)\b(?!\s+of\b)",
    re.IGNORECASE,
)
_JOINED = re.compile(
    r"[)\s]*(?:,|\bor\b|\bnor\b|\band\b)\s*(?:or\b|nor\b|and\b)?\s*(?:(?:option|the|an?)\s*)?", re.IGNORECASE
)
_IMPRESSION = re.compile(r"(?im)^[^\w\n]*(?:impression|conclusion|summary|final diagnosis)\s*:")
# "B. red ✓" and "✓ B"
_TICKED = re.compile(r"(?m:^)\W{0,4}([A-Z])\b[^\n✓✗]{0,200}✓|✓\s*\(?([A-Z])\b")
_BEFORE_TEXT = re.compile(r"[ .):,\-\"'\]]*")
_PUNCTUATED = re.compile(r"\s*(?:[^\w\s]|\Z)|\n")
_SENTENCE_END = re.compile(r"(?<=\w\w)[.!?](?=\s)|\n")
_ASKED = re.compile(r"[^.!\n]{0,200}\?")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_ZEROS = re.compile(r"(?<=\d)\.0+\Z")
_BREAK = re.compile(r"[.,;!?\n]")
_NEXT = re.compile(r"[\s,;/|]*\(?[A-Z][).:]")
_AFTER_TEXT = re.compile(
    r"\s*(?:[.;:!?)\]\"'\n/&|✓✗]|,(?!\d)|\s-|-(?!\w)|\Z|(?:because|since|as|and|or|which|so|in|on|with)\b)"
)
# "T1" in "T1-weighted" is no mention: what is joined to an option makes it another thing.
_AFTER_MENTION = re.compile(r"(?!-\w|\s*(?:weighted|like|shaped|type|based|free|sized)\b|\w)")
_DENIES_BEFORE = re.compile(
    r"(?:\w-|\b(?:least likely|unlikely|wrong|incorrect|false)(?: \w+){0,3} (?:is|was|be)|\b(?:no|without) (?:evidence"
    r"|features?|signs?|indications?|suggestion) of|\b(?:not|n't|nor|neither|rather than|instead of|without|never"
    r"|eliminate|exclude|rule out|unlike|than|no|without|cannot|\w+n't)\b"
    r"|\b(?:isn't|aren't|wasn't|less|more|greater|smaller|larger|at least|at most|up to|over)"
    r"|\b(?:below|above|beneath|beside|behind|near|next to|adjacent to|close to|left of"
    r"|right of|in front of|under|between|shown in|figure))(?:\s+(?:a|an|the|be|it|is|are|there|any|really|option"
    r"|go with|choose|pick|select|say|take))*"
    r"[\s(\"']*\Z",
    re.IGNORECASE,
)
_DENIES_AFTER = re.compile(
    r"[)\]\"'.:-]*\s*✗|[)\]\"'.]*\s*(?:\w+\s+){0,3}?(?:(?:is|are|was|does|do|would be|can|could)\s*"
    r"(?:not|n't|tempting|wrong|incorrect|close|too|false|less|unlikely)|isn't|aren't|doesn't|cannot|can't"
    r"|[:-]\s*(?:no|not|wrong|incorrect|false)\b|is out)"
    r"|[)\]\"']*\s+(?:is|are|seems?|looks?)\s+(?:\w+\s+)?(?:tempting|plausible|attractive)\b",
    re.IGNORECASE,
)
# What a text comes to, behind which its option stands: "Therefore, the most likely diagnosis is C".
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|in conclusion|overall),? (?:the|this|that|it|these)\b"
    r"(?: (?!not\b|least\b|less\b|wrong\b|incorrect\b|un|only\b|other\b|second\b|tempting\b)[\w-]+){0,6}?"
    r" (?:is|are|was|shows|must be|points to|corresponds to|fits)(?: (?:most|best))?(?: (?:likely|consistent with))? "
    r"|\b(?:best|closest) (?:fit|match|description|explanation) (?:is|would be) "
    r"|\bi (?:would )?(?:strongly )?favou?r |\bcorrespond(?:s|ing) to (?:option )?"
    r"|\b(?:findings?|features|appearances?|changes|signs) (?:is|are) (?:most |highly )?"
    r"(?:consistent|compatible|in keeping) with |\bmakes? (?=[^.;\n]{1,60}? (?:by far )?the most likely)"
    r"|\bdiagnosis (?:is|would be)(?: most)?(?: (?:likely|consistent with|compatible with))? "
    r"|\bmeans (?:that )?(?:this|that|it) is |\b(?:reads|measures|is about|is approximately) ",
    re.IGNORECASE,
)
# A count in front of what it is made of, or called one.
_COUNTED = re.compile(
    r"\b(?:there (?:is|are)|i (?:can )?(?:see|count)) (?P<of>\w+)(?: [\w-]+){1,4}:|\bmakes (?P<all>\w+)(?: [\w-]+){0,4}"
    r" (?:in total|altogether|in all)\b|\btotal of (?P<total>\w+)\b",
    re.IGNORECASE,
)
_NOT_CONCLUDED = re.compile(
    r"\b(?:if|unlikely|least|less|initial\w*|first|wrong\w*|incorrect\w*|one|differential|alternative|other|another"
    r"|previous|clinical"
    r"|suspected|not|never|no|neither|second|tempting|only|but)\b|n't\b",
    re.IGNORECASE,
)
_AN_OPTION = re.compile(r"(?:(?:an?|the|option|choice)\s+)?", re.IGNORECASE)
# The text of an option without what all of them share, where nothing but a sign of its unit follows: "35", "35°".
_AFTER_CORE = re.compile(r"\s*°?\s*(?:[.;!)\]\"']+\s*)?(?:\n|\Z)")


@dataclass(frozen=True)
class Options:
    """The options by letter; see `choice.Choices`."""

    texts: Mapping[str, str]
    says_no: ClassVar[bool] = False

    @cached_property
    def _by_words(self) -> dict[tuple[str, ...], str]:
        return {words: letter for letter, text in self.texts.items() if (words := _words(text))}

    @cached_property
    def _by_core(self) -> dict[tuple[str, ...], str]:
        """The options' words without those that all of them begin or end with, as far as they tell them apart."""
        every = list(self._by_words)
        if len(every) < _TWO or len(every) < len(self.texts):
            return {}
        front, back = _shared(every), _shared([words[::-1] for words in every])
        cores = {words[front : len(words) - back]: letter for words, letter in self._by_words.items()}
        return cores if (front or back) and len(cores) == len(every) and all(cores) else {}

    def at(self, text: str) -> AnswerMatch | None:
        if match := _LETTER.match(text):
            letter = next(filter(None, match.groups())).upper()
            if letter not in self.texts:
                # "I" and "a" are words before they are options.
                return AnswerMatch(OUTSIDE, match.end()) if letter != "I" else None
            following = text[match.end() :]
            own_text = following.lstrip(" )]")
            own = own_text.casefold().startswith(self.texts[letter].casefold())
            value = self._with_text(letter, following)
            after = _SENTENCE_END.split(own_text, maxsplit=1)[0]
            if value == letter and not own and not _PUNCTUATED.match(own_text) and is_foreign(after):
                return None  # "(A) es incorrecta"
            return AnswerMatch(value, match.end() + (self._own_text(letter, following) if value == letter else 0))
        if match := _ORDINAL.match(text):
            letters = sorted(self.texts)
            at = _ORDINALS[match[1].casefold()]
            return AnswerMatch(letters[at] if at < len(letters) else OUTSIDE, match.end())
        if (match := _NUMBERED.match(text)) and not any(map(_DIGIT.search, self.texts.values())):
            letters = sorted(self.texts)
            return AnswerMatch(letters[int(match[1]) - 1] if int(match[1]) <= len(letters) else OUTSIDE, match.end())
        return self._text_at(text)

    def json_text(self, value: object) -> str | None:
        return spoken_number(value)

    def answers_in_object(self, fields: Mapping[str, Any]) -> set[str]:
        return {letter for letter, text in self.texts.items() for name in (letter, text) if _is_chosen(fields, name)}

    def restated_answers(self, text: str) -> set[str]:
        return set()

    def opposed(self, text: str, value: str) -> bool:
        first = _SENTENCE_END.split(text, maxsplit=1)[0]
        named = self.mentioned(first)
        if any(_DENIES_AFTER.match(text, match.end()) for match in self._stands_for(value).finditer(text)):
            return True
        return bool(self.stated(text) - {value}) or bool(named and value not in named)

    def _stands_for(self, letter: str) -> re.Pattern[str]:
        """Pattern of how an option is called further on: "this", its letter or its text."""
        return re.compile(rf"(?i:\b(?:this|that|which|{re.escape(self.texts[letter])})\b)|\b{letter}\b")

    def stated(self, text: str) -> set[str]:
        """Letters that are named and not denied: in brackets, behind "option", in front of a line.

        Where some are ticked, only these.
        """
        if "✓" in text:
            ticked = {tick[1] or tick[2] for tick in _TICKED.finditer(text)} & set(self.texts)
            return ticked
        letters = {letter for letter, _ in self._letters(text)}
        return self._concluded(text) or letters

    def _letters(self, text: str) -> Iterator[tuple[str, int]]:
        """Letters that are named and not denied, with their ends."""
        before, was_denied = 0, False
        for match in _LETTER_ANYWHERE.finditer(text):
            letter = next(filter(None, match.groups()))
            if (at := _ORDINALS.get(letter.casefold())) is not None and at < len(self.texts):
                letter = sorted(self.texts)[at]
            if letter not in self.texts:
                continue
            # "It is not (A) or (D)" denies both.
            joined = was_denied and _JOINED.fullmatch(text, before, match.start())
            was_denied = bool(joined) or self._denied(text, match.start(), match.end(match.lastindex or 0), letter)
            before = match.end()
            if not was_denied:
                yield letter, before

    def _concluded(self, text: str) -> set[str]:
        """The options behind words that say what a text comes to; the last one of them that names any."""
        counted = {self._by_words.get((_normal(next(filter(None, m.groups()))),)) for m in _COUNTED.finditer(text)}
        if len(counted) == 1 and all(words[0].isalnum() and len(words) == 1 for words in self._by_words):
            return {letter for letter in counted if letter is not None}
        letters: set[str] = set()
        for conclusion in _CONCLUDES.finditer(text):
            begun = _BREAK.split(text[max(0, conclusion.start() - 200) : conclusion.end()])[-1]
            skipped = _AN_OPTION.match(text, conclusion.end())
            start = skipped.end() if skipped else conclusion.end()
            named = self.at(text[start : start + 400])
            if named is None or named.value not in self.texts or _NOT_CONCLUDED.search(begun):
                continue
            end = start + named.end
            following = text[end : end + _NEAR]
            others = self.mentioned(following) | {value for value, _ in self._letters(following)}
            if leaves_open(begun) or _DENIES_AFTER.match(text, end) or others - {named.value}:
                return set()
            letters.add(named.value)
        return letters if len(letters) == 1 else set()

    def contradicts(self, text: str, value: str) -> bool:
        return bool(self.stated(text) - {value})

    def mentioned(self, text: str) -> set[str]:
        """Options whose text stands somewhere and is not denied; "red" in "dark red" is no mention."""
        text = _IMPRESSION.split(text)[-1]
        tokens = [(match[0], match.start(), match.end()) for match in _WORD.finditer(text)]
        tokens = [token for token in tokens if token[0].casefold() not in _ARTICLES]
        words = [_normal(token[0]) for token in tokens]
        sizes = sorted({len(option) for option in self._by_words}, reverse=True)
        letters, at, before, was_denied = set(), 0, 0, False
        while at < len(words):
            for size in sizes:
                letter = self._by_words.get(tuple(words[at : at + size])) if at + size <= len(words) else None
                if letter is not None:
                    start, end = tokens[at][1], tokens[at + size - 1][2]
                    # "It is not the MCA or the ACA" denies both.
                    joined = was_denied and _JOINED.fullmatch(text, before, start)
                    was_denied, before = bool(joined) or self._passed_over(text, start, end), end
                    if not was_denied and _AFTER_MENTION.match(text, end):
                        letters.add(letter)
                    at += size
                    break
            else:
                at += 1
        # "The left lung is clear. The right one is not.": the right one is named, too.
        cores = {core[0]: letter for core, letter in self._by_core.items() if len(core) == 1 and core[0].isalpha()}
        named = set(words) & (cores.keys() - _NUMBERS.values())
        return letters | {cores[word] for word in named} if letters else letters

    def foreign_answers(self, text: str) -> set[str]:
        """The options whose text stands in it, where the language is known and none of its words put them in doubt."""
        if not states_abroad(text):
            return set()
        return (
            {self._by_text[match[0].casefold()] for match in self._any_text.finditer(text)} if self._by_text else set()
        )

    @cached_property
    def _by_text(self) -> dict[str, str]:
        return {text.casefold(): letter for letter, text in self.texts.items() if text.strip()}

    @cached_property
    def _any_text(self) -> re.Pattern[str]:
        longest = sorted(self._by_text, key=len, reverse=True)
        return re.compile(
            rf"(?<![A-Za-zÀ-ɏЀ-ӿ0-9])(?:{'|'.join(map(re.escape, longest))})(?![A-Za-zÀ-ɏЀ-ӿ0-9])", re.IGNORECASE
        )

    def when_unsure(self, text: str) -> str | None:
        return None

    def _passed_over(self, text: str, start: int, end: int) -> bool:
        """Whether what stands there is denied, only a possibility, or where something else is."""
        if _DENIES_BEFORE.search(text, max(0, start - 40), start) or _DENIES_AFTER.match(text, end):
            return True
        if _ASKED.match(text, end):
            return True
        return leaves_open(_BREAK.split(text[max(0, start - 200) : start])[-1])

    def _denied(self, text: str, start: int, end: int, letter: str) -> bool:
        if self._passed_over(text, start, end):
            return True
        own = re.compile(r"[).:\s]*" + re.escape(self.texts[letter]), re.IGNORECASE).match(text, end)
        return bool(_DENIES_AFTER.match(text, own.end() if own else end))

    def _text_at(self, text: str) -> AnswerMatch | None:
        tokens = [(match[0], match.end()) for match in _WORD.finditer(text[:200])]
        tokens = [token for token in tokens if token[0].casefold() not in _ARTICLES]
        words = [_normal(word) for word, _ in tokens]
        if not words or text[:1] in ".,;:!?":
            return None
        for size in range(min(len(words), max(map(len, self._by_words), default=0)), 0, -1):
            letter = self._by_words.get(tuple(words[:size]))
            if letter is not None:
                end = tokens[size - 1][1]
                return AnswerMatch(letter, end) if _AFTER_TEXT.match(text, end) else None
        for size in range(min(len(words), max(map(len, self._by_core), default=0)), 0, -1):
            letter = self._by_core.get(tuple(words[:size]))
            if letter is not None and _AFTER_CORE.match(text, tokens[size - 1][1]):
                return AnswerMatch(letter, tokens[size - 1][1])
        return None

    def _with_text(self, letter: str, text: str) -> str:
        """The letter, or `SEVERAL` where the text behind it is another option's: "(B) blue"."""
        if "\n" in text[:3]:
            return letter
        text = text.lstrip(" .):,-\"']")
        other_text = self._text_at(text) or self._listed(text)
        if other_text is None:
            return letter
        return letter if other_text.value == letter and not _NEXT.match(text, other_text.end) else SEVERAL

    def _own_text(self, letter: str, text: str) -> int:
        """Characters up to where a letter's own text ends, which may follow it: "B. red"; 0 where it does not."""
        blank = _BEFORE_TEXT.match(text)
        start = blank.end() if blank else 0
        answer = self._text_at(text[start:])
        return start + answer.end if answer is not None and answer.value == letter else 0

    def _listed(self, text: str) -> AnswerMatch | None:
        """The text of an option in front of the next letter, as a repeated question has it: "pink (B) red"."""
        after = _NEXT.search(text)
        answer = self._text_at(text[: after.start()]) if after else None
        return answer if after and answer and _NEXT.match(text, answer.end) else None


def _is_chosen(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("yes", "true", "correct"))


def _shared(every: Sequence[tuple[str, ...]]) -> int:
    """Words that all begin with."""
    count = 0
    for words in zip(*every, strict=False):
        if len(set(words)) > 1:
            break
        count += 1
    return count


def _words(text: str) -> tuple[str, ...]:
    kept_words = (word for word in _WORD.findall(text) if word.casefold() not in _ARTICLES)
    return tuple(_normal(word) for word in kept_words if len(word) > 1 or word.isalnum())


def _normal(word: str) -> str:
    word = _THOUSANDS.sub("", word.replace(" ", ""))
    word = _ZEROS.sub("", word)
    return _NUMBERS.get(int(word), word) if word.isdecimal() and len(word) < 4 else word.casefold()


def read_option(reply: str, options: Mapping[str, str], *, cut: bool = False) -> Reading:
    """The letter of the option that a reply takes, or why none can be read.

    Args:
        reply: all that the model wrote.
        options: text of each option by its letter (upper case). "house" is read as "a house", "2" as "two".
        cut: whether the reply ended because it had become too long.

    Example:
        >>> print(read_option("B. The car is red. (A) is close but not right.", {"A": "pink", "B": "red"}))
        B (opening)
    """
    if _repeats(reply, options):
        return unreadable(ECHO)
    return choose(reply, Options(options), cut=cut)


def _repeats(reply: str, options: Mapping[str, str]) -> bool:
    """Whether a reply is the list of the options and nothing else."""
    if len(reply) > _LONGEST_LIST or len(options) < _TWO or set(plain(reply)) & set("✓✗["):
        return False
    every = [word for letter, text in options.items() for word in (letter, text)]
    return normalise(reply) in (normalise(" ".join(every)), normalise(" ".join(options.values())))
