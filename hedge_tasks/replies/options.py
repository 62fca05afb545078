"""Options of a multiple-choice question, by their letter or their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hedge_tasks.replies.clauses import AFFIRMED, Clause
from hedge_tasks.replies.reading import ECHO, Reading, unreadable
from hedge_tasks.replies.statements import OUTSIDE, SEVERAL, AnswerMatch, Answers, choose
from hedge_tasks.replies.text import is_foreign, normalise, plain

_TWO = 2
_LONGEST_LIST = 2_000
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
    r"(?<!\w)\(([A-Z])\)|\b(?:[Oo]ption|[Cc]hoice)\s+\(?([A-Z])\b"
    r"|\b([A-Z])(?= (?:is|are|was) (?:\w+ly )?(?:the )?(?:right|correct|best|answer)\b)"
)
_ORDINAL = re.compile(
    r"(?:the\s+)?(first|second|third|fourth|fifth)\s+(?:option|choice|one|alternative)\b(?!\s+of\b)", re.I
)
_PLACES = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4}
_BEFORE_TEXT = re.compile(r"[ .):,\-\"'\]]*")
_PUNCTUATED = re.compile(r"\s*(?:[^\w\s]|\Z)|\n")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_ZEROS = re.compile(r"(?<=\d)\.0+\Z")
_AFTER_TEXT = re.compile(
    r"\s*(?:[.;:!?)\]\"'\n/&|✓✗]|,(?!\d)|\s-|-(?!\w)|\Z|(?:because|since|as|and|or|which|so|in|on|with)\b)"
)
# "T1" in "T1-weighted" is no mention: what is joined to an option makes it another thing.
_JOINED_ON = re.compile(r"-\w|\s*(?:weighted|like|shaped|type|based|free|sized|than)\b|\w")
_BESIDE = re.compile(
    r"\b(?:below|above|beneath|beside|behind|near|next to|adjacent to|close to|left of|right of|in front of|under"
    r"|between|than|at least|at most|up to|over|less|more|figure)(?:\s+(?:a|an|the))?[\s(\"']*\Z|\w-\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Options(Answers):
    """The options by letter."""

    texts: Mapping[str, str]

    @cached_property
    def _by_words(self) -> dict[tuple[str, ...], str]:
        return {spoken: letter for letter, text in self.texts.items() if (spoken := _words(text))}

    def marks(self) -> frozenset[str]:
        return frozenset(self.texts)

    def at(self, text: str) -> AnswerMatch | None:
        if match := _LETTER.match(text):
            return self._of_letter(next(filter(None, match.groups())).upper(), text, match.end())
        if match := _ORDINAL.match(text):
            letters, place = sorted(self.texts), _PLACES[match[1].casefold()]
            return AnswerMatch(letters[place] if place < len(letters) else OUTSIDE, match.end())
        return self._text_at(text)

    def _of_letter(self, letter: str, text: str, end: int) -> AnswerMatch | None:
        if letter not in self.texts:
            # "I" and "a" are words before they are options.
            return AnswerMatch(OUTSIDE, end) if letter != "I" else None
        following = text[end:]
        blank = _BEFORE_TEXT.match(following)
        behind = following[blank.end() if blank else 0 :]
        named = None if "\n" in following[:3] else self._text_at(behind, letter)
        if named is not None:
            return AnswerMatch(
                letter if named.value == letter else SEVERAL, end + len(following) - len(behind) + named.end
            )
        sentence = re.split(r"[.!?\n]", behind)[0]
        if not _PUNCTUATED.match(following.lstrip(" )]")) and is_foreign(sentence):
            return None  # "(A) es incorrecta"
        return AnswerMatch(letter, end)

    def in_object(self, some: Mapping[str, Any]) -> set[str]:
        return {letter for letter, text in self.texts.items() for name in (letter, text) if _is_chosen(some, name)}

    def said(self, every: list[Clause]) -> list[tuple[str, bool]]:
        """The options that affirmed clauses name, by letter or by text, where they name one and no clause another."""
        letters = {letter for clause in every for letter in self._named(clause)}
        return [(letter, False) for letter in letters]

    def _named(self, clause: Clause) -> Iterator[str]:
        """The options that a clause names and does not deny."""
        if clause.polarity != AFFIRMED:
            return
        for match in _LETTER_ANYWHERE.finditer(clause.original):
            letter = next(filter(None, match.groups()))
            if letter in self.texts:
                yield letter
        yield from (letter for letter, _, _ in self._mentions(clause.original))

    def _mentions(self, text: str) -> Iterator[tuple[str, int, int]]:
        """The options whose text stands in a text, with their places; "red" in "dark red" is no mention of "red"."""
        tokens = [(m[0], m.start(), m.end()) for m in _WORD.finditer(text) if m[0].casefold() not in _ARTICLES]
        spoken = [_normal(word) for word, _, _ in tokens]
        sizes = sorted({len(option) for option in self._by_words}, reverse=True)
        at = 0
        while at < len(spoken):
            size = next((len(key) for n in sizes if (key := tuple(spoken[at : at + n])) in self._by_words), 0)
            if size:
                start, end = tokens[at][1], tokens[at + size - 1][2]
                if not _JOINED_ON.match(text, end) and not _BESIDE.search(text[:start]):
                    yield self._by_words[tuple(spoken[at : at + size])], start, end
            at += size or 1

    def _text_at(self, text: str, letter: str | None = None) -> AnswerMatch | None:
        """The option whose text a text begins with, articles aside, or whether that of one letter does."""
        if not text or text[0] in ".,;:!?":
            return None
        tokens = [(m[0], m.end()) for m in _WORD.finditer(text[:200]) if m[0].casefold() not in _ARTICLES]
        spoken = [_normal(word) for word, _ in tokens]
        for size in range(min(len(spoken), max(map(len, self._by_words), default=0)), 0, -1):
            option = self._by_words.get(tuple(spoken[:size]))
            if option is not None:
                end = tokens[size - 1][1]
                return AnswerMatch(option, end) if option == letter or _AFTER_TEXT.match(text, end) else None
        return None


def _is_chosen(some: Mapping[str, Any], name: str) -> bool:
    value = some.get(name)
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("yes", "true", "correct"))


def _words(text: str) -> tuple[str, ...]:
    spoken = (word for word in _WORD.findall(text) if word.casefold() not in _ARTICLES)
    return tuple(_normal(word) for word in spoken if len(word) > 1 or word.isalnum())


def _normal(word: str) -> str:
    word = _ZEROS.sub("", _THOUSANDS.sub("", word.replace(" ", "")))
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
