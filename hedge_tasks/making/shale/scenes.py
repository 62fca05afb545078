"""Scenes out of pools: caption, questions, answers and checks of a picture all come from one record in its template.

(Paper section 3.2: "the textual prompts already contain sufficient image-related information".)

Wrong answers are drawn from what is right elsewhere in the same aspect, as far as there is enough of it: an answer that
never is right would tell without the picture.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from hedge_tasks.making.digests import text_digest
from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.suites.shale.items import KNOWLEDGE

WRONG_OPTIONS = 3
_MOST_NEAR = 60
_TRIES = 60
"""Number of tries to find something new before a pool counts as exhausted."""

T = TypeVar("T")


@dataclass(frozen=True)
class Scene:
    """One clean picture: its content, and what is asked about it.

    Attributes:
        id: The same for the same content, on any machine.
        aspect: One of `ASPECTS`.
        kind: "faithfulness" or "factuality".
        entity: Kind of thing that is asked about.
        prompt: What the picture shows, in words.
        ynq, statement: With `{answer}` to be filled in.
        ffq: The open question.
        answer: The right one.
        wrong: At least three wrong ones, the first of which misleads (NegYNQ, TXT, PFX).
        near: Further wrong ones of the same type, which SYN takes its options from; the nearest kin first.
        facts: What is known beyond the picture.
        checks: What has to be seen in it.
        drawing: What a generator that draws by code needs: `figure` and `values`; empty where only a model can make it.
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
    """Templates and facts for image generators that take prompts."""
    return _data("templates.json")


def pools() -> dict[str, Any]:
    """Pools of what can be drawn by code."""
    return _data("pools.json")


def definite(noun: str) -> str:
    """ "a house" -> "the house"."""
    article, _, remainder = noun.partition(" ")
    return f"the {remainder}" if article in ("a", "an") else noun if article in ("the", "two") else f"the {noun}"


