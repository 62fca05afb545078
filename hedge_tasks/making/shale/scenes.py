"""Scenes out of pools: what can be drawn by code, and what a model is told to make.

Wrong answers are drawn from what is right elsewhere in the same aspect, as far as there is enough of it: an answer that
never is right would tell without the picture.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.making.shale.records import (
    Element,
    Fact,
    PictureRecord,
    Scene,
    capital,
    checks_of,
    definite,
    filled,
    noun,
    own_elements,
    own_facts,
    pools,
    scene_id,
    scene_of,
    templates,
)
from hedge_tasks.suites.shale.items import KNOWLEDGE

WRONG_OPTIONS = 3
_MOST_NEAR = 60
_TRIES = 60
"""Number of tries to find something new before a pool counts as exhausted."""

# --- what can be drawn ------------------------------------------------------------------------------------------------


def drawn_scenes(aspect: str, count: int, *, seed: int = 0) -> list[Scene]:
    """Scenes that can be drawn by code, at most as many as are wanted; no two of the same content."""
    drawable = aspect in pools()["aspects"]
    return _distinct(lambda place: _drawn_scene(aspect, place, seed), count) if drawable else []


def _distinct(make: Callable[[int], Scene | None], count: int) -> list[Scene]:
    scenes: dict[str, Scene] = {}
    place = last = 0
    while len(scenes) < count and place - last < _TRIES:
        scene = make(place)
        place += 1
        if scene is not None and scene.prompt not in scenes:
            scenes[scene.prompt], last = scene, place
    return list(scenes.values())


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
        id=scene_id(aspect, prompt, answer),
        aspect=aspect,
        kind=pool["kind"],
        entity=pool["entity"],
        prompt=prompt,
        ynq=filled(pool["ynq"], words),
        ffq=filled(pool["ffq"], words),
        statement=filled(pool["statement"], words),
        answer=answer,
        wrong=tuple(possible[:WRONG_OPTIONS]),
        near=tuple(possible[WRONG_OPTIONS:]),
        facts=facts[:1].upper() + facts[1:],
        checks=(PictureQuestion(prompt, "statement", {}), *checks_of(pool.get("checks", ()), words, answer)),
        drawing={"figure": pool["figure"], "values": {**values, "answer": answer}},
    )


def _in_turn(choices: list[str], place: int, seed: str) -> str:
    """All before any comes again, so that a small set has many different ones."""
    turn, place = divmod(place, len(choices))
    random.Random(f"{seed}/turn {turn}").shuffle(choices)
    return choices[place]


# --- what a model makes ----------------------------------------------------------------------------------------------


def prompted_scenes(aspect: str, count: int, *, seed: int = 0) -> list[Scene]:
    """Scenes of elements in the templates of an aspect, for generators of prompts; no two of the same content."""
    if aspect in KNOWLEDGE:
        mine = facts_of(aspect)
        return _distinct(lambda place: scene_of(_knowledge(aspect, mine, place, seed)), count) if mine else []
    by_kind: dict[str, list[Element]] = {}
    for element in own_elements():
        by_kind.setdefault(element.kind, []).append(element)
    return _distinct(lambda place: _prompted_scene(aspect, by_kind, place, seed), count)


def _prompted_scene(aspect: str, by_kind: Mapping[str, list[Element]], place: int, seed: int) -> Scene | None:
    template = templates()["aspects"][aspect]
    rng = random.Random(f"{seed}/{aspect}/{place}")
    kinds = [kind for kind in template["of"] if by_kind.get(kind)]
    kind = _in_turn(kinds, place, f"{seed}/{aspect}")
    if "answers" in template:
        entity = rng.choice(by_kind[kind])
        pool = [Element(word, aspect, family) for family, words in template["answers"].items() for word in words]
        right = rng.choice(template.get("shown") or [e.text for e in pool])
        answer = next(e for e in pool if e.text == right)
        subject = entity.text
    else:
        entity = answer = rng.choice(by_kind[kind])
        pool = by_kind[kind]
        subject = kind
        if "answers_of" in template:  # the larger of two things, either of which may be the larger elsewhere
            larger = rng.choice(template["answers_of"])
            pool, subject = by_kind[larger], entity.text
            answer = rng.choice([e for e in pool if not e.excludes(entity)])
    relation = _relation(template, by_kind, kind, subject, rng)
    wrong, near = _wrong_answers(answer, pool, template.get("shown"), f"{subject} {relation}", rng)
    if template.get("smaller_misleads"):
        wrong = [subject, *wrong[: WRONG_OPTIONS - 1]]
    if len(wrong) < WRONG_OPTIONS:
        return None
    return scene_of(PictureRecord(aspect, subject, answer.text, relation, tuple(wrong[:WRONG_OPTIONS]), tuple(near)))


def _relation(
    template: Mapping[str, Any], by_kind: Mapping[str, list[Element]], kind: str, subject: str, rng: random.Random
) -> str:
    if "relations_of" in template:
        return rng.choice([e.text for e in by_kind[template["relations_of"]] if e.text != subject])
    settings = "outdoors" if kind in template.get("outdoors", ()) else template["settings"]
    return str(rng.choice(templates()["settings"][settings]))


def _wrong_answers(
    answer: Element, pool: Sequence[Element], preferred: Sequence[str] | None, beside: str, rng: random.Random
) -> tuple[list[str], list[str]]:
    """Three wrong answers drawn at random, and the others, the answer's siblings first."""
    possible = [e for e in pool if not e.excludes(answer) and noun(e.text) not in beside.lower().split()]
    rng.shuffle(possible)
    if preferred:  # what is right of other pictures comes first
        possible.sort(key=lambda e: e.text not in preferred)
    wrong, remaining = possible[:WRONG_OPTIONS], possible[WRONG_OPTIONS:]
    remaining.sort(key=lambda e: e.family != answer.family)
    return [e.text for e in wrong], [e.text for e in remaining[:_MOST_NEAR]]


# --- knowledge --------------------------------------------------------------------------------------------------------


def facts_of(domain: str) -> list[Fact]:
    """Facts of a domain."""
    return [fact for fact in own_facts() if templates()["relations"][fact.relation]["domain"] == domain]


def _knowledge(aspect: str, facts: Sequence[Fact], place: int, seed: int) -> PictureRecord:
    chosen = facts[int(_in_turn([str(i) for i in range(len(facts))], place, f"{seed}/{aspect}"))]
    rng = random.Random(f"{seed}/{aspect}/{place}")
    right = chosen.value.casefold()
    siblings = (f.value for f in facts if f.relation == chosen.relation and f.value.casefold() != right)
    possible = list(dict.fromkeys(siblings))
    rng.shuffle(possible)
    relation = templates()["relations"][chosen.relation]
    words = filled(relation["facts"], {"entity": chosen.entity, "Entity": capital(chosen.entity)})
    return PictureRecord(
        aspect=aspect,
        entity=chosen.entity,
        attribute=chosen.value,
        relation=relation["relation"],
        wrong=tuple(possible[:WRONG_OPTIONS]),
        near=tuple(possible[WRONG_OPTIONS : WRONG_OPTIONS + _MOST_NEAR]),
        facts=words.replace("{answer}", chosen.value),
        template=chosen.relation,
    )
