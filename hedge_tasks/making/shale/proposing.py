"""Fact records that a language model proposes: `{entity, attribute, relation, facts, counterfactual}` (section 3.2).

A reply is a proposal. What is no usable record is dropped with its reason, and whether a picture shows what a record
says is for the checkers to find. What a model says of knowledge is only as true as the model.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.llm.template import load_template
from hedge_tasks.making.gate.refuse import refused
from hedge_tasks.making.gate.verify import CONTRADICTED, OpenBook, evidence_verdicts, outcome, verifying
from hedge_tasks.making.gate.wording import entity_fault, form_of, is_plural, nested, unfit, unlike, unquoted
from hedge_tasks.making.shale.records import (
    PictureRecord,
    Scene,
    own_elements,
    scene_of,
    templates,
    usable_label,
)
from hedge_tasks.making.shale.scenes import WRONG_OPTIONS
from hedge_tasks.making.stages import Asking, MakingStage, Rejected
from hedge_tasks.suites.shale.items import KNOWLEDGE

RECORDS = 10
"""Records that one request asks for."""

MOST_WRONG = 6
"""Wrong answers of a record, at most; the prompt's schema says so."""

_STARTS = 12
_TOO_FEW = "fewer than three counterfactuals"
TEMPERATURE = 0.9


@dataclass(frozen=True)
class Proposal:
    """One request for records.

    Attributes:
        id: Aspect and number.
        aspect: One of `ASPECTS`.
        start_from: Words to begin with, so that requests do not all come to the same.
    """

    id: str
    aspect: str
    start_from: tuple[str, ...]


def proposals(aspect: str, count: int, *, seed: int = 0) -> list[Proposal]:
    """As many requests as so many scenes of an aspect take where every record is usable."""
    return [
        Proposal(f"{aspect}/{number}", aspect, _starts(aspect, random.Random(f"{seed}/{aspect}/proposal {number}")))
        for number in range(-(-count // RECORDS))
    ]


def _starts(aspect: str, rng: random.Random) -> tuple[str, ...]:
    if aspect in KNOWLEDGE:
        return ()
    kinds = templates()["aspects"][aspect]["of"]
    pool = [element.text for element in own_elements() if element.kind in kinds]
    return tuple(rng.sample(pool, min(_STARTS, len(pool))))


def proposing(n_verifiers: int) -> dict[str, MakingStage]:
    """The stages of a proposal: its records, and what verifiers say of each of their wrong answers."""
    records = MakingStage(
        load_template(__package__, "propose"),
        "writer",
        lambda reply: reply["records"],
        sampling={"temperature": TEMPERATURE},
    )
    most = n_verifiers * RECORDS
    return {"propose": records, **verifying((0, most * MOST_WRONG), most)}


def propose(proposal: Proposal, asking: Asking) -> list[Scene]:
    """The scenes of one request; why records were dropped is in the steps."""
    knows = proposal.aspect in KNOWLEDGE
    template = templates()["knowledge"] if knows else templates()["aspects"][proposal.aspect]
    fields = {
        "aspect": proposal.aspect.replace("_", " "),
        "guide": template["guide"],
        "number": RECORDS,
        "start_from": list(proposal.start_from) or None,
    }
    reply = asking.ask("propose", fields)
    if reply is None:
        raise Rejected("proposal unreadable")
    scenes: list[Scene] = []
    for reply_record in reply:
        record = _record(proposal, reply_record, asking.models["writer"][0].name)
        if not isinstance(record, str):
            asking.steps.append("record proposed")
            record = _verified(record, asking)
        if isinstance(record, str):
            asking.steps.append(f"record dropped: {record}")
        else:
            scenes.append(scene_of(record))
    return scenes


def _verified(record: PictureRecord, asking: Asking) -> PictureRecord | str:
    """A record with the wrong answers that contradict it, or why too few are left.

    Raises:
        Unfinished: A verifier did not reply.
    """
    scene = scene_of(record)
    knowledge = [f"The image shows {scene.prompt}.", *filter(None, [scene.facts])]
    evidence = OpenBook(scene.ffq, scene.stating(scene.answer), knowledge)
    wrong: list[str] = []
    for text in (*record.wrong, *record.near):
        if (verdict := outcome(evidence_verdicts(evidence, scene.stating(text), asking))) == CONTRADICTED:
            wrong.append(text)
        else:
            asking.steps.append(f"wrong answer verified as {verdict}")
    if len(wrong) < WRONG_OPTIONS:
        return f"{_TOO_FEW} that it contradicts"
    return replace(record, wrong=tuple(wrong[:WRONG_OPTIONS]), near=tuple(wrong[WRONG_OPTIONS:]))


def _record(proposal: Proposal, reply: Mapping[str, Any], writer: str) -> PictureRecord | str:
    """A record of a reply, or why it is none."""
    knows = proposal.aspect in KNOWLEDGE
    entity, attribute, relation = (_label(reply[name]) for name in ("entity", "attribute", "relation"))
    if entity is None or attribute is None:
        return "a value that no question can quote"
    if relation is None:
        return "no relation" if not reply["relation"].strip() else "a value that no question can quote"
    wrong = _wrong_ones(proposal.aspect, attribute, [_label(text) for text in reply["counterfactual"]])
    faults = {
        "an instruction": unfit(reply["facts"], quoted=True),
        _TOO_FEW: len(wrong) < WRONG_OPTIONS,
        "no facts": knows and not reply["facts"].strip(),
    }
    why = _misworded(proposal.aspect, {"entity": entity, "attribute": attribute, "relation": relation})
    if why := why or next((fault for fault, there in faults.items() if there), None):
        return why
    facts = " ".join(reply["facts"].split()) if knows else ""
    first, near = wrong[:WRONG_OPTIONS], wrong[WRONG_OPTIONS:]
    values = (proposal.aspect, entity, attribute, relation, first, near, facts)
    return PictureRecord(*values, source=writer, licence="unknown")


def _label(text: str) -> str | None:
    """A value as a question quotes it; what it quotes itself is named without the marks: "STOP" is STOP."""
    return usable_label(unquoted(text).rstrip("."))


def _misworded(aspect: str, values: Mapping[str, str]) -> str | None:
    """Why the values of a record make no question: instructions, sentences, negations, or not of the aspect's form."""
    forms = {} if aspect in KNOWLEDGE else templates()["aspects"][aspect]["forms"]
    entity = values["entity"]
    for name, text in values.items():
        if text and (why := unfit(text, quoted=_is_quoted(aspect, name))):
            return why
        if form_of(text or "-") not in forms.get(name, (form_of(text or "-"),)):
            return f"{name} of another form"
    several = aspect != "interaction_relation" or " and " in entity or form_of(entity) != "with an article"
    if (aspect == "count" and not is_plural(entity)) or not several:
        return "entity of another form"
    return entity_fault(entity, values["attribute"])


def _wrong_ones(aspect: str, attribute: str, counterfactuals: Sequence[str | None]) -> tuple[str, ...]:
    """The counterfactuals that may stand beside an answer: wrong by their words, told by none of them, each once."""
    accepted: list[str] = []
    quoted = _is_quoted(aspect, "attribute")
    for text in counterfactuals:
        if text is None or unfit(text, quoted=quoted) or unlike(text, attribute):
            continue
        # "PLEASE CLOSE THE GATE" is no refusal on a sign.
        if (quoted or not refused(text, attribute)) and not nested(text, attribute, accepted):
            accepted.append(text)
    return tuple(accepted)


def _is_quoted(aspect: str, name: str) -> bool:
    return aspect == "scene_text" and name == "attribute"
