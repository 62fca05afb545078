"""From a text to sentences of clauses of canonical words, and which of them are affirmed and which denied."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from hedge_tasks.judging.rule.names import Clause, names, split, spoken, stem
from hedge_tasks.judging.rule.vocabulary import words
from hedge_tasks.replies.clauses import AFFIRMED, DENIED, OPEN, polarity

LONGEST = 20_000
"""Characters of a text that are read."""

LEAD = 60
"""Words of an answer that are compared: its first sentence, and those after it as long as they fit."""

NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PIECE = re.compile(
    r"(?<![^\s(:])[-\u2212]\d+(?:\.\d+)?|(?<=\d)-(?=\d)|\d+\.\d+|\w+(?:'\w+)?|[.!?;\n]|[,:()\u2013\u2014]"
)
_MINUS = re.compile(r"(?<![^\s(])[-\u2212\u2013](?=\s*(?:[).,;\n]|\Z))")
"""A sign with nothing behind it: 'edema (-)'."""
_RANGE = re.compile(r"(?<=\d)\s*[-\u2013\u2014]\s*(?=\d)")
_FREE_OF = re.compile(r"\b([^\W\d_]+)-free\b")
_BOUND = re.compile(r"([<>])\s*=?\s*(?=\d)")
_CONTRASTS = ("but", "however", "although", "though", "whereas")


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
        return [word for word in self.words if word not in words("stop")]

    @property
    def lead(self) -> Text:
        """The first sentence, and those after it as long as there are at most `LEAD` words."""
        leading: list[tuple[Clause, ...]] = []
        total = 0
        for sentence in self.sentences:
            total += sum(map(len, sentence))
            if leading and total > LEAD:
                break
            leading.append(sentence)
        return Text(tuple(leading))

    @property
    def stems(self) -> Text:
        """The text with words that the rules do not know by name cut down to what their inflections share."""
        return Text(tuple(tuple(tuple(map(stem, clause)) for clause in sentence) for sentence in self.sentences))


def read_text(text: str, *, statements_only: bool = False) -> Text:
    """Split into sentences, clauses and canonical words; linear in the (bounded) length.

    With `statements_only`, questions and requests are dropped: models repeat the question, or its list of options.
    """
    sentences: list[tuple[Clause, ...]] = []
    clauses: list[Clause] = []
    pending: list[str] = []
    asking = False  # what follows "please" is no statement; what stands in front of it is one
    for piece in _PIECE.findall(_clean(text) + "\n"):
        ends = piece in ".!?;\n"
        asking = statements_only and not ends and (asking or piece == "please")
        if not (ends or asking or piece in ",:()\u2013\u2014" or piece in _CONTRASTS):
            pending += split(piece)
            continue
        if pending:
            clauses.append(names().canonical(pending))
            pending = []
        if ends:
            # 'CT?' is a doubtful answer, and still one.
            asks = statements_only and piece == "?" and sum(map(len, clauses)) > 3
            if clauses and not asks:
                sentences.append(tuple(clauses))
            clauses = []
    return Text(tuple(sentences))


def _clean(text: str) -> str:
    text = _MINUS.sub(" not ", spoken(text[:LONGEST])[:LONGEST].replace("_", " "))
    text = _FREE_OF.sub(r"no \1", _RANGE.sub("-", text).replace("%", " percent "))
    text = _BOUND.sub(lambda sign: " greater than " if sign[1] == ">" else " less than ", text)
    # Invisible marks (zero width, text direction) vanish; other control characters separate words.
    kinds = ((character, unicodedata.category(character)) for character in text)
    return "".join("" if kind == "Cf" else " " if kind == "Cc" and c != "\n" else c for c, kind in kinds)


def affirmed_and_denied(text: Text) -> tuple[set[str], set[str]]:
    """Words that are stated, and words denied: what follows a negation, or all that has one behind it.

    What something is compared with ('clearer than the right lung') is neither.
    """
    affirmed: set[str] = set()
    denied: set[str] = set()
    negations = words("negations")
    for clause in _parts(text):
        stated = clause[: _place(clause, words("comparisons"))]
        at = _place(stated, negations)
        side = polarity(" ".join(stated))
        if side == AFFIRMED or (side == OPEN and at == len(stated)):
            affirmed |= set(stated) - negations
        elif set(stated[at + 1 :]) - words("stop"):
            affirmed |= set(stated[:at])
            denied |= set(stated[at + 1 :])
        elif side == DENIED:
            denied |= set(stated) - negations
    return affirmed, denied - affirmed


def may_deny(text: Text, things: Set[str], known: Set[str], frame: Set[str]) -> bool:
    """Can a stemmed text deny the things it names? So it can wherever not all that stands around them is understood.

    Understood are the known stems, those of the frame (which name nothing), a subject in front of the first verb ('the
    procedure is ...', not what somebody says of a whole sentence: '... that there is'), one word between an article and
    a thing ('a human brain') or behind a side ('left hemisphere'), and a negation of known things that follow it ('CT
    without contrast').
    """
    return any(_clause_may_deny(clause, things, known, frame) for clause in _parts(text))


def _place(clause: Clause, cues: Set[str]) -> int:
    """Where the first of some words stands; behind the clause where none does."""
    return next((at for at, word in enumerate(clause) if word in cues), len(clause))


def _parts(text: Text) -> list[Clause]:
    """Its clauses; 'X makes Y unlikely' says two things."""
    cuts = [(clause, 1 + _place(clause[1:], words("making"))) for clause in text.clauses]
    return [part for clause, at in cuts for part in (clause[:at], clause[at:]) if part]


def _clause_may_deny(clause: Clause, things: Set[str], known: Set[str], frame: Set[str]) -> bool:
    places = [at for at, word in enumerate(clause) if word in things]
    if not places:  # what is about nothing else is about what was named: 'edema: no', 'edema, which has resolved'
        copulas = words("auxiliary") | {"be", "been", "being"}
        predicates = {word for before, word in pairwise(("is", *clause)) if before in copulas} - known - frame
        return not (known - frame) & set(clause) and bool(words("negations") & set(clause) or predicates)
    # 'Normal' may stand for 'no findings': '... of pneumonia'.
    if _place(clause, {"normal"}) < places[0] - 1 or (
        not words("negations") & set(clause) and polarity(" ".join(clause)) == DENIED
    ):
        return True
    end = places[-1] + 1 + _place(clause[places[-1] + 1 :], words("comparisons"))
    return not all(at in places or _understood(clause, at, places, things, known, frame) for at in range(end))


def _understood(
    clause: Clause, at: int, places: Sequence[int], things: Set[str], known: Set[str], frame: Set[str]
) -> bool:
    word, before = clause[at], clause[at - 1]
    verbs = [i for i, verb in enumerate(clause) if verb in words("auxiliary")]
    if word in words("negations"):
        behind = at > places[-1] and bool(known & set(clause[at:]))
        return behind and not any(places[-1] < verb < at for verb in verbs)
    if word in known | frame or word.endswith("ly") or not word.isalpha():
        return True
    attribute = (at == places[0] - 1 and before in ("a", "an", "the")) or before in things & words("qualifiers")
    return attribute or (bool(verbs) and at < verbs[0] < places[0] and "that" not in clause)
