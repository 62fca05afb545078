"""From a text to sentences of clauses of canonical words, and which of them are affirmed and which denied."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from hedge_tasks.judging.rule.vocabulary import (
    ALIASES,
    ASKERS,
    AUXILIARY,
    COLORS,
    COMPARISONS,
    FAMILIES,
    INFLECTIONS,
    IRREGULAR,
    MAKING,
    MAX_CHARACTERS,
    NEGATIONS,
    NUMBERS,
    ORDINALS,
    PLURALS,
    QUALIFIERS,
    ROLES,
    SHORTEST_STEM,
    STOP,
    UNITS,
)
from hedge_tasks.replies.clauses import AFFIRMED, DENIED, OPEN, polarity

_PIECE = re.compile(r"\d+\.\d+|\w+(?:'\w+)?|[.!?;\n]|[,:()\u2013\u2014]")
_MINUS = re.compile(r"(?<![^\s(])[-\u2212\u2013](?=\s*(?:[).,;\n]|\Z))")
"""A sign with nothing behind it: 'edema (-)'."""
_FREE_OF = re.compile(r"\b([^\W\d_]+)-free\b")
_BOUND = re.compile(r"([<>])\s*=?\s*(?=\d)")
_NUMBER_UNIT = re.compile(r"(\d+(?:\.\d+)?)([a-z%]+)")
_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
NUMBER = re.compile(r"\d+(?:\.\d+)?")

Clause = tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """Names to be replaced, by their first word, the longest first; and words that some write as two."""

    phrases: Mapping[str, Sequence[tuple[Clause, Clause]]]
    compounds: frozenset[str]


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
        leading: list[tuple[Clause, ...]] = []
        total = 0
        for sentence in self.sentences:
            total += sum(len(clause) for clause in sentence)
            if leading and total > limit:
                break
            leading.append(sentence)
        return Text(tuple(leading))


def read_text(text: str, lexicon: Lexicon | None = None, *, statements_only: bool = False) -> Text:
    """Split into sentences, clauses and canonical words; linear in the (bounded) length.

    With `statements_only`, questions and requests are dropped: models repeat the question, or its list of options.
    """
    lexicon = lexicon or _ALONE
    sentences: list[tuple[Clause, ...]] = []
    clauses: list[Clause] = []
    words: list[str] = []

    def end_clause() -> None:
        if words:
            clauses.append(canonical(words, lexicon))
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
    first_words = [word for clause in clauses for word in clause if word not in ROLES][:2]
    return len(first_words) > 1 and first_words[0] == "i" and first_words[1] in ASKERS


def _folded(text: str) -> str:
    return unaccented(text[:MAX_CHARACTERS]).casefold().replace("\u2019", "'")


def unaccented(text: str) -> str:
    """The text in one spelling, Latin letters without their accents: 'Malmö' as 'Malmo'."""
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _clean(text: str) -> str:
    text = unaccented(text[:MAX_CHARACTERS])[:MAX_CHARACTERS].casefold()
    text = text.replace("\u2019", "'").replace("\u2018", "'").replace("_", " ")
    text = _MINUS.sub(" not ", text)
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
    word = PLURALS.get(word, ORDINALS.get(word, NUMBERS.get(word, word)))
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


OWN_PHRASES = _phrase_table()
_ALONE = Lexicon(OWN_PHRASES, frozenset())
_PASSES = 3
"""One name may build on what another was replaced by."""


def tokens(text: str) -> list[str]:
    """The words of a name, before any is replaced."""
    return [word for piece in re.findall(r"[^\W_]\w*(?:'\w+)?", _folded(text)) for word in _split(piece)]


def canonical(words: Sequence[str], lexicon: Lexicon) -> Clause:
    """Join the words that are one elsewhere, then replace every known name, the longest first."""
    current = _joined(words, lexicon.compounds)
    for _ in range(_PASSES):
        result: list[str] = []
        position = 0
        while position < len(current):
            for phrase, replacement in lexicon.phrases.get(current[position], ()):
                if tuple(current[position : position + len(phrase)]) == phrase:
                    result.extend(replacement)
                    position += len(phrase)
                    break
            else:
                result.append(current[position])
                position += 1
        if result == current:
            break
        current = result
    return tuple(current)


def _joined(words: Sequence[str], compounds: frozenset[str]) -> list[str]:
    """'gall bladder' as 'gallbladder'; parts of two letters and function words join nothing."""
    joined: list[str] = []
    for word in words:
        last = joined[-1] if joined else ""
        if min(len(last), len(word)) > 2 and last + word in compounds and not {last, word} & STOP:
            joined[-1] = last + word
        else:
            joined.append(word)
    return joined


def _without_role(sentences: tuple[tuple[Clause, ...], ...]) -> tuple[tuple[Clause, ...], ...]:
    """Drop a leading 'Human:' or 'Answer:', which some models emit."""
    if not sentences or len(sentences[0]) < 2 or len(sentences[0][0]) > 2 or not set(sentences[0][0]) <= ROLES:
        return sentences
    return (sentences[0][1:], *sentences[1:])


def affirmed_and_denied(text: Text) -> tuple[set[str], set[str]]:
    """Words that are stated, and words denied: what follows a negation, or all that has one behind it.

    What something is compared with ('clearer than the right lung') is neither.
    """
    affirmed: set[str] = set()
    denied: set[str] = set()
    for clause in (part for whole in text.clauses for part in _parts(whole)):
        stated = clause[: next((at for at, word in enumerate(clause) if word in COMPARISONS), len(clause))]
        at = next((at for at, word in enumerate(stated) if word in NEGATIONS), len(stated))
        side = polarity(" ".join(stated))
        if side == AFFIRMED or (side == OPEN and at == len(stated)):
            affirmed |= set(stated) - NEGATIONS
        elif set(stated[at + 1 :]) - STOP:
            affirmed |= set(stated[:at])
            denied |= set(stated[at + 1 :])
        elif side == DENIED:
            denied |= set(stated) - NEGATIONS
    return affirmed, denied - affirmed


def may_deny(text: Text, things: Set[str], known: Set[str], frame: Set[str]) -> bool:
    """Can a stemmed text deny the things it names? So it can wherever not all that stands around them is understood.

    Understood are the known stems, those of the frame (which name nothing), a subject in front of the first verb ('the
    procedure is ...'), one word between an article and a thing ('a human brain') or behind a side ('left hemisphere'),
    and a negation of known things that follow it ('CT without contrast').
    """
    parts = [part for whole in text.clauses for part in _parts(whole)]
    return any(_clause_may_deny(clause, things, known, frame) for clause in parts)


def _parts(clause: Clause) -> list[Clause]:
    """'X makes Y unlikely' says two things."""
    at = next((at for at, word in enumerate(clause) if at and word in MAKING), len(clause))
    return [clause[:at], clause[at:]] if at < len(clause) else [clause]


def _clause_may_deny(clause: Clause, things: Set[str], known: Set[str], frame: Set[str]) -> bool:
    places = {at for at, word in enumerate(clause) if word in things}
    if not places:  # what is about nothing else is about what was named: 'edema: no', 'edema, which has resolved'
        predicates = {word for before, word in pairwise(("is", *clause)) if before in _COPULAS} - known - frame
        return not (known - frame) & set(clause) and bool(NEGATIONS & set(clause) or predicates)
    first, last = min(places), max(places)
    if not NEGATIONS & set(clause) and polarity(" ".join(clause)) == DENIED:
        return True
    verbs = [at for at, word in enumerate(clause) if word in AUXILIARY]
    for at, word in enumerate(clause):
        if word in COMPARISONS and at > last:
            break
        if word in NEGATIONS:
            understood = at > last and known & set(clause[at:]) and not any(last < verb < at for verb in verbs)
        elif at in places or word in known | frame or word.endswith("ly") or not word.isalpha():
            understood = True
        else:
            attribute = (at == first - 1 and clause[at - 1] in _ARTICLES) or clause[at - 1] in things & QUALIFIERS
            understood = attribute or any(at < verb < first for verb in verbs[:1])
        if not understood:
            return True
    return False


_ARTICLES = frozenset({"a", "an", "the"})
_COPULAS = AUXILIARY | {"be", "been", "being"}


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
