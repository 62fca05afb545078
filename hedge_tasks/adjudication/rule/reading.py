"""From a text to sentences of clauses of canonical words, and which of them are affirmed and which denied."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from hedge_tasks.adjudication.rule.vocabulary import (
    ALIASES,
    ASKERS,
    COLORS,
    COMPARISONS,
    FAMILIES,
    INFLECTIONS,
    IRREGULAR,
    MAX_CHARACTERS,
    NEGATION_REACH,
    NEGATIONS,
    NUMBERS,
    ORDINALS,
    QUALIFIERS,
    ROLES,
    SHORTEST_STEM,
    STOP,
    UNITS,
)

_PIECE = re.compile(r"\d+\.\d+|\w+(?:'\w+)?|[.!?;\n]|[,:()\u2013\u2014]")
_FREE_OF = re.compile(r"\b([^\W\d_]+)-free\b")
_BOUND = re.compile(r"([<>])\s*=?\s*(?=\d)")
_NUMBER_UNIT = re.compile(r"(\d+(?:\.\d+)?)([a-z%]+)")
NUMBER = re.compile(r"\d+(?:\.\d+)?")

Clause = tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A text as sentences of clauses of words, words in their canonical form."""

    sentences: tuple[tuple[Clause, ...], ...]

    @property
    def clauses(self) -> list[Clause]:
        return [clause for sentence in self.sentences for clause in sentence]

    @property
    def words(self) -> list[str]:
        return [word for clause in self.clauses for word in clause]

    @property
    def content(self) -> list[str]:
        return [word for word in self.words if word not in STOP]

    def lead(self, limit: int) -> Text:
        """The first sentence, and those after it as long as there are at most `limit` words."""
        kept: list[tuple[Clause, ...]] = []
        total = 0
        for sentence in self.sentences:
            total += sum(len(clause) for clause in sentence)
            if kept and total > limit:
                break
            kept.append(sentence)
        return Text(tuple(kept))


def read_text(text: str, *, statements_only: bool = False) -> Text:
    """Split into sentences, clauses and canonical words; linear in the (bounded) length.

    With `statements_only`, questions and requests are dropped: models repeat the question, or its list of options.
    """
    sentences: list[tuple[Clause, ...]] = []
    clauses: list[Clause] = []
    words: list[str] = []

    def end_clause() -> None:
        if words:
            clauses.append(_canonical(words))
            words.clear()

    asking = False  # what follows "please" is no statement; what stands in front of it is one
    for piece in _PIECE.findall(_clean(text) + "\n"):
        asking = statements_only and (asking or piece == "please") and piece not in ".!?;\n"
        if asking or piece in ",:()\u2013\u2014":
            end_clause()
        elif piece in ".!?;\n":
            end_clause()
            length = sum(map(len, clauses))
            # 'CT?' is a doubtful answer, and still one.
            asks = (piece == "?" and length > 3) or _plays(clauses)
            if clauses and not (statements_only and asks):
                sentences.append(tuple(clauses))
            clauses.clear()
        elif piece in ("but", "however", "although", "though", "whereas"):
            end_clause()
        else:
            words.extend(_split(piece))
    return Text(_without_role(tuple(sentences)))


def _plays(clauses: Sequence[Clause]) -> bool:
    """Does a sentence begin with what somebody has or wants ('Human: I want to ...'), rather than with the picture?"""
    said = [word for clause in clauses for word in clause if word not in ROLES][:2]
    return len(said) > 1 and said[0] == "i" and said[1] in ASKERS


def _clean(text: str) -> str:
    text = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])[:MAX_CHARACTERS].casefold()
    text = text.replace("\u2019", "'").replace("\u2018", "'").replace("_", " ")
    text = _FREE_OF.sub(r"no \1", text)
    text = _BOUND.sub(lambda sign: " greater than " if sign[1] == ">" else " less than ", text)
    # Invisible marks (zero width, text direction) vanish; other control characters separate words.
    kinds = ((character, unicodedata.category(character)) for character in text)
    return "".join("" if kind == "Cf" else " " if kind == "Cc" and c != "\n" else c for c, kind in kinds)


def _split(piece: str) -> list[str]:
    if piece.endswith("n't"):
        stem = piece[:-3]
        return [{"ca": "can", "wo": "will"}.get(stem, stem), "not"]
    if piece == "cannot":
        return ["can", "not"]
    piece, _, ending = piece.partition("'")
    extra = {"m": ["am"], "re": ["are"], "ll": ["will"], "ve": ["have"]}.get(ending, [])
    if match := _NUMBER_UNIT.fullmatch(piece):
        number, unit = match.groups()
        if unit in UNITS:
            return [number, unit]
    return [_singular(piece), *extra]


def _singular(word: str) -> str:
    word = ORDINALS.get(word, NUMBERS.get(word, word))
    if len(word) < 4 or not word.endswith("s") or word in IRREGULAR or word.endswith(("ss", "us", "is", "as")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "shes", "ches", "nuses")):  # the last for sinuses
        return word[:-2]
    return word[:-1]


def _phrase_table() -> dict[str, list[tuple[Clause, Clause]]]:
    table: dict[str, list[tuple[Clause, Clause]]] = {}
    for canonical, phrases in ALIASES.items():
        for phrase in phrases:
            words = tuple(phrase.split())
            table.setdefault(words[0], []).append((words, tuple(canonical.split())))
    for entries in table.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return table


_PHRASES = _phrase_table()


def _canonical(words: Sequence[str]) -> Clause:
    """Replace every known phrase, the longest first; twice, because one phrase may build on another's result."""
    current = list(words)
    for _ in range(2):
        result: list[str] = []
        position = 0
        while position < len(current):
            for phrase, replacement in _PHRASES.get(current[position], ()):
                if tuple(current[position : position + len(phrase)]) == phrase:
                    result.extend(replacement)
                    position += len(phrase)
                    break
            else:
                result.append(current[position])
                position += 1
        current = result
    return tuple(current)


def _without_role(sentences: tuple[tuple[Clause, ...], ...]) -> tuple[tuple[Clause, ...], ...]:
    """Drop a leading 'Human:' or 'Answer:', which some models emit."""
    if not sentences or len(sentences[0]) < 2 or len(sentences[0][0]) > 2 or not set(sentences[0][0]) <= ROLES:
        return sentences
    return (sentences[0][1:], *sentences[1:])


def affirmed_and_denied(text: Text) -> tuple[set[str], set[str]]:
    """Words that are stated, and words denied by a negation in front of them in the same clause.

    What something is compared with ('clearer than the right lung') is neither.
    """
    stated: set[str] = set()
    denied: set[str] = set()
    for clause in text.clauses:
        until = -1
        for position, word in enumerate(clause):
            if word in COMPARISONS:
                break
            if word in NEGATIONS:
                until = position + NEGATION_REACH
            elif position <= until:
                denied.add(word)
            else:
                stated.add(word)
    return stated, denied - stated


_AS_THEY_ARE = frozenset().union(*FAMILIES) | COLORS | QUALIFIERS | NEGATIONS | STOP | UNITS | COMPARISONS

_ENDINGS = sorted(INFLECTIONS, key=len, reverse=True)


def stemmed(text: Text) -> Text:
    """The text with words that the rules do not know by name cut down to what their inflections share."""
    return Text(tuple(tuple(tuple(map(stem, clause)) for clause in sentence) for sentence in text.sentences))


def stem(word: str) -> str:
    """A word cut down to what its inflections share, unless the rules know it by name."""
    if word in _AS_THEY_ARE or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word
