"""A text as clauses, each with one polarity and its words in order.

Whether a clause affirms, denies or leaves open is decided here and nowhere else, from the cues in `words.json`: those
in front ("no", "without"), behind ("absent", "has resolved"), and around ("it would be wrong to say that"). Two denials
are none. A clause ends at a mark, at words such as "but", and in front of "without" or "rather than"; what has no word
of its own ("... was looked for but is not there") goes on with the clause before it, and so do items of a list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property

from hedge_tasks.replies.text import is_foreign, spelled_out
from hedge_tasks.replies.wording import cues, phrases, words

AFFIRMED, DENIED, OPEN = "affirmed", "denied", "open"
_ROLES = ("neutral", "open", "concord", "deny")

WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
_SENTENCE = re.compile(r"(?<=[^\s.])[.!](?=\s|\Z)|(?<=\?)[\"')\]]*(?=\s|\Z)|[\n;]+")
_QUOTED = re.compile(r'"[^"\s]+\s[^"\n]*"')
"""Several words that somebody else says: "No dogs allowed" on a sign."""
_LONGEST_NAME = 4
_MARK = re.compile(r",(?!\d)\s*|(?:\s-|[()])\s+|:\s+(?=\S)|\)\s*")
_IRREGULAR = {"people": "person", "men": "man", "women": "woman", "children": "child", "mice": "mouse", "feet": "foot"}


@dataclass(frozen=True)
class Clause:
    """One clause of a text.

    Attributes:
        original: as it was written.
        sentence: the number of its sentence.
    """

    original: str
    sentence: int = 0

    @cached_property
    def text(self) -> str:
        """Lower case, contractions spelled out."""
        return " ".join(spelled_out(self.original).split())

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words in order."""
        return tuple(WORD.findall(self.text))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Its words without endings of plurals."""
        return tuple(map(stem, self.words))

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The stems that are no words of grammar and no cues."""
        return tuple(
            stem(word) for word in WORD.findall(_cue(self.text).sub(" ", self.text)) if word not in words("grammar")
        )

    @cached_property
    def polarity(self) -> str:
        return polarity(self.text)


def _language(text: str) -> str | None:
    """Words of other languages are cues where a text is in one of them: "of" is Dutch for "or"."""
    return None if is_foreign(text) else "en"


def _cue(text: str) -> re.Pattern[str]:
    return cues(*_ROLES, language=_language(text))


@cache
def _role(phrase: str, language: str | None) -> str:
    return next(role for role in _ROLES if phrase in phrases(role, language=language))


def polarity(text: str) -> str:
    """Whether a clause affirms, denies or leaves open.

    Example:
        >>> [polarity(text) for text in ("a mass is seen", "the mass has resolved", "it may be a mass")]
        ['affirmed', 'denied', 'open']
        >>> polarity("it would be wrong to say that there is no mass")
        'affirmed'
    """
    spoken = " ".join(spelled_out(text).split())
    language = _language(spoken)
    roles = Counter(_role(cue[0], language) for cue in cues(*_ROLES, language=language).finditer(spoken))
    if roles["open"]:
        return OPEN
    denials = roles["deny"] or min(1, roles["concord"])
    return DENIED if denials % 2 else AFFIRMED


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines of a text; questions keep their mark."""
    for piece in _SENTENCE.split(text):
        if piece.strip(" .\"'()-*"):
            yield piece.strip()


def clauses(text: str) -> list[Clause]:
    """The clauses of a text; questions and requests state nothing and are left out.

    Example:
        >>> [(c.text, c.polarity) for c in clauses("No effusion, mass or fracture, but the heart is large.")]
        [('no effusion, mass or fracture', 'denied'), ('but the heart is large', 'affirmed')]
    """
    every: list[Clause] = []
    for number, sentence in enumerate(sentences(_QUOTED.sub(" ", text))):
        if not sentence.endswith("?") and not cues("courtesy").match(sentence):
            every += _in_sentence(" ".join(sentence.split()), number)
    return every


def _in_sentence(sentence: str, number: int) -> Iterator[Clause]:
    texts: list[str] = []
    for piece in _pieces(sentence):
        spoken = WORD.findall(piece.casefold())
        if not spoken:
            continue
        if texts and _goes_on(texts[-1], piece, spoken):
            texts[-1] = f"{texts[-1]}, {piece}"
        else:
            texts.append(piece)
    return (Clause(text, number) for text in texts)


def _pieces(sentence: str) -> Iterator[str]:
    at = 0
    ends = [(mark.start(), mark.end()) for mark in _MARK.finditer(sentence)]
    ends += [(word.start(), word.start()) for word in cues("break", language=_language(sentence)).finditer(sentence)]
    for start, end in sorted(ends):
        if start >= at and not _is_field(sentence[at:start], sentence[start:end]):
            yield sentence[at:start].strip(" \"'()*-:,")
            at = end
    yield sentence[at:].strip(" \"'()*-:,.")


def _is_field(front: str, mark: str) -> bool:
    """Whether a colon stands between a name and what is said of it: "Right kidney: no stone"."""
    spoken = WORD.findall(front.casefold())
    is_name = 0 < len(spoken) <= _LONGEST_NAME and words("verb").isdisjoint(spoken)
    return mark.startswith(":") and is_name and spelled_out(front.strip()) not in phrases("yes", "no", "lead", "noun")


def _goes_on(before: str, piece: str, spoken: Sequence[str]) -> bool:
    """Whether a piece belongs to the clause before it: it has no word of its own, or is an item of its list."""
    if spelled_out(before) in phrases("yes", "no", "lead"):
        return False
    clause = Clause(piece)
    has_cue = clause.polarity != AFFIRMED
    if not clause.own and (has_cue or not words("verb").isdisjoint(spoken)):
        return len(Clause(before).own) > 0
    if spoken[0] in ("or", "nor") and Clause(before).polarity == DENIED:
        return True
    starts = cues("break", language=_language(piece)).match(piece)
    return not starts and not has_cue and words("verb").isdisjoint(spoken) and Clause(before).polarity == DENIED


@cache
def stem(word: str) -> str:
    """Without the ending of a plural: both sides of every comparison are cut alike."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if word.endswith(ending) and len(word) > 4:
            return word.removesuffix(ending) + instead
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def turned(question: Sequence[str], clause: Sequence[str], topic: Collection[str], places: Set[str]) -> bool:
    """Whether two things that a question names on either side of one of its words have changed sides in a clause.

    Args:
        question: its words in order.
        clause: the same of what says it back.
        topic: the words that name things.
        places: words of which what stands behind is enough, for names such as "A" are lost among other words.

    Example:
        >>> question = "is the tube above the carina".split()
        >>> turned(question, "the carina is above the tube".split(), {"tube", "carina"}, set())
        True
    """
    before, after = _places(question), _places(clause)
    both = before.keys() & after.keys()
    things = both & set(topic)
    return any(
        (word in places or any(before[a] < before[word] and after[a] > after[word] for a in things))
        and any(before[b] > before[word] and after[b] < after[word] for b in things)
        for word in both
    )


def _places(spoken: Sequence[str]) -> dict[str, int]:
    """Where each word stands that is there once."""
    counts = Counter(spoken)
    return {word: at for at, word in enumerate(spoken) if counts[word] == 1}