def _scene(
    aspect: str,
    template: Mapping[str, Any],
    values: Mapping[str, str],
    answer: str,
    possible: Sequence[str],
    *,
    entity: str = "",
    drawing: Mapping[str, Any] | None = None,
) -> Scene:
    """A scene in the words of a template.

    Args:
        values: What fills its slots but `{answer}`; `{the_slot}` has the definite article.
        possible: Wrong answers, the first three of which are offered.
        entity: What is asked about; empty: as the template says.
    """
    words = {"answer": "{answer}"}
    for name, value in values.items():
        words |= {name: value, f"the_{name}": definite(value), name.capitalize(): _capital(value)}
        words[f"The_{name}"] = _capital(definite(value))
    texts = {name: template.get(name, "").format(**words) for name in ("prompt", "ynq", "ffq", "statement", "facts")}
    prompt = texts["prompt"].replace("{answer}", answer)
    checks = [
        PictureQuestion(check["statement"].format(**words).replace("{answer}", answer), check["kind"])
        for check in template.get("checks", ())
    ]
    return Scene(
        id=f"{aspect}-{text_digest(prompt, answer)[:12]}",
        aspect=aspect,
        kind="factuality" if aspect in KNOWLEDGE else "faithfulness",
        entity=entity or template["entity"],
        prompt=prompt,
        ynq=texts["ynq"],
        ffq=texts["ffq"],
        statement=texts["statement"],
        answer=answer,
        wrong=tuple(possible[:WRONG_OPTIONS]),
        near=tuple(possible[WRONG_OPTIONS:]),
        facts=_capital(texts["facts"].replace("{answer}", answer)),
        checks=(PictureQuestion(prompt, "statement"), *checks),
        drawing=drawing or {},
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def scenes_of(aspect: str, count: int, *, seed: int = 0, drawn: bool = False) -> list[Scene]:
    """Scenes of an aspect, at most as many as are wanted; no two of the same content.

    Args:
        drawn: Whether they are to be drawn by code, and not made by a model.
    """
    if drawn:
        return _distinct(aspect, _drawn_scene, count, seed) if aspect in pools()["aspects"] else []
    return _distinct(aspect, _known_scene if aspect in KNOWLEDGE else _seen_scene, count, seed)


def _distinct(aspect: str, build: Callable[[str, int, int], Scene | None], count: int, seed: int) -> list[Scene]:
    scenes: dict[str, Scene] = {}
    place = last = 0
    while len(scenes) < count and place - last < _TRIES:
        scene = build(aspect, place, seed)
        place += 1
        if scene is not None and scene.prompt not in scenes:
            scenes[scene.prompt], last = scene, place
    return list(scenes.values())


def _in_turn(choices: Sequence[T], place: int, seed: str) -> T:
    """All before any comes again, so that a small set has many different ones."""
    turn, place = divmod(place, len(choices))
    shuffled = list(choices)
    random.Random(f"{seed}/turn {turn}").shuffle(shuffled)
    return shuffled[place]


# --- what can be drawn ------------------------------------------------------------------------------------------------


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
    # What is right of other pictures comes first.
    drawable = [e for e in dict.fromkeys(subjects.values() or pool["answers"]) if e != answer]
    others = [e for e in pool["others"] if e != answer]
    rng.shuffle(drawable)
    rng.shuffle(others)
    drawing = {"figure": pool["figure"], "values": {**values, "answer": answer}}
    return _scene(aspect, pool, values, answer, [*drawable, *others], drawing=drawing)


# --- what a model makes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Element:
    """A word for something that a picture can show; words of one family are siblings."""

    text: str
    family: str

    @property
    def noun(self) -> str:
        """ "a park bench" -> "bench"."""
        return self.text.lower().split()[-1]

    def excludes(self, element: _Element) -> bool:
        """Whether both can be right of one picture: one is a kind of the other by its name."""
        first, second = (e.text.casefold().partition(" ")[2] or e.text.casefold() for e in (self, element))
        return first.endswith(second) or second.endswith(first)


@cache
def _elements(kind: str) -> Sequence[_Element]:
    """Our own words of a kind of things."""
    return _elements_of(_data("elements.json")["kinds"][kind])


def _elements_of(families: Mapping[str, Sequence[str]]) -> list[_Element]:
    return [_Element(word, family) for family, words in families.items() for word in words]


def _seen_scene(aspect: str, place: int, seed: int) -> Scene | None:
    """A scene whose answer is seen in the picture; None where too few wrong answers are left."""
    template = templates()["aspects"][aspect]
    rng = random.Random(f"{seed}/{aspect}/{place}")
    kind = _in_turn(template["of"], place, f"{seed}/{aspect}")
    entity = answer = rng.choice(_elements(kind))
    pool, subject = _elements(kind), kind
    if "answers" in template:
        pool, subject = _elements_of(template["answers"]), entity.text
        right = rng.choice(template.get("shown") or [e.text for e in pool])
        answer = next(e for e in pool if e.text == right)
    elif "answers_of" in template:  # the larger of two things, either of which may be the larger elsewhere
        pool, subject = _elements(rng.choice(template["answers_of"])), entity.text
        answer = rng.choice([e for e in pool if not e.excludes(entity)])
    relation = _relation(template, kind, subject, rng)
    beside = f"{subject} {relation}".lower().split()
    wrong, near = _wrong_answers(answer, [e for e in pool if e.noun not in beside], template.get("shown"), rng)
    if template.get("smaller_misleads"):
        wrong = [subject, *wrong[: WRONG_OPTIONS - 1]]
    if len(wrong) < WRONG_OPTIONS:
        return None
    values = {"entity": subject, "relation": relation}
    return _scene(aspect, template, values, answer.text, [*wrong, *near], entity=subject.lower().split()[-1])


def _relation(template: Mapping[str, Any], kind: str, subject: str, rng: random.Random) -> str:
    if "relations_of" in template:
        return rng.choice([e.text for e in _elements(template["relations_of"]) if e.text != subject])
    settings = "outdoors" if kind in template.get("outdoors", ()) else template["settings"]
    return str(rng.choice(templates()["settings"][settings]))


def _wrong_answers(
    answer: _Element, pool: Sequence[_Element], preferred: Sequence[str] | None, rng: random.Random
) -> tuple[list[str], list[str]]:
    """Three wrong answers, what is right of other pictures first, and the others, the answer's siblings first."""
    possible = [e for e in pool if not e.excludes(answer)]
    rng.shuffle(possible)
    possible.sort(key=lambda e: preferred is not None and e.text not in preferred)
    near = sorted(possible[WRONG_OPTIONS:], key=lambda e: e.family != answer.family)[:_MOST_NEAR]
    return [e.text for e in possible[:WRONG_OPTIONS]], [e.text for e in near]


def _known_scene(aspect: str, place: int, seed: int) -> Scene:
    """A scene whose answer is known of what the picture shows."""
    relations = [relation for relation in templates()["relations"].values() if relation["domain"] == aspect]
    facts = [(relation, *pair) for relation in relations for pair in relation["pairs"].items()]
    relation, entity, answer = _in_turn(facts, place, f"{seed}/{aspect}")
    rng = random.Random(f"{seed}/{aspect}/{place}")
    values = dict.fromkeys(value for value in relation["pairs"].values() if value.casefold() != answer.casefold())
    possible = list(values)
    rng.shuffle(possible)
    template = {**templates()["knowledge"], **relation}
    return _scene(aspect, template, {"entity": entity}, answer, possible[: WRONG_OPTIONS + _MOST_NEAR])
