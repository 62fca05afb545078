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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image

from hedge_tasks.adjudication.base import Case
from hedge_tasks.adjudication.prompt import JudgePrompt
from hedge_tasks.asking.models import Model
from hedge_tasks.asking.template import load_template
from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.evaluations.medhallmark.released import MedHallMarkItem
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.passing import control_steps
from hedge_tasks.making.gate.refuse import no_answer
from hedge_tasks.making.gate.verify import CONTRADICTED, SUPPORTED, EvidenceVerdict, findings, outcome
from hedge_tasks.making.medhallmark.checks import (
    confirmed,
    gives_away,
    instructions_of,
    no_question,
    no_response,
    same_question,
)
from hedge_tasks.making.medhallmark.reports import cleaned, instruction
from hedge_tasks.making.medhallmark.sources import DIMENSIONS, OTHER, WORDING, ReportRow, VqaRow
from hedge_tasks.making.production import Made
from hedge_tasks.perturb.text import QUESTION, load_templates

CONVENTIONAL, CONFIDENCE, COUNTERFACTUAL, IRG = "conventional", "confidence", "counterfactual", "irg"

_TEMPERATURE, _TOP_P = 0.7, 0.95
"""Of what is written; the paper names none."""


@dataclass(frozen=True)
class MadeItem:
    """One made question.

    Attributes:
        part: One of the parts of the set.
        item: As the tasks read it.
        dimension: Of the question; empty of a report.
        origin: The question that it was made from: itself, of a source.
        truth: The true answer of the source.
        rewritten: Whether it is another question in other words.
        twin: Whether it is of the form of a counterfactual question, with a premise that is true.
    """

    part: str
    item: MedHallMarkItem
    dimension: str = ""
    origin: str = ""
    truth: str = ""
    rewritten: bool = False
    twin: bool = False


