"""Fact records that a language model proposes: `{entity, attribute, relation, facts, counterfactual}` (section 3.2).

A reply is a proposal. What is no usable record is dropped with its reason, and whether a picture shows what a record
says is for the checkers to find. What a model says of knowledge is only as true as the model, unless it is given facts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.asking.models import Model
from hedge_tasks.asking.template import load_template
from hedge_tasks.evaluations.shale.items import KNOWLEDGE
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.elements import Element
from hedge_tasks.making.knowledge import Fact, usable_label
from hedge_tasks.making.production import Made
from hedge_tasks.making.shale.records import PictureRecord, Scene, own_elements, scene_of, templates
from hedge_tasks.making.shale.scenes import WRONG_OPTIONS
from hedge_tasks.replies.text import normalise

RECORDS = 10
"""Records that one request asks for."""

_STARTS = 12
TEMPERATURE = 0.9


@dataclass(frozen=True)
class Proposal:
    """One request for records.

    Attributes:
        id: Aspect and number.
        aspect: One of `ASPECTS`.
        start_from: Words to begin with, so that requests do not all come to the same.
        known: Facts to use, with their sources.
    """

    id: str
    aspect: str
    start_from: tuple[str, ...]
    known: tuple[Fact, ...] = ()


def proposals(
    aspect: str, wanted: int, *, seed: int = 0, elements: Sequence[Element] | None = None, facts: Sequence[Fact] = ()
) -> list[Proposal]:
    """As many requests as so many scenes of an aspect take where every record is usable."""
    found = []
    mine = _facts_of(aspect, facts)
    for number in range(-(-wanted // RECORDS)):
        rng = random.Random(f"{seed}/{aspect}/proposal {number}")
        given = mine[number * RECORDS : (number + 1) * RECORDS]
        found.append(Proposal(f"{aspect}/{number}", aspect, _starts(aspect, elements, rng), tuple(given)))
    return found


def _facts_of(aspect: str, facts: Sequence[Fact]) -> list[Fact]:
    relations = templates()["relations"]
    return [fact for fact in facts if relations[fact.relation]["domain"] == aspect]


def _starts(aspect: str, elements: Sequence[Element] | None, rng: random.Random) -> tuple[str, ...]:
    if aspect in KNOWLEDGE:
        return ()
    kinds = templates()["aspects"][aspect]["of"]
    pool = [element.text for element in (own_elements() if elements is None else elements) if element.kind in kinds]
    return tuple(rng.sample(pool, min(_STARTS, len(pool))))


def propose(proposal: Proposal, asking: Asking, writer: Model) -> Made:
    """The scenes of one request, as the row `{"scenes": [...]}`; why records were dropped is in the steps."""
    prompt = load_template(__package__, "propose")
    knows = proposal.aspect in KNOWLEDGE
    template = templates()["knowledge"] if knows else templates()["aspects"][proposal.aspect]
    known = [f"{f.entity}: {f.value} ({f.relation}; {f.source})" for f in proposal.known]
    fields = {
        "aspect": proposal.aspect.replace("_", " "),
        "guide": template["guide"],
        "number": RECORDS,
        "start_from": list(proposal.start_from) or None,
        "known": known or None,
    }
    reply = asking.ask("propose", writer, prompt, fields, temperature=TEMPERATURE)
    if reply is None:
        return Made(None, ("proposal unreadable",), "proposal unreadable")
    scenes: list[Scene] = []
    steps: Counter[str] = Counter()
    for said in reply["records"]:
        record = _record(proposal, said, writer.name)
        if isinstance(record, str):
            steps[f"record dropped: {record}"] += 1
        else:
            scenes.append(scene_of(record))
            steps["record proposed"] += 1
    return Made({"scenes": scenes}, tuple(steps.elements()))


def _record(proposal: Proposal, said: Mapping[str, Any], writer: str) -> PictureRecord | str:
    """A record of a reply, or why it is none."""
    values = [usable_label(said[name].rstrip(".")) for name in ("entity", "attribute")]
    entity, attribute = values
    relation = usable_label(said["relation"].rstrip(".")) if said["relation"].strip() else ""
    wrong = [usable_label(text.rstrip(".")) for text in said["counterfactual"]]
    if entity is None or attribute is None or relation is None:
        return "a value that no question can quote"
    usable = {normalise(text): text for text in reversed(wrong) if text}
    usable.pop(normalise(attribute), None)
    distinct = tuple(dict.fromkeys(text for text in wrong if text in usable.values() and text is not None))
    if len(distinct) < WRONG_OPTIONS:
        return "fewer than three counterfactuals"
    if proposal.aspect in KNOWLEDGE and not said["facts"].strip():
        return "no facts"
    if not relation:
        return "no relation"
    source, licence = _source(proposal, entity, attribute, writer)
    if proposal.known and source == writer:
        return "a fact that is none of those given"
    return PictureRecord(
        aspect=proposal.aspect,
        entity=entity,
        attribute=attribute,
        relation=relation,
        wrong=distinct[:WRONG_OPTIONS],
        near=distinct[WRONG_OPTIONS:],
        facts=" ".join(said["facts"].split()) if proposal.aspect in KNOWLEDGE else "",
        source=source,
        licence=licence,
    )


def _source(proposal: Proposal, entity: str, attribute: str, writer: str) -> tuple[str, str]:
    """The fact that a record uses, else the model that wrote it."""
    for fact in proposal.known:
        if normalise(fact.entity) in normalise(entity) and normalise(fact.value) == normalise(attribute):
            return fact.source, fact.licence
    return writer, "unknown"
