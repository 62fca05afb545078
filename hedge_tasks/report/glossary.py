"""Terms that explain themselves: marked where they stand, shown where they are pointed at, listed at the page's end.

The texts are in `assets/glossary.toml`, those of detectors are their own: title, and first sentence of the docstring.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from hedge_tasks.detectors import registry

if TYPE_CHECKING:
    from markupsafe import Markup

# Names that stand for a detector wherever they are met. "Degree" or "Length" in a text need not mean one.
_ACRONYM = re.compile(r"(?=(?:[^A-Z]*[A-Z]){2})[\w-]+")
_USED = re.compile(r'<a class="term"[^>]* href="#term-([a-z0-9-]+)"')


@dataclass(frozen=True)
class Term:
    """A term of the field.

    Attributes:
        id: of its place in the glossary.
        name: as it is listed.
        text: what it means, in a sentence or two.
    """

    id: str
    name: str
    text: str


def explain(text: str) -> Markup:
    """Return a text with every term of the field marked where it comes first; everything else is escaped.

    Example:
        >>> explain("<ECE>")
        Markup('&lt;<a class="term" href="#term-ece" title="Expected ...">ECE</a>&gt;')
    """
    from markupsafe import Markup, escape

    marked: set[str] = set()
    parts, end = [], 0
    for match in _pattern().finditer(text):
        term = _terms()[match[0]]
        if term.id not in marked:
            marked.add(term.id)
            parts += [escape(text[end : match.start()]), _link(term, match[0])]
            end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def explain_name(name: str) -> Markup:
    """Return the name of a detector, marked; another text as `explain` does."""
    term = _detectors().get(name)
    return explain(name) if term is None else _link(term, name)


def explain_beside(text: str) -> Markup:
    """A text with a question mark behind it that leads to its first term: for heads of columns that sort by a click."""
    from markupsafe import Markup, escape

    match = _pattern().search(text)
    if not match:
        return escape(text)
    return Markup("{} {}").format(
        text, _link(_terms()[match[0]], "?", Markup(' aria-label="What is {}?"').format(match[0]))
    )


def used_terms(page: str) -> list[Term]:
    """Return the terms that are marked on a page and those that their texts mention, in alphabetical order."""
    by_id = {term.id: term for term in (*_terms().values(), *_detectors().values())}
    open_ids, used = {*_USED.findall(page)} & by_id.keys(), set[str]()
    while open_ids:
        used |= open_ids
        mentioned = (_USED.findall(explain(by_id[id].text)) for id in open_ids)
        open_ids = {id for ids in mentioned for id in ids} - used
    return sorted((by_id[id] for id in used), key=lambda term: term.name.lower())


def _link(term: Term, text: str, label: str = "") -> Markup:
    from markupsafe import Markup

    return Markup('<a class="term"{} href="#term-{}" title="{}">{}</a>').format(label, term.id, term.text, text)


@cache
def _general() -> Mapping[str, Term]:
    """By everything that they are called."""
    read = tomllib.loads((resources.files(__package__) / "assets" / "glossary.toml").read_text("utf-8"))
    terms: dict[str, Term] = {}
    for id, entry in read.items():
        term = Term(id, entry["name"], entry["text"])
        terms |= dict.fromkeys((entry["name"], *entry.get("also", ())), term)
    return terms


@cache
def _detectors() -> Mapping[str, Term]:
    """By what they are called in figures and tables, and by their whole titles."""
    terms: dict[str, Term] = {}
    for name in registry.names():
        detector = registry.get(name)
        first = re.sub(r"\s+", " ", detector.explanation.split("\n\n")[0]).partition(";")[0].rstrip(".")
        title = "A" if detector.title.lower() == detector.label.lower() else f"{detector.title}, a"
        term = Term(f"detector-{name.replace('_', '-')}", detector.label, f"{title} detector. {first}.")
        terms |= {detector.label: term, detector.title: term}
    return terms


@cache
def _terms() -> Mapping[str, Term]:
    """Return what is marked wherever it stands in a text."""
    return {**{name: term for name, term in _detectors().items() if _ACRONYM.fullmatch(name)}, **_general()}


@cache
def _pattern() -> re.Pattern[str]:
    longest_first = sorted(_terms(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")
