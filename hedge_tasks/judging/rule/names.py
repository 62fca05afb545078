"""Other names of things, and what they are kinds of, from `synonyms.tsv` and the aliases of `words.json`.

A table is a file of tab-separated columns: the preferred name, other names and broader ones (each separated by `|`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path

from hedge_tasks.judging.rule.vocabulary import mapping, named, words
from hedge_tasks.replies.text import spelled_out

SHORTEST_STEM = 4
_PASSES = 3
"""One name may build on what another was replaced by."""

_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_NUMBER_UNIT = re.compile(r"(\d+(?:\.\d+)?)([a-z%]+)")

Clause = tuple[str, ...]
Things = frozenset[str]
"""A thing, as its stems."""


def spoken(text: str) -> str:
    """The text in one spelling: lower case, contractions written out, Latin letters without their accents."""
    text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return spelled_out(text.replace("\u2019", "'").replace("\u2018", "'"))


def singular(word: str) -> str:
    """A word without the ending of a plural; a number word as digits.

    Example:
        >>> [singular(word) for word in ("lungs", "biopsies", "sinuses", "metastases", "three", "pelvis")]
        ['lung', 'biopsy', 'sinus', 'metastasis', '3', 'pelvis']
    """
    word = mapping("plurals").get(word, mapping("numbers").get(word, word))
    if len(word) < 4 or not word.endswith("s") or word in words("irregular") or word.endswith(("ss", "us", "is", "as")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[: -2 if word.endswith(("sses", "xes", "shes", "ches", "nuses")) else -1]


def split(piece: str) -> list[str]:
    """The words of a run of characters: "5mm" is two."""
    match = _NUMBER_UNIT.fullmatch(piece)
    if match and match[2] in words("units"):
        return [match[1], match[2]]
    return [singular(piece.partition("'")[0])]


@cache
def stem(word: str) -> str:
    """A word cut down to what its inflections share, unless the rules know it by name.

    Example:
        >>> stem("calcification") == stem("calcified"), stem("left")
        (True, 'left')
    """
    if word in named() | words("negations", "units", "comparisons") or not word.isalpha():
        return word
    for ending in sorted(words("endings"), key=len, reverse=True):
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
            return word[: -len(ending)]
    return word


@dataclass(frozen=True)
class NamedThing:
    """One thing of a table: its preferred name, other names, and names of what it is a kind of."""

    preferred: Clause
    synonyms: tuple[Clause, ...]
    broader: tuple[Clause, ...]


@dataclass(frozen=True)
class Names:
    """The names that the rules know.

    Attributes:
        phrases: names to be replaced by the preferred ones, by their first word, the longest first.
        known: stems of the words that the table has a meaning for.
        broader: a thing -> the things that it is a kind of.
    """

    phrases: Mapping[str, Sequence[tuple[Clause, Clause]]]
    known: frozenset[str] = frozenset()
    broader: Mapping[Things, frozenset[Things]] = field(default_factory=dict)

    def canonical(self, spoken_words: Sequence[str]) -> Clause:
        """Replace every known name, the longest first."""
        current = list(spoken_words)
        for _ in range(_PASSES):
            replaced = list(self._replaced(current))
            if replaced == current:
                break
            current = replaced
        return tuple(current)

    def _replaced(self, current: Sequence[str]) -> Iterator[str]:
        at = 0
        while at < len(current):
            options = self.phrases.get(current[at], ())
            phrase, instead = next(
                ((p, i) for p, i in options if tuple(current[at : at + len(p)]) == p), ((current[at],), (current[at],))
            )
            yield from instead
            at += len(phrase)

    def kinds_of(self, stems: Iterable[str]) -> set[Things]:
        """Kinds of the things among the stems, by any number of steps."""
        have, kinds = set(stems), set[Things]()
        while new := {kind for thing, above in self.broader.items() if thing <= have for kind in above} - kinds:
            kinds |= new
            have = have.union(*new)
        return kinds


@cache
def names() -> Names:
    """The aliases and the table together. A name that stands for two things stands for neither."""
    aliases = {
        tuple(name.split()): tuple(due.split()) for due, line in mapping("aliases").items() for name in line.split(", ")
    }
    ground = Names(_by_first_word(aliases))
    entries = _read_table(ground)
    taken = {*(entry.preferred for entry in entries), *aliases.values()}
    meant = _meanings(entries, ground, taken)
    single = {name[0] for name in (*meant, *taken) if len(name) == 1}
    unique = {name: next(iter(dues)) for name, dues in meant.items() if len(dues) == 1}
    lexicon = Names(_by_first_word({**unique, **aliases}))
    final = [lexicon.canonical(entry.preferred) for entry in entries]
    ours = named() | words("anatomy") | set(chain(*aliases.values()))
    broader = {
        _things(thing): frozenset({_things(lexicon.canonical(kind)) for kind in entry.broader} - {_things(thing)})
        for thing, entry in zip(final, entries, strict=True)
        if entry.broader
    }
    known = frozenset(stem(word) for word in {*single, *ours, *chain(*final)} - words("stop"))
    return replace(lexicon, known=known, broader=broader)


def _meanings(entries: Iterable[NamedThing], ground: Names, taken: Set[Clause]) -> dict[Clause, set[Clause]]:
    """The things that each other name of the table may stand for; a preferred name stands for itself alone."""
    meant: dict[Clause, set[Clause]] = {}
    for entry in entries:
        grammar = words("stop").union(entry.preferred)
        for name in {*entry.synonyms, *map(ground.canonical, entry.synonyms)} - taken:
            if set(name) - grammar:
                meant.setdefault(name, set()).add(entry.preferred)
    return meant


def _read_table(ground: Names) -> list[NamedThing]:
    lines = Path(__file__).with_name("synonyms.tsv").read_text("utf-8").splitlines()
    entries = []
    for line in lines[2:]:
        preferred, synonyms, broader = (*line.split("\t"), "", "")[:3]
        lists = [tuple(_name(name) for name in cell.split("|") if name) for cell in (synonyms, broader)]
        entries.append(NamedThing(ground.canonical(_name(preferred)), *lists))
    return entries


def _by_first_word(meanings: Mapping[Clause, Clause]) -> dict[str, list[tuple[Clause, Clause]]]:
    table: dict[str, list[tuple[Clause, Clause]]] = {}
    for name in sorted(meanings, key=len, reverse=True):
        table.setdefault(name[0], []).append((name, meanings[name]))
    return table


def _name(text: str) -> Clause:
    return tuple(word for piece in re.findall(r"[^\W_]\w*(?:'\w+)?", spoken(text)) for word in split(piece))


def _things(clause: Iterable[str]) -> Things:
    return frozenset(stem(word) for word in clause if word not in words("stop"))
