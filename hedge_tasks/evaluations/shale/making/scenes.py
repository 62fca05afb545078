"""What the pictures of a made set show, and what is asked about them: fact records in the templates of their aspect.

Caption, questions, answers, what misleads and what a checker is asked all come from one record (paper section 3.2:
"the textual prompts already contain sufficient image-related information"). Wrong answers are drawn from what is right
elsewhere in the same aspect, as far as there is enough of it: an answer that never is right would tell without the
picture.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from hedge_tasks.construct.elements import Element, read_own
from hedge_tasks.construct.knowledge import Fact, Relation
from hedge_tasks.construct.pictures.base import Question
from hedge_tasks.evaluations.shale.items import KNOWLEDGE

WRONG_OPTIONS = 3
_MOST_NEAR = 60
_TRIES = 60
"""How often something new is looked for before a pool counts as exhausted."""

_STATED = {
    "existence": ("object",),
    "count": ("count", "object"),
    "relation": ("subject", "relation", "object"),
    "text": ("text",),
}
"""What makes a statement of what is expected, by the kind of a check."""

_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Record:
    """What one picture is about, before it is put into words.

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
    """What one clean picture shows, and what is asked about it.

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
        drawing: What a painter by code needs: `figure` and `values`; empty where only a model can paint it.
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
    checks: tuple[Question, ...] = ()
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
    """For painters that take prompts."""
    return _data("templates.json")


def pools() -> dict[str, Any]:
    """Of what can be drawn by code."""
    return _data("pools.json")


@cache
def own_elements() -> tuple[Element, ...]:
    """Our own words by type."""
    return tuple(read_own(json.dumps(_data("elements.json")["kinds"])))


def wordnet_roots() -> Mapping[str, Sequence[str]]:
    """Kinds of elements with the synsets of WordNet that they are."""
    roots: Mapping[str, Sequence[str]] = _data("elements.json")["wordnet"]
    return roots


def relations_of(dump: str) -> list[Relation]:
    """What is looked for in a dump, "dbpedia" or "wikidata"."""
    return [
        Relation(name, frozenset(relation[dump]["properties"]), frozenset(relation[dump]["classes"]))
        for name, relation in templates()["relations"].items()
        if dump in relation
    ]


# --- what can be drawn ------------------------------------------------------------------------------------------------


def drawn_scenes(aspect: str, wanted: int, *, seed: int = 0) -> list[Scene]:
    """Scenes that can be drawn by code, at most as many as are wanted; no two of the same content."""
    return _distinct(lambda place: _drawn_scene(aspect, place, seed), wanted)


def _distinct(make: Callable[[int], Scene | None], wanted: int) -> list[Scene]:
    found: dict[str, Scene] = {}
    place = last = 0
    while len(found) < wanted and place - last < _TRIES:
        scene = make(place)
        place += 1
        if scene is not None and scene.prompt not in found:
            found[scene.prompt], last = scene, place
    return list(found.values())


def _drawn_scene(aspect: str, place: int, seed: int) -> Scene:
    pool = pools()["aspects"][aspect]
    subjects = pool.get("subjects", {})
    rng = random.Random(f"{seed}/{aspect}/{place}")
    chosen = _in_turn(list(subjects or pool["answers"]), place, f"{seed}/{aspect}")
    answer = subjects.get(chosen, chosen)
    values = {"subject": chosen} if subjects else {}
    for slot in pool["slots"]:
        taken = {answer, *values.values()}
        values[slot] = rng.choice([e for e in pools()["slots"][slot.removesuffix("_2")] if e not in taken])
    words = values | {f"the_{slot}": definite(value) for slot, value in values.items()}
    # What is right of other pictures comes first.
    drawable = [e for e in dict.fromkeys(subjects.values() or pool["answers"]) if e != answer]
    others = [e for e in pool["others"] if e != answer]
    rng.shuffle(drawable)
    rng.shuffle(others)
    possible = [*drawable, *others]
    facts = pool.get("facts", "").format(**words, answer=answer)
    prompt = pool["prompt"].format(**words, answer=answer)
    return Scene(
        id=_id(aspect, prompt, answer),
        aspect=aspect,
        kind=pool["kind"],
        entity=pool["entity"],
        prompt=prompt,
        ynq=_filled(pool["ynq"], words),
        ffq=_filled(pool["ffq"], words),
        statement=_filled(pool["statement"], words),
        answer=answer,
        wrong=tuple(possible[:WRONG_OPTIONS]),
        near=tuple(possible[WRONG_OPTIONS:]),
        facts=facts[:1].upper() + facts[1:],
        checks=(Question(prompt, "statement", {}), *_checks(pool.get("checks", ()), words, answer)),
        drawing={"figure": pool["figure"], "values": {**values, "answer": answer}},
    )


def _in_turn(choices: list[str], place: int, seed: str) -> str:
    """All before any comes again, so that a small set has many different ones."""
    turn, place = divmod(place, len(choices))
    random.Random(f"{seed}/turn {turn}").shuffle(choices)
    return choices[place]


# --- what a model paints ----------------------------------------------------------------------------------------------


def painted_scenes(
    aspect: str, wanted: int, *, seed: int = 0, elements: Sequence[Element] | None = None, facts: Sequence[Fact] = ()
) -> list[Scene]:
    """Scenes of elements in the templates of an aspect, for painters that take prompts; no two of the same content.

    Args:
        elements: No two of one kind and text; None: our own.
        facts: Of a dump, besides our own.
    """
    if aspect in KNOWLEDGE:
        known = _known(aspect, facts)
        return _distinct(lambda place: scene_of(_knowledge(aspect, known, place, seed)), wanted) if known else []
    by_kind: dict[str, list[Element]] = {}
    for element in own_elements() if elements is None else elements:
        by_kind.setdefault(element.kind, []).append(element)
    return _distinct(lambda place: _painted_scene(aspect, by_kind, place, seed), wanted)


def _painted_scene(aspect: str, by_kind: Mapping[str, list[Element]], place: int, seed: int) -> Scene | None:
    template = templates()["aspects"][aspect]
    rng = random.Random(f"{seed}/{aspect}/{place}")
    kinds = [kind for kind in template["of"] if by_kind.get(kind)]
    kind = _in_turn(kinds, place, f"{seed}/{aspect}")
    if "answers" in template:
        entity = rng.choice(by_kind[kind])
        pool = [Element(word, aspect, family) for family, words in template["answers"].items() for word in words]
        right = rng.choice(template.get("shown") or [e.text for e in pool])
        answer = next(e for e in pool if e.text == right)
        shown = entity.text
    else:
        entity = answer = rng.choice(by_kind[kind])
        pool = by_kind[kind]
        shown = kind
        if "answers_of" in template:  # the larger of two things, either of which may be the larger elsewhere
            larger = rng.choice(template["answers_of"])
            pool, shown = by_kind[larger], entity.text
            answer = rng.choice([e for e in pool if not e.excludes(entity)])
    relation = _relation(template, by_kind, kind, shown, rng)
    wrong, near = _others(answer, pool, template.get("shown"), f"{shown} {relation}", rng)
    if template.get("smaller_misleads"):
        wrong = [shown, *wrong[: WRONG_OPTIONS - 1]]
    if len(wrong) < WRONG_OPTIONS:
        return None
    source = next((e for e in (answer, entity) if e.source != "hedge_tasks"), entity)
    return scene_of(
        Record(
            *(aspect, shown, answer.text, relation, tuple(wrong[:WRONG_OPTIONS]), tuple(near)),
            source=source.source,
            licence=source.licence,
        )
    )


def _relation(
    template: Mapping[str, Any], by_kind: Mapping[str, list[Element]], kind: str, shown: str, rng: random.Random
) -> str:
    if "relations_of" in template:
        return rng.choice([e.text for e in by_kind[template["relations_of"]] if e.text != shown])
    settings = "outdoors" if kind in template.get("outdoors", ()) else template["settings"]
    return str(rng.choice(templates()["settings"][settings]))


def _others(
    answer: Element, pool: Sequence[Element], shown: Sequence[str] | None, beside: str, rng: random.Random
) -> tuple[list[str], list[str]]:
    """Three wrong answers drawn at random, and the others, the answer's siblings first."""
    possible = [e for e in pool if not e.excludes(answer) and _noun(e.text) not in beside.lower().split()]
    rng.shuffle(possible)
    if shown:  # what is right of other pictures comes first
        possible.sort(key=lambda e: e.text not in shown)
    wrong, rest = possible[:WRONG_OPTIONS], possible[WRONG_OPTIONS:]
    rest.sort(key=lambda e: e.family != answer.family)
    return [e.text for e in wrong], [e.text for e in rest[:_MOST_NEAR]]


