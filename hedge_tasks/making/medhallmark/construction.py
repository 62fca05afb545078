"""Outcome of a row of the sources (Med-HallMark, section 3.4; prompts: Figures 4, 5, 7, 8).

A question with its true answer is a conventional one. Where a model answers it, its answer is held against the true
one: what it answers right goes on, what it answers wrong is kept as a hallucinated answer, with its level. Questions
are rewritten; what goes on is asked behind a confidence-weakening prefix, and is made counterfactual. A report is
cleaned, and asked for by one of the instructions.

Where this differs from the paper: its people correct, label and review, here verifiers with the reference before them
decide, and people look at a sample; a question goes on by itself where no model is to answer; and what the paper's
people would have written anew is left out.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.prompt import JudgePrompt, Outcome
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import Template, load_template
from hedge_tasks.making.digests import choose
from hedge_tasks.making.gate.refuse import folded, no_answer, refused
from hedge_tasks.making.gate.twins import reworded, wrong_twin
from hedge_tasks.making.gate.verify import (
    CONTRADICTED,
    VERIFIER,
    EvidenceVerdict,
    OpenBook,
    confirmed,
    controls_of,
    evidence_verdicts,
    outcome,
    verifying,
)
from hedge_tasks.making.medhallmark.sources import DIMENSIONS, OTHER, WORDING, ReportRow, VqaRow, clean_report
from hedge_tasks.making.stages import Asking, MakingStage, Models, Rejected
from hedge_tasks.perturb.text import load_templates
from hedge_tasks.suites.medhallmark.released import MedHallMarkItem

CONVENTIONAL, CONFIDENCE, COUNTERFACTUAL, IRG = "conventional", "confidence", "counterfactual", "irg"

SAME, CHANGED = "question in other words", "another question"
"""Controls of those who tell questions apart."""

_SAMPLING = {"temperature": 0.7, "top_p": 0.95}
"""Of what is written; the paper names none."""

_UNRELATED = "Who took this image?"
_RHETORICAL = re.compile(
    r", (?:right|correct|no|yes|ok|(?:is|are|was|were|do|does|did|has|have|can|could|would|should|wo|ca)(?:n't)? "
    r"(?:it|they|there|he|she|this|that|we|one))\s*\?\s*$",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:incorrect|wrong|false|untrue|inaccurate|mistaken|erroneous|misleading|not (?:correct|true|right))(?:ly)?\b",
    re.IGNORECASE,
)
_INSTRUCTS = re.compile(
    r"^(?:describe|identify|name|list|specify|state|indicate|determine|tell|explain|characterize|characterise|provide|"
    r"locate|please|give|assess|evaluate|classify|estimate|point|based|considering|looking|from|in|given|with)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class MadeItem:
    """One made question.

    Attributes:
        part: One of the parts of the set.
        item: As the tasks read it.
        origin: The question that it was made from: itself, of a source.
        truth: The true answer of the source.
    """

    part: str
    item: MedHallMarkItem
    origin: str = ""
    truth: str = ""

    @property
    def written(self) -> bool:
        """Whether a model wrote the question."""
        return self.part != IRG and self.item.question != self.origin


# --- checks without a model -------------------------------------------------------------------------------------------


def no_question(text: str, beside: str, instructions: str) -> str | None:
    """Why a text is no question of its own; None where it may be one.

    Args:
        beside: What it is to be another form of: saying it again is an echo.
        instructions: What its writer was told.

    Example:
        >>> no_question("It is, isn't it?", "Is it?", ""), no_question("What is shown?", "What does it show?", "")
        ('rhetorical', None)
    """
    if why := refused(text, "", beside, instructions):
        return why
    if _RHETORICAL.search(text):
        return "rhetorical"
    return None if text.rstrip(" \"'”’)").endswith("?") or _INSTRUCTS.search(text) else "no question"


def no_response(text: str, question: str, instructions: str) -> str | None:
    """Why a text is no response that corrects a premise; None where it may be one.

    Words of correction, which are markers in an answer that is to deceive, are what such a response is made of, and
    that something cannot be told may be all that there is to say: whether it is right is for verifiers.

    Example:
        >>> no_response("Wrong: no kidney is shown.", "How big is it?", ""), no_response("I can't help.", "Is it?", "")
        (None, 'refusal')
    """
    why = refused(_CORRECTS.sub(" ", text), "", question, instructions)
    return None if why == "says nothing definite" else why


def gives_away(text: str, question: str, answer: str) -> bool:
    """Whether a question says its answer, where the one that it was made from does not."""
    words, source, answer_words = (f" {folded(part)} " for part in (text, question, answer))
    return answer_words.strip() not in ("", "yes", "no") and answer_words in words and answer_words not in source


def _instructions(prompt: Template) -> str:
    return "\n".join([prompt.system, *(line for part in prompt.turns for line in part.text)])


def _rewrite_fault(text: str, values: Mapping[str, Any]) -> str:
    return no_question(text, values["question"], _instructions(load_template(__package__, "rewrite"))) or ""


def _pair_fault(pair: tuple[str, str], values: Mapping[str, Any]) -> str:
    told_writer = _instructions(load_template(__package__, "counterfactual"))
    question, response = pair
    return no_question(question, values["question"], told_writer) or no_response(response, question, told_writer) or ""


# --- stages -----------------------------------------------------------------------------------------------------------


def models_of(writer: Model | None, verifiers: Sequence[Model], answerer: Model | None, judge: Model | None) -> Models:
    """By role: the writer verifies where nobody else is named."""
    writers = [writer] if writer else []
    roles = {"writer": writers, VERIFIER: verifiers or writers, "answerer": [answerer], "judge": [judge]}
    return {role: [model for model in those if model] for role, those in roles.items()}


def stages_of(models: Models, judge_prompt: JudgePrompt | None = None) -> dict[str, MakingStage]:
    """The stages of the construction by name, a question to a row; a report takes none.

    Args:
        judge_prompt: How the judge of levels is asked.
    """
    v, answers, writes = len(models[VERIFIER]), bool(models["answerer"]), bool(models["writer"])
    calls = 3 if writes else 0  # the question, and two counterfactual ones
    texts = (v if answers else 0, v * (answers + 4 * writes))
    level = {}
    if judge_prompt:
        level = {"level": MakingStage(judge_prompt, "judge", times=(0, 1))}
        level["level_control"] = replace(level["level"], times=(0, 2))
    same = load_template(__package__, "same")
    return {
        "dimension": MakingStage(
            load_template(__package__, "dimension"), "writer", lambda reply: reply["dimension"], times=(0, 1)
        ),
        "answer": MakingStage(load_template(__package__, "answer"), "answerer", lambda reply: reply["answer"].strip()),
        **level,
        "rewrite": MakingStage(
            load_template(__package__, "rewrite"),
            "writer",
            lambda reply: [text.strip() for text in reply["questions"]],
            _rewrite_fault,
            (0, calls),
            _SAMPLING,
        ),
        "same": MakingStage(same, VERIFIER, lambda reply: reply["same"], times=(0, 3 * v * calls)),
        "same_control": MakingStage(same, VERIFIER, lambda reply: reply["same"], times=(0, 2 * v * calls)),
        "counterfactual": MakingStage(
            load_template(__package__, "counterfactual"),
            "writer",
            lambda reply: [
                (pair["misleading_question"].strip(), pair["ideal_response"].strip()) for pair in reply["pairs"]
            ],
            _pair_fault,
            (0, 1),
            _SAMPLING,
        ),
        **verifying(texts, 3 * v if writes else v),
    }


@dataclass(frozen=True)
class MedHallMark:
    """The construction. Whoever is not among the models does not take part.

    Attributes:
        read_image: Name of an image -> its bytes.
        judge_prompt: How the judge of levels is asked.
        seed: Of prefixes and instructions.
    """

    read_image: Callable[[str], bytes | None]
    judge_prompt: JudgePrompt | None = None
    seed: int = 0

    def __call__(self, row: VqaRow | ReportRow, asking: Asking) -> list[MadeItem]:
        """Return the items of one row. Raises Rejected where there are none."""
        if isinstance(row, VqaRow):
            return self._from_question(row, asking)
        text, reasons = clean_report(row)
        asking.steps.extend(f"sentence removed: {reason}" for reason in reasons)
        if not text:
            raise Rejected("nothing is left of the report")
        question = choose(WORDING["instructions"], self.seed, f"instruction/{row.id}")
        return [MadeItem(IRG, MedHallMarkItem(f"{IRG}-{row.id}", question, text, row.image))]

    def _from_question(self, row: VqaRow, asking: Asking) -> list[MadeItem]:
        dimension = row.dimension
        if dimension is None and asking.models["writer"]:
            dimension = asking.ask("dimension", {"question": row.question, "reference": row.answer}) or OTHER
        if dimension not in (*DIMENSIONS, None):
            raise Rejected("about none of the dimensions")
        bare = MedHallMarkItem(f"{CONVENTIONAL}-{row.id}", row.question, row.answer, row.image)
        source = MadeItem(CONVENTIONAL, bare, row.question, row.answer)
        item, goes_on = self._answered(bare, row, asking)
        items = [replace(source, item=item), *self._rewritten(source, asking)]
        if not goes_on:
            return items
        items += [self._weakened(entry) for entry in list(items)]
        for number, (question, response) in enumerate(self._counterfactual(row, asking), start=1):
            id_ = f"{COUNTERFACTUAL}-{row.id}-{number}"
            false_premise = replace(bare, id=id_, question=question, reference=response)
            entry = replace(source, part=COUNTERFACTUAL, item=false_premise)
            items += [entry, *self._rewritten(entry, asking)]
        return items

    def _answered(self, item: MedHallMarkItem, row: VqaRow, asking: Asking) -> tuple[MedHallMarkItem, bool]:
        """The question with a model's answer and its level, and whether it goes on."""
        if not asking.models["answerer"]:
            return item, True
        images, keys = self._picture(row)
        answer = asking.ask("answer", {"question": row.question}, images=images, image_keys=keys)
        if not answer or no_answer(answer):
            asking.steps.append("no answer")
            return item, False
        verdicts = _verdicts(row.question, row, answer, asking)
        verdict = outcome(verdicts)
        asking.steps.append(f"answer {verdict}")
        if confirmed(verdicts):
            return replace(item, answer=answer, category="correct"), True
        if verdict != CONTRADICTED:
            return item, False
        return replace(item, answer=answer, category=self._level(item, answer, row, asking)), False

    def _level(self, item: MedHallMarkItem, answer: str, row: VqaRow, asking: Asking) -> str | None:
        if not asking.models["judge"] or self.judge_prompt is None:
            return None
        images, keys = self._picture(row) if self.judge_prompt.images != "never" else ([], [])
        prompt, [judge] = self.judge_prompt, asking.models["judge"]

        def level_of(text: str, stage: str) -> Outcome | None:
            fields = prompt.values(Case(item.id, row.question, row.answer, text))
            reply = asking.ask(stage, fields, images=images, image_keys=keys)
            return None if reply is None else prompt.outcome(reply[prompt.answer_field])

        level = level_of(answer, "level")
        # What verifiers call contradicted and the judge calls correct is left to people.
        if level is None or level.label == 0:
            return None
        known = []
        for kind, (text, label) in controls_of(row.answer).items():
            control = level_of(text, "level_control")
            known.append(asking.control(judge, kind, text, control is not None and control.label == label))
        return level.key if all(known) else None

    def _picture(self, row: VqaRow) -> tuple[list[Image.Image], list[str]]:
        content = self.read_image(row.image)
        assert content is not None  # rows without an image were left out before
        with Image.open(io.BytesIO(content)) as opened:
            picture = to_rgb8(opened)
        return [picture], [hashlib.sha256(picture.tobytes()).hexdigest()]

    def _rewritten(self, entry: MadeItem, asking: Asking) -> list[MadeItem]:
        """A question in other words."""
        if not asking.models["writer"]:
            return []
        fields = {"question": entry.item.question}
        texts: dict[str, MadeItem] = {}
        for number, text in enumerate(asking.ask("rewrite", fields, number=entry.item.id) or (), start=1):
            why = asking.stages["rewrite"].passes(text, fields) or ("written twice" if text in texts else "")
            if not why and gives_away(text, entry.item.question, entry.item.reference):
                why = "gives the answer away"
            if not why and not same_question(entry.item.question, entry.item.reference, text, asking):
                why = "another question"
            asking.steps.append(f"rewrite refused: {why}" if why else f"rewrite of {entry.part}")
            if not why:
                item = replace(entry.item, id=f"{entry.item.id}-r{number}", question=text)
                texts[text] = replace(entry, item=item, origin=entry.item.question)
        return list(texts.values())

    def _weakened(self, entry: MadeItem) -> MadeItem:
        """The question behind one of the ten prefixes, chosen by a digest of the question."""
        prefix = choose(load_templates("confidence_weakening"), self.seed, "prefix", entry.item.id)
        id_ = entry.item.id.replace(CONVENTIONAL, CONFIDENCE, 1)
        item = replace(entry.item, id=id_, prefix=prefix, answer=None, category=None)
        return replace(entry, part=CONFIDENCE, item=item)

    def _counterfactual(self, row: VqaRow, asking: Asking) -> list[tuple[str, str]]:
        if not asking.models["writer"]:
            return []
        fields = {"question": row.question, "answer": row.answer}
        accepted: dict[str, str] = {}
        for question, response in asking.ask("counterfactual", fields) or ():
            why = asking.stages["counterfactual"].passes((question, response), fields)
            why = why or ("written twice" if question in accepted else _premise_fault(row, question, response, asking))
            asking.steps.append(f"counterfactual refused: {why}" if why else "counterfactual")
            if not why:
                accepted[question] = response
        return list(accepted.items())