@dataclass(frozen=True)
class MedHallMark:
    """The construction with its models.

    Attributes:
        writer: Rewrites questions and makes them counterfactual (the paper: GPT-3.5, GPT-4); None makes neither.
        verifiers: Say with the reference before them what is right; the writer where none is named.
        answerer: Answers conventional questions (the paper: LLaVA-Med); None lets all of them go on.
        judge: Says of which level a wrong answer is; None leaves that to people.
        judge_prompt: How it is asked.
        read_image: Name of an image -> its bytes; None where there is none.
        rewrites: Whether questions are rewritten.
        counterfactuals: Whether they are made counterfactual.
        twins: Whether each counterfactual question has a twin of its form whose premise is true; the paper has none.
        seed: Of prefixes and instructions.
    """

    read_image: Callable[[str], bytes | None]
    writer: Model | None = None
    verifiers: Sequence[Model] = ()
    answerer: Model | None = None
    judge: Model | None = None
    judge_prompt: JudgePrompt | None = None
    rewrites: bool = True
    counterfactuals: bool = True
    twins: bool = False
    seed: int = 0

    @property
    def checking(self) -> Sequence[Model]:
        """The verifiers."""
        return self.verifiers or ([self.writer] if self.writer is not None else [])

    def settings(self) -> dict[str, Any]:
        """Return what shapes the set, for its card."""
        models = {"writer": self.writer, "answerer": self.answerer, "judge": self.judge}
        return {
            **{name: None if model is None else dict(model.identity) for name, model in models.items()},
            "verifiers": [dict(verifier.identity) for verifier in self.checking],
            "rewrites": self.rewrites and self.writer is not None,
            "counterfactuals": self.counterfactuals and self.writer is not None,
            "twins": self.twins and self.counterfactuals and self.writer is not None,
            "seed": self.seed,
        }

    def requests(self, rows: Sequence[VqaRow | ReportRow]) -> dict[str, tuple[int, int]]:
        """Fewest and most requests by stage, where every reply can be read."""
        questions = [row for row in rows if isinstance(row, VqaRow) and row.dimension != OTHER]
        unsorted = sum(row.dimension is None for row in questions) if self.writer is not None else 0
        most, least = len(questions), len(questions) - unsorted
        v, answers = len(self.checking), self.answerer is not None
        pairs = 2 if self.writer is not None and self.counterfactuals else 0
        twins = pairs if self.twins else 0
        calls = 1 + pairs if self.writer is not None and self.rewrites else 0
        found = {
            "dimension": (unsorted, unsorted),
            "answer": (least, most) if answers else (0, 0),
            "level": (0, most if self.judge is not None else 0),
            "rewrite": (least if calls else 0, calls * most),
            "same": (0, 3 * v * calls * most),
            "same_control": (0, v * calls * most),
            "counterfactual": (0 if answers or not pairs else least, most if pairs else 0),
            "twin": (0, twins * most),
            "verify": (v * least if answers else 0, (answers + 2 * pairs + 2 * twins) * v * most),
            "control": (0, (bool(answers or pairs) + pairs + twins) * v * most),
        }
        return {stage: counts for stage, counts in found.items() if counts[1]}

    def __call__(self, row: VqaRow | ReportRow, asking: Asking) -> Made:
        """Return what becomes of one row."""
        if isinstance(row, ReportRow):
            return self._of_report(row)
        steps: list[str] = []
        items, reason = self._of_question(row, steps, asking)
        made = {"Id": row.id, "items": items} if items else None
        return Made(made, tuple(steps), reason)

    # --- reports ------------------------------------------------------------------------------------------------------

    def _of_report(self, row: ReportRow) -> Made:
        text, reasons = cleaned(row)
        steps = tuple(f"sentence removed: {reason}" for reason in reasons)
        if not text:
            return Made(None, steps, "nothing is left of the report")
        question = instruction(row, self.seed, WORDING["instructions"])
        item = MedHallMarkItem(f"{IRG}-{row.id}", question, text, row.image)
        return Made({"Id": row.id, "items": [MadeItem(IRG, item)]}, (*steps, "report"))

    # --- questions ----------------------------------------------------------------------------------------------------

    def _of_question(self, row: VqaRow, steps: list[str], asking: Asking) -> tuple[list[MadeItem], str | None]:
        dimension = row.dimension or self._dimension(row, asking)
        if dimension not in (*DIMENSIONS, None):
            return [], "about none of the dimensions"
        about = (dimension or "", row.question, row.answer)
        item = MedHallMarkItem(f"{CONVENTIONAL}-{row.id}", row.question, row.answer, row.image)
        item, goes_on = self._answered(item, row, steps, asking)
        found = [MadeItem(CONVENTIONAL, item, *about)]
        bare = replace(item, answer=None, category=None)
        found += self._rewritten(CONVENTIONAL, bare, about, steps, asking)
        if not goes_on:
            return found, None
        right = list(found)
        found += [self._weakened(one) for one in right]
        for number, made in enumerate(self._counterfactual(row, steps, asking), start=1):
            one = replace(bare, id=f"{COUNTERFACTUAL}-{row.id}-{number}", question=made[0], reference=made[1])
            found.append(MadeItem(COUNTERFACTUAL, one, *about))
            found += self._rewritten(COUNTERFACTUAL, one, about, steps, asking)
            if self.twins and (twin := self._twin(row, made[0], steps, asking)) is not None:
                item = replace(one, id=f"{one.id}-true", question=twin[0], reference=twin[1])
                found.append(MadeItem(COUNTERFACTUAL, item, *about, twin=True))
        return found, None

    def _dimension(self, row: VqaRow, asking: Asking) -> str | None:
        if self.writer is None:
            return None
        shown = {"question": row.question, "reference": row.answer}
        reply = asking.ask("dimension", self.writer, load_template(__package__, "dimension"), shown)
        return OTHER if reply is None else str(reply["dimension"])

    def _answered(
        self, item: MedHallMarkItem, row: VqaRow, steps: list[str], asking: Asking
    ) -> tuple[MedHallMarkItem, bool]:
        """The question with a model's answer and its level, and whether it goes on."""
        if self.answerer is None:
            return item, True
        images, keys = self._picture(row)
        reply = asking.ask(
            "answer",
            self.answerer,
            load_template(__package__, "answer"),
            {"question": row.question},
            images=images,
            image_keys=keys,
        )
        answer = "" if reply is None else reply["answer"].strip()
        if not answer or no_answer(answer):
            steps.append("no answer")
            return item, False
        found = findings(row.question, row.answer, (), answer, self.checking, asking)
        steps += control_steps(found)
        said = outcome(found)
        if said == SUPPORTED and not confirmed(found):
            said = "supported by some"
        steps.append(f"answer {said}")
        if said == SUPPORTED:
            return replace(item, answer=answer, category="correct"), True
        if said != CONTRADICTED:
            return item, False
        return replace(item, answer=answer, category=self._level(item, answer, row, asking)), False

    def _level(self, item: MedHallMarkItem, answer: str, row: VqaRow, asking: Asking) -> str | None:
        if self.judge is None or self.judge_prompt is None:
            return None
        images, keys = self._picture(row) if self.judge_prompt.images != "never" else ([], [])
        shown = self.judge_prompt.values(Case(item.id, row.question, row.answer, answer))
        reply = asking.ask("level", self.judge, self.judge_prompt, shown, images=images, image_keys=keys)
        level = None if reply is None else self.judge_prompt.outcome(reply[self.judge_prompt.answer_field])
        # What verifiers call contradicted and the judge calls correct is left to people.
        return None if level is None or level.label == 0 else level.key

    def _picture(self, row: VqaRow) -> tuple[list[Image.Image], list[str]]:
        content = self.read_image(row.image)
        assert content is not None  # rows without an image were left out before
        with Image.open(io.BytesIO(content)) as opened:
            picture = to_rgb8(opened)
        return [picture], [hashlib.sha256(picture.tobytes()).hexdigest()]

    def _rewritten(
        self, part: str, item: MedHallMarkItem, about: tuple[str, str, str], steps: list[str], asking: Asking
    ) -> list[MadeItem]:
        """A question in other words.

        Args:
            about: Dimension, question and answer of the source.
        """
        if self.writer is None or not self.rewrites:
            return []
        prompt = load_template(__package__, "rewrite")
        shown = {"question": item.question}
        reply = asking.ask(
            "rewrite", self.writer, prompt, shown, number=item.id, temperature=_TEMPERATURE, top_p=_TOP_P
        )
        if reply is None:
            steps.append("rewrites unreadable")
            return []
        found: list[MadeItem] = []
        for number, text in enumerate(reply["questions"], start=1):
            text = text.strip()
            why = no_question(text, item.question, instructions_of(prompt))
            if why is None and text in {one.item.question for one in found}:
                why = "said twice"
            if why is None and gives_away(text, item.question, item.reference):
                why = "gives the answer away"
            if why is None:
                same, said = same_question(item.question, item.reference, text, self.checking, asking)
                steps += said
                why = None if same else "another question"
            steps.append(f"rewrite refused: {why}" if why else f"rewrite of {part}")
            if why is None:
                made = replace(item, id=f"{item.id}-r{number}", question=text)
                found.append(MadeItem(part, made, about[0], item.question, about[2], rewritten=True))
        return found

    def _weakened(self, made: MadeItem) -> MadeItem:
        """Behind one of the ten prefixes, by a digest of the question."""
        templates = load_templates("confidence_weakening")
        digest = hashlib.sha256(f"{self.seed}\0prefix\0{made.item.id}".encode()).hexdigest()
        prefix = templates[int(digest[:8], 16) % len(templates)]
        id_ = made.item.id.replace(CONVENTIONAL, CONFIDENCE, 1)
        return replace(
            made, part=CONFIDENCE, item=replace(made.item, id=id_, prefix=prefix, answer=None, category=None)
        )

    def _counterfactual(self, row: VqaRow, steps: list[str], asking: Asking) -> list[tuple[str, str]]:
        if self.writer is None or not self.counterfactuals:
            return []
        prompt = load_template(__package__, "counterfactual")
        shown = {"question": row.question, "answer": row.answer}
        reply = asking.ask("counterfactual", self.writer, prompt, shown, temperature=_TEMPERATURE, top_p=_TOP_P)
        if reply is None:
            steps.append("counterfactuals unreadable")
            return []
        found: list[tuple[str, str]] = []
        controls: list[EvidenceVerdict] = []
        told = instructions_of(prompt)
        for pair in reply["pairs"]:
            question, response = pair["misleading_question"].strip(), pair["ideal_response"].strip()
            why = no_question(question, row.question, told) or no_response(response, question, told)
            if why is None and question in {one for one, _ in found}:
                why = "said twice"
            if why is None:
                premise = findings(row.question, row.answer, (), question, self.checking, asking)
                controls += premise
                why = None if outcome(premise) == CONTRADICTED else f"premise {outcome(premise)}"
            if why is None:
                corrected = findings(question, row.answer, (), response, self.checking, asking)
                controls += corrected
                why = None if confirmed(corrected) else "response not supported"
            steps.append(f"counterfactual refused: {why}" if why else "counterfactual")
            if why is None:
                found.append((question, response))
        steps += control_steps(controls)
        return found

    def _twin(self, row: VqaRow, misleading: str, steps: list[str], asking: Asking) -> tuple[str, str] | None:
        """A question of the form of a misleading one whose premise is true, with its response."""
        assert self.writer is not None
        prompt = load_template(__package__, "twin")
        shown = {"question": row.question, "answer": row.answer, "misleading": misleading}
        reply = asking.ask(
            "twin", self.writer, prompt, shown, number=misleading, temperature=_TEMPERATURE, top_p=_TOP_P
        )
        if reply is None:
            steps.append("twins unreadable")
            return None
        question, response = reply["question"].strip(), reply["response"].strip()
        told = instructions_of(prompt)
        why = no_question(question, misleading, told) or no_response(response, question, told)
        if why is None:
            premise = findings(row.question, row.answer, (), question, self.checking, asking)
            why = None if confirmed(premise) else "premise not supported"
        if why is None:
            responded = findings(question, row.answer, (), response, self.checking, asking)
            why = None if confirmed(responded) else "response not supported"
        steps.append(f"twin refused: {why}" if why else "twin with a true premise")
        return None if why else (question, response)


def full_question(item: MedHallMarkItem) -> str:
    """A question as it is asked."""
    return item.prefix.replace(QUESTION, item.question) if item.prefix else item.question