def _noun(text: str) -> str:
    return text.lower().split()[-1]


# --- knowledge --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    template: str
    entity: str
    value: str
    source: str = "hedge_tasks"
    licence: str = "Apache-2.0"


def _known(domain: str, facts: Sequence[Fact]) -> list[_Known]:
    """What is known in a domain, of relations with enough different values."""
    found: dict[tuple[str, str], _Known] = {}
    for name, relation in templates()["relations"].items():
        if relation["domain"] != domain:
            continue
        mine = [_Known(name, entity, value) for entity, value in relation["pairs"].items()]
        named = relation.get("named", "{entity}")
        mine += [
            _Known(name, named.replace("{entity}", f.entity), f.value, f.source, f.licence)
            for f in facts
            if f.relation == name
        ]
        if len({known.value for known in mine}) > WRONG_OPTIONS:
            for known in mine:
                found.setdefault((name, known.entity.casefold()), known)
    return list(found.values())


def _knowledge(aspect: str, known: list[_Known], place: int, seed: int) -> Record:
    chosen = known[int(_in_turn([str(i) for i in range(len(known))], place, f"{seed}/{aspect}"))]
    rng = random.Random(f"{seed}/{aspect}/{place}")
    others = [k.value for k in known if k.template == chosen.template and k.value.casefold() != chosen.value.casefold()]
    possible = list(dict.fromkeys(others))
    rng.shuffle(possible)
    relation = templates()["relations"][chosen.template]
    facts = _filled(relation["facts"], {"entity": chosen.entity, "Entity": _capital(chosen.entity)})
    return Record(
        aspect=aspect,
        entity=chosen.entity,
        attribute=chosen.value,
        relation=relation["relation"],
        wrong=tuple(possible[:WRONG_OPTIONS]),
        near=tuple(possible[WRONG_OPTIONS : WRONG_OPTIONS + _MOST_NEAR]),
        facts=facts.replace("{answer}", chosen.value),
        template=chosen.template,
        source=chosen.source,
        licence=chosen.licence,
    )