def _premise_fault(row: VqaRow, question: str, response: str, asking: Asking) -> str:
    """Why verifiers refuse a question with its response; empty where they do not."""
    if (verdict := outcome(_verdicts(row.question, row, question, asking))) != CONTRADICTED:
        return f"premise {verdict}"
    return "" if confirmed(_verdicts(question, row, response, asking)) else "response not supported"


def _verdicts(question: str, row: VqaRow, text: str, asking: Asking) -> tuple[EvidenceVerdict, ...]:
    return evidence_verdicts(OpenBook(question, row.answer), text, asking)


def same_question(question: str, answer: str, candidate: str, asking: Asking) -> bool:
    """Whether more than half of the verifiers call a question the same.

    Each is also shown the question in other words, and with one word turned into its contrary: who does not tell these
    apart has no vote.

    Raises:
        Unfinished: A verifier did not reply.
    """
    controls = {SAME: (reworded(question), True), CHANGED: (reworded(wrong_twin(question) or _UNRELATED), False)}
    votes = 0
    for verifier in asking.models[VERIFIER]:

        def same(text: str, stage: str, verifier: Model = verifier) -> bool | None:
            fields = {"question": question, "reference": answer, "other": text}
            reply: bool | None = asking.ask(stage, fields, model=verifier)
            return reply

        if not same(candidate, "same"):
            continue
        told_apart = [
            asking.control(verifier, kind, question, same(text, "same_control") is right)
            for kind, (text, right) in controls.items()
        ]
        votes += all(told_apart)
    return 2 * votes > len(asking.models[VERIFIER])
