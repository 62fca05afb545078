"""Other names of things, and what they are kinds of: our own table.

A table is a file of tab-separated columns: the preferred name, other names and broader ones (each separated by `|`).
Lines in front of the header start with `#` and say what it is and under which licence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path

from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.judging.rule.reading import NUMBER, OWN_PHRASES, Clause, Lexicon, Text, canonical, stem, tokens
from hedge_tasks.judging.rule.vocabulary import (
    ALIASES,
    ANATOMY,
    COLORS,
    FAMILIES,
    PREPOSITIONS,
    QUALIFIERS,
    SENSES,
    STOP,
)

COLUMNS = ("preferred", "synonyms", "broader")
LONGEST = 6
"""Words of a name; longer ones are not looked for."""

_OWN = Path(__file__).with_name("synonyms.tsv")
Things = frozenset[str]


@dataclass(frozen=True)
class NamedThing:
    """One thing of a table: its preferred name, other names, and names of what it is a kind of."""

    preferred: str
    synonyms: tuple[str, ...] = ()
    broader: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sense:
    """A meaning of an ambiguous word, and the words of a question that tell so."""

    words: Clause
    cues: frozenset[str]


@dataclass(frozen=True)
class Synonyms:
    """The names that the rules know.

    Attributes:
        lexicon: replaces names by the preferred ones, and joins what is one word elsewhere ('gall bladder').
        known: stems of the words that the table has a meaning for.
        broader: a thing, as its stemmed words -> the things that it is a kind of.
        senses: words with several meanings -> these.
    """

    lexicon: Lexicon
    known: frozenset[str]
    broader: Mapping[Things, frozenset[Things]]
    senses: Mapping[str, tuple[Sense, ...]]

    @cached_property
    def _by_word(self) -> dict[str, list[Things]]:
        things: dict[str, list[Things]] = {}
        for thing in self.broader:
            things.setdefault(min(thing), []).append(thing)
        return things

    def kinds_of(self, words: Iterable[str]) -> set[Things]:
        """Kinds of the things among the words, by any number of steps."""
        have, kinds = set(words), set[Things]()
        new = set(have)
        while new:
            steps = {
                kind
                for word in new
                for thing in self._by_word.get(word, ())
                if thing <= have
                for kind in self.broader[thing]
            } - kinds
            kinds |= steps
            new = set().union(*steps) - have
            have |= new
        return kinds

    def knows(self, text: Text) -> bool:
        """Is the head word of a clause known, or what it says a number?"""
        heads = (word for clause in text.clauses for word in head(clause))
        return any(stem(word) in self.known or NUMBER.fullmatch(word) for word in heads)

    def resolve(self, text: Text, question: Text, other_text: Text) -> Text:
        """The text with ambiguous words read as the question says, else as what the other text says, else as usual."""
        if not self.senses.keys() & set(text.words):
            return text
        question_words, other_words = set(question.words), set(other_text.words)
        chosen = {
            word: _chosen(self.senses[word], question_words, other_words).words
            for word in self.senses.keys() & set(text.words)
        }
        return Text(
            tuple(
                tuple(tuple(chain.from_iterable(chosen.get(word, (word,)) for word in clause)) for clause in sentence)
                for sentence in text.sentences
            )
        )


def _chosen(senses: Sequence[Sense], question_words: set[str], other_words: set[str]) -> Sense:
    """A sense that the question tells apart, else the one that the other text has, else the first."""
    cued = [sense for sense in senses if sense.cues & question_words]
    if len(cued) == 1:
        return cued[0]
    return next((sense for sense in senses if set(sense.words) <= other_words), senses[0])


def head(clause: Clause) -> tuple[str, ...]:
    """The head word of a clause: the last with a meaning before a preposition, no side or size if there is another."""
    chunk: list[str] = []
    for word in clause:
        if word in PREPOSITIONS and chunk:
            break
        if word not in STOP:
            chunk.append(word)
    specific = [word for word in chunk if word not in QUALIFIERS]
    return tuple((specific or chunk)[-1:])


def read_synonyms(path: Path) -> list[NamedThing]:
    """The entries of a table.

    Raises:
        DataError: it cannot be read, or a line is none of a table of synonyms.
    """
    lines = [(i, line) for i, line in enumerate(outside.read_text(path).splitlines(), 1) if not line.startswith("#")]
    lines = [(i, line) for i, line in lines if line.strip()]
    if not lines or tuple(lines[0][1].split("\t")) != COLUMNS:
        raise DataError(f"{path}: expected the header {' '.join(COLUMNS)}")
    entries = []
    for i, line in lines[1:]:
        cells = line.split("\t")
        if len(cells) > len(COLUMNS) or not cells[0].strip():
            raise DataError(f"{path}:{i}: expected a name and at most two more columns")
        lists = [tuple(name.strip() for name in cell.split("|") if name.strip()) for cell in cells[1:]]
        entries.append(NamedThing(cells[0].strip(), *lists))
    return entries


ALIAS_WORDS: frozenset[Clause] = frozenset(tuple(name.split()) for name in ALIASES)
NOTHING = Synonyms(
    Lexicon(OWN_PHRASES, ANATOMY),
    frozenset(stem(word) for word in chain(ANATOMY, COLORS, *FAMILIES, *ALIAS_WORDS) if word not in STOP),
    {},
    {},
)
"""The words that the rules know by themselves."""


@cache
def own() -> Synonyms:
    """The small table of our own making."""
    return build(read_synonyms(_OWN))


def build(entries: Sequence[NamedThing], ground: Synonyms = NOTHING) -> Synonyms:
    """A table on the ground of another, whose names keep their meaning.

    A word that is a name of two things stands for both, and is read in context (see `Synonyms.resolve`).
    """
    first = ground.lexicon
    preferred = [canonical(_words(entry.preferred), first) for entry in entries]
    taken = {*preferred, *ALIAS_WORDS}
    meant: dict[Clause, Clause] = {}
    ambiguous: dict[str, list[Clause]] = {}
    for entry, due in zip(entries, preferred, strict=True):
        for name in entry.synonyms:
            for words in {_words(name), canonical(_words(name), first)}:
                if not 0 < len(words) <= LONGEST or words in taken or set(words) <= STOP | set(due):
                    continue
                if len(words) == 1 and (words[0] in _RESERVED or words[0] in ground.senses):
                    continue
                if meant.setdefault(words, due) != due and len(words) == 1:
                    ambiguous.setdefault(words[0], [meant[words]]).append(due)
    for word in {*ambiguous, *SENSES}:
        meant.pop((word,), None)
    table = {word: list(options) for word, options in first.phrases.items()}
    for words, due in meant.items():
        table.setdefault(words[0], []).append((words, due))
    for options in table.values():
        options.sort(key=lambda option: -len(option[0]))
    single = {words[0] for words in (*meant, *taken) if len(words) == 1}
    lexicon = Lexicon(table, first.compounds | single)
    final = [canonical(words, lexicon) for words in preferred]
    known_stems = {stem(word) for word in chain(single, *final) if word not in STOP}
    broader: dict[Things, set[Things]] = {thing: set(kinds) for thing, kinds in ground.broader.items()}
    for entry, words in zip(entries, final, strict=True):
        thing = _things(words)
        kinds = {_things(canonical(_words(name), lexicon)) for name in entry.broader} - {thing, Things()}
        if thing and kinds:
            broader.setdefault(thing, set()).update(kinds)
    read = {
        word: tuple(
            Sense(canonical(words, lexicon), frozenset(words) - STOP) for words in dict.fromkeys(ambiguous[word])
        )
        for word in ambiguous
    }
    if not ground.senses:
        read |= {word: tuple(_sense(*option, lexicon) for option in options) for word, options in SENSES.items()}
    return Synonyms(
        lexicon,
        ground.known | known_stems,
        {thing: frozenset(kinds) for thing, kinds in broader.items()},
        {**read, **ground.senses},
    )


def _sense(name: str, cues: str, lexicon: Lexicon) -> Sense:
    words = canonical(_words(name), lexicon)
    return Sense(words, frozenset((*canonical(_words(cues), lexicon), *words)))


def _words(name: str) -> Clause:
    return tuple(tokens(name))


def _things(words: Iterable[str]) -> Things:
    return frozenset(stem(word) for word in words if word not in STOP)


_RESERVED = frozenset().union(*FAMILIES) | COLORS | QUALIFIERS | STOP
"""Words that have a rule of their own keep their meaning."""