# --- words ------------------------------------------------------------------------------------------------------------


def scene_of(record: Record) -> Scene:
    """A record in the words of its template."""
    knows = record.aspect in KNOWLEDGE
    template = templates()["knowledge" if knows else "aspects"]
    template = template if knows else template[record.aspect]
    if record.template:
        template = {**template, **templates()["relations"][record.template]}
    words = {
        "entity": record.entity,
        "the_entity": definite(record.entity),
        "The_entity": _capital(definite(record.entity)),
        "relation": record.relation,
        "the_relation": definite(record.relation),
    }
    described = _filled(template["prompt"], words)
    prompt = described.replace("{answer}", record.attribute)
    # In knowledge the picture does not show the answer.
    instead = [] if knows else [described.replace("{answer}", wrong) for wrong in record.wrong]
    entity = template["entity"] if record.template else ("subject" if knows else _noun(record.entity))
    return Scene(
        id=_id(record.aspect, prompt, record.attribute),
        aspect=record.aspect,
        kind="factuality" if knows else "faithfulness",
        entity=entity,
        prompt=prompt,
        ynq=_filled(template["ynq"], words),
        ffq=_filled(template["ffq"], words),
        statement=_filled(template["statement"], words),
        answer=record.attribute,
        wrong=record.wrong,
        near=record.near,
        facts=record.facts,
        checks=(
            Question(prompt, "statement", {"instead": instead} if instead else {}),
            *_checks(template["checks"], words, record.attribute),
        ),
        source=record.source,
        licence=record.licence,
    )


def _filled(template: str, words: Mapping[str, str]) -> str:
    """A template with all its slots filled but `{answer}`; what fills them is never read as a template."""
    parts: list[str] = []
    for piece in _pieces(template):
        name = piece[1:-1]
        parts.append(words[name] if piece.startswith("{") and name != "answer" else piece)
    return "".join(parts)


def _pieces(template: str) -> Iterator[str]:
    while template:
        before, brace, rest = template.partition("{")
        if before:
            yield before
        name, _, template = rest.partition("}")
        if brace:
            yield f"{{{name}}}"


def _checks(wanted: Sequence[Mapping[str, Any]], words: Mapping[str, str], answer: str) -> Iterator[Question]:
    for check in wanted:
        expected: dict[str, Any] = {
            key: _filled(value, words).replace("{answer}", answer) for key, value in check["expected"].items()
        }
        statement = " ".join(expected[key] for key in _STATED[check["kind"]])
        if "count" in expected:
            if expected["count"] not in _NUMBERS:
                continue
            expected["count"] = _NUMBERS.index(expected["count"])
        yield Question(statement, check["kind"], expected)


def definite(noun: str) -> str:
    """ "a house" -> "the house"."""
    article, _, rest = noun.partition(" ")
    return f"the {rest}" if article in ("a", "an") else noun if article in ("the", "two") else f"the {noun}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _id(aspect: str, prompt: str, answer: str) -> str:
    content = f"{prompt}\0{answer}".encode()
    return f"{aspect}-{hashlib.sha256(content).hexdigest()[:12]}"
