"""Fact records and scenes: caption, questions, answers and checks of a picture all come from one record.

(Paper section 3.2: "the textual prompts already contain sufficient image-related information".)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from hedge_tasks.io.outside import clean
from hedge_tasks.making.digests import text_digest
from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.suites.shale.items import KNOWLEDGE

_STATED = {
    "existence": ("object",),
    "count": ("count", "object"),
    "relation": ("subject", "relation", "object"),
    "text": ("text",),
}
"""Templates that make a statement of what is expected, by the kind of a check."""

_USABLE = re.compile(r"\d|[^\W_][^\n\r\t{}<>()\[\]\"|\\]{0,58}[^\s{}<>()\[\]\"|\\]")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class PictureRecord:
    """Subject of one picture, before it is put into words.

    Attributes:
        aspect: One of `ASPECTS`.
        entity: What is asked about, such as "a teddy bear"; where its type is asked for, the kind ("animal").
        attribute: The right answer, such as "brown".
        relation: What else the picture shows, such as "in front of a television"; in spatial relations the other thing,
            in knowledge what the attribute is of the entity.
        wrong: Wrong answers, the first of which misleads.
        near: Further wrong answers, the nearest kin first.
        facts: A true sentence, in knowledge.
        template: Name of a relation of `templates.json`; empty: the aspect's own template.
        source, licence: Where it comes from.
    """

    aspect: str
    entity: str
    attribute: str
    relation: str
    wrong: tuple[str, ...]
    near: tuple[str, ...] = ()
    facts: str = ""
    template: str = ""
    source: str = "hedge_tasks"
    licence: str = "Apache-2.0"


@dataclass(frozen=True)
class Scene:
    """One clean picture: its content, and what is asked about it.

    Attributes:
        id: The same for the same content.
        aspect: One of `ASPECTS`.
        kind: "faithfulness" or "factuality".
        entity: Kind of thing that is asked about.
        prompt: What the picture shows, in words.
        ynq, statement: With `{answer}` to be filled in.
        ffq: The open question.
        answer: The right one.
        wrong: At least three wrong ones, the first of which misleads (NegYNQ, TXT, PFX).
        near: Further wrong ones of the same type, which SYN takes its options from.
        facts: What is known beyond the picture.
        checks: What has to be seen in it.
        drawing: What a generator that draws by code needs: `figure` and `values`; empty where only a model can make it.
        source, licence: Where its content comes from.
    """

    id: str
    aspect: str
    kind: str
    entity: str
    prompt: str
    ynq: str
    ffq: str
    statement: str
    answer: str
    wrong: tuple[str, ...]
    near: tuple[str, ...]
    facts: str = ""
    checks: tuple[PictureQuestion, ...] = ()
    drawing: Mapping[str, Any] = field(default_factory=dict)
    source: str = "hedge_tasks"
    licence: str = "Apache-2.0"

    def asking(self, answer: str) -> str:
        """The yes-or-no question about an answer."""
        return self.ynq.replace("{answer}", answer)

    def stating(self, answer: str) -> str:
        """A sentence that claims an answer."""
        return self.statement.replace("{answer}", answer)


@cache
def _data(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((resources.files(__package__) / name).read_text("utf-8"))
    return data


def templates() -> dict[str, Any]:
    """Templates for image generators that take prompts."""
    return _data("templates.json")


def pools() -> dict[str, Any]:
    """Pools of what can be drawn by code."""
    return _data("pools.json")


@dataclass(frozen=True)
class Element:
    """A word for something that a picture can show.

    Attributes:
        text: With its article, such as "a raccoon".
        kind: Its type, such as "animal": what is asked for.
        family: A narrower one; words of one family are siblings.
    """

    text: str
    kind: str
    family: str

    def excludes(self, other_element: Element) -> bool:
        """Whether both can be right of one picture: one is a kind of the other by its name."""
        first, second = (e.text.casefold().partition(" ")[2] or e.text.casefold() for e in (self, other_element))
        return first.endswith(second) or second.endswith(first)


@dataclass(frozen=True)
class Fact:
    """A fact to make pictures of.

    Attributes:
        relation: Name of a relation of `templates.json`.
        entity, value: As questions quote them.
    """

    relation: str
    entity: str
    value: str


@cache
def own_elements() -> tuple[Element, ...]:
    """Our own words by type."""
    kinds = _data("elements.json")["kinds"]
    return tuple(
        Element(word, kind, f"{kind}/{family}")
        for kind, families in kinds.items()
        for family, words in families.items()
        for word in words
    )


def own_facts() -> list[Fact]:
    """Our own facts."""
    relations = templates()["relations"]
    return [Fact(name, *pair) for name, relation in relations.items() for pair in relation["pairs"].items()]


def usable_label(text: str) -> str | None:
    """A label as a question may quote it, without what tells namesakes apart; None where it is not fit for that.

    Example:
        >>> usable_label("Mercury (planet)"), usable_label("a {b}"), usable_label("São Paulo")
        ('Mercury', None, 'São Paulo')
    """
    short = " ".join(re.sub(r"\s*\([^()]*\)\s*$", "", clean(text)).split())
    return short if _USABLE.fullmatch(short) and short.isprintable() else None


# --- words ------------------------------------------------------------------------------------------------------------


def scene_of(record: PictureRecord) -> Scene:
    """A record in the words of its template."""
    knows = record.aspect in KNOWLEDGE
    template = templates()["knowledge" if knows else "aspects"]
    template = template if knows else template[record.aspect]
    if record.template:
        template = {**template, **templates()["relations"][record.template]}
    words = {
        "entity": record.entity,
        "the_entity": definite(record.entity),
        "The_entity": capital(definite(record.entity)),
        "relation": record.relation,
        "the_relation": definite(record.relation),
    }
    described = filled(template["prompt"], words)
    prompt = described.replace("{answer}", record.attribute)
    # In knowledge the picture does not show the answer.
    instead = [] if knows else [described.replace("{answer}", wrong) for wrong in record.wrong]
    entity = template["entity"] if record.template else ("subject" if knows else noun(record.entity))
    return Scene(
        id=scene_id(record.aspect, prompt, record.attribute),
        aspect=record.aspect,
        kind="factuality" if knows else "faithfulness",
        entity=entity,
        prompt=prompt,
        ynq=filled(template["ynq"], words),
        ffq=filled(template["ffq"], words),
        statement=filled(template["statement"], words),
        answer=record.attribute,
        wrong=record.wrong,
        near=record.near,
        facts=record.facts,
        checks=(
            PictureQuestion(prompt, "statement", {"instead": instead} if instead else {}),
            *checks_of(template["checks"], words, record.attribute),
        ),
        source=record.source,
        licence=record.licence,
    )


def filled(template: str, words: Mapping[str, str]) -> str:
    """A template with all its slots filled but `{answer}`; what fills them is never read as a template."""
    parts: list[str] = []
    for piece in _pieces(template):
        name = piece[1:-1]
        parts.append(words[name] if piece.startswith("{") and name != "answer" else piece)
    return "".join(parts)


def _pieces(template: str) -> Iterator[str]:
    while template:
        before, brace, remainder = template.partition("{")
        if before:
            yield before
        name, _, template = remainder.partition("}")
        if brace:
            yield f"{{{name}}}"


def checks_of(checks: Sequence[Mapping[str, Any]], words: Mapping[str, str], answer: str) -> Iterator[PictureQuestion]:
    """Return the questions to a checker besides the whole, by a template's `checks`; a count that is no number is left
    out.
    """
    for check in checks:
        expected: dict[str, Any] = {
            key: filled(value, words).replace("{answer}", answer) for key, value in check["expected"].items()
        }
        statement = " ".join(expected[key] for key in _STATED[check["kind"]])
        if "count" in expected:
            if expected["count"] not in _NUMBERS:
                continue
            expected["count"] = _NUMBERS.index(expected["count"])
        yield PictureQuestion(statement, check["kind"], expected)


def definite(noun: str) -> str:
    """ "a house" -> "the house"."""
    article, _, remainder = noun.partition(" ")
    return f"the {remainder}" if article in ("a", "an") else noun if article in ("the", "two") else f"the {noun}"


def capital(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]


def scene_id(aspect: str, prompt: str, answer: str) -> str:
    """An id that is the same for the same content, on any machine."""
    return f"{aspect}-{text_digest(prompt, answer)[:12]}"


def noun(text: str) -> str:
    """ "a park bench" -> "bench"."""
    return text.lower().split()[-1]
