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

from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.prompt import JudgePrompt
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.digests import choose
from hedge_tasks.making.gate.refuse import no_answer
from hedge_tasks.making.gate.verify import (
    CONTRADICTED,
    SUPPORTED,
    EvidenceVerdict,
    confirmed,
    control_steps,
    evidence_verdicts,
    outcome,
)
from hedge_tasks.making.medhallmark.checks import (
    gives_away,
    instructions_of,
    no_question,
    no_response,
    same_question,
)
from hedge_tasks.making.medhallmark.reports import clean_report, instruction
from hedge_tasks.making.medhallmark.sources import DIMENSIONS, OTHER, WORDING, ReportRow, VqaRow
from hedge_tasks.making.production import MadeRecord
from hedge_tasks.perturb.text import QUESTION, load_templates
from hedge_tasks.suites.medhallmark.released import MedHallMarkItem

CONVENTIONAL, CONFIDENCE, COUNTERFACTUAL, IRG = "conventional", "confidence", "counterfactual", "irg"

_TEMPERATURE, _TOP_P = 0.7, 0.95
"""Sampling of what is written; the paper names none."""


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
    def active_verifiers(self) -> Sequence[Model]:
        """The verifiers."""
        return self.verifiers or ([self.writer] if self.writer is not None else [])

    def settings(self) -> dict[str, Any]:
        """Return what shapes the set, for its card."""
        models = {"writer": self.writer, "answerer": self.answerer, "judge": self.judge}
        return {
            **{name: None if model is None else dict(model.identity) for name, model in models.items()},
            "verifiers": [dict(verifier.identity) for verifier in self.active_verifiers],
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
        v, answers = len(self.active_verifiers), self.answerer is not None
        pairs = 2 if self.writer is not None and self.counterfactuals else 0
        twins = pairs if self.twins else 0
        calls = 1 + pairs if self.writer is not None and self.rewrites else 0
        by_stage = {
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
        return {stage: counts for stage, counts in by_stage.items() if counts[1]}

    def __call__(self, row: VqaRow | ReportRow, asking: Asking) -> MadeRecord:
        """Return the items of one row, or why there are none."""
        if isinstance(row, ReportRow):
            return self._from_report(row)
        steps: list[str] = []
        items, reason = self._from_question(row, steps, asking)
        return MadeRecord({"Id": row.id, "items": items} if items else None, tuple(steps), reason)

    # --- reports ------------------------------------------------------------------------------------------------------

    def _from_report(self, row: ReportRow) -> MadeRecord:
        text, reasons = clean_report(row)
        steps = tuple(f"sentence removed: {reason}" for reason in reasons)
        if not text:
            return MadeRecord(None, steps, "nothing is left of the report")
        question = instruction(row, self.seed, WORDING["instructions"])
        item = MedHallMarkItem(f"{IRG}-{row.id}", question, text, row.image)
        return MadeRecord({"Id": row.id, "items": [MadeItem(IRG, item)]}, (*steps, "report"))

    # --- questions ----------------------------------------------------------------------------------------------------

    def _from_question(self, row: VqaRow, steps: list[str], asking: Asking) -> tuple[list[MadeItem], str | None]:
        dimension = row.dimension or self._dimension(row, asking)
        if dimension not in (*DIMENSIONS, None):
            return [], "about none of the dimensions"
        source = (dimension or "", row.question, row.answer)
        item = MedHallMarkItem(f"{CONVENTIONAL}-{row.id}", row.question, row.answer, row.image)
        item, goes_on = self._answered(item, row, steps, asking)
        items = [MadeItem(CONVENTIONAL, item, *source)]
        bare = replace(item, answer=None, category=None)
        items += self._rewritten(CONVENTIONAL, bare, source, steps, asking)
        if not goes_on:
            return items, None
        items += [self._weakened(entry) for entry in list(items)]
        for number, (question, response) in enumerate(self._counterfactual(row, steps, asking), start=1):
            id_ = f"{COUNTERFACTUAL}-{row.id}-{number}"
            false_premise = replace(bare, id=id_, question=question, reference=response)
            items.append(MadeItem(COUNTERFACTUAL, false_premise, *source))
            items += self._rewritten(COUNTERFACTUAL, false_premise, source, steps, asking)
            if self.twins and (twin := self._twin(row, question, steps, asking)) is not None:
                item = replace(bare, id=f"{id_}-true", question=twin[0], reference=twin[1])
                items.append(MadeItem(COUNTERFACTUAL, item, *source, twin=True))
        return items, None

    def _dimension(self, row: VqaRow, asking: Asking) -> str | None:
        if self.writer is None:
            return None
        fields = {"question": row.question, "reference": row.answer}
        reply = asking.ask("dimension", self.writer, load_template(__package__, "dimension"), fields)
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
        verdicts = self._verify(row.question, row.answer, answer, asking)
        steps += control_steps(verdicts)
        verdict = outcome(verdicts)
        if verdict == SUPPORTED and not confirmed(verdicts):
            verdict = "supported by some"
        steps.append(f"answer {verdict}")
        if verdict == SUPPORTED:
            return replace(item, answer=answer, category="correct"), True
        if verdict != CONTRADICTED:
            return item, False
        return replace(item, answer=answer, category=self._level(item, answer, row, asking)), False

    def _level(self, item: MedHallMarkItem, answer: str, row: VqaRow, asking: Asking) -> str | None:
        if self.judge is None or self.judge_prompt is None:
            return None
        images, keys = self._picture(row) if self.judge_prompt.images != "never" else ([], [])
        fields = self.judge_prompt.values(Case(item.id, row.question, row.answer, answer))
        reply = asking.ask("level", self.judge, self.judge_prompt, fields, images=images, image_keys=keys)
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
        self, part: str, item: MedHallMarkItem, source: tuple[str, str, str], steps: list[str], asking: Asking
    ) -> list[MadeItem]:
        """A question in other words.

        Args:
            source: Dimension, question and answer of the source.
        """
        if self.writer is None or not self.rewrites:
            return []
        reply, instructions = self._ask_writer("rewrite", {"question": item.question}, steps, asking, number=item.id)
        rewrites: list[MadeItem] = []
        for number, text in enumerate(reply["questions"] if reply else (), start=1):
            text = text.strip()
            why = no_question(text, item.question, instructions)
            if why is None and text in {entry.item.question for entry in rewrites}:
                why = "said twice"
            if why is None and gives_away(text, item.question, item.reference):
                why = "gives the answer away"
            if why is None:
                same, controls = same_question(item.question, item.reference, text, self.active_verifiers, asking)
                steps += controls
                why = None if same else "another question"
            steps.append(f"rewrite refused: {why}" if why else f"rewrite of {part}")
            if why is None:
                rewritten = replace(item, id=f"{item.id}-r{number}", question=text)
                rewrites.append(MadeItem(part, rewritten, source[0], item.question, source[2], rewritten=True))
        return rewrites

    def _weakened(self, entry: MadeItem) -> MadeItem:
        """The question behind one of the ten prefixes, chosen by a digest of the question."""
        prefix = choose(load_templates("confidence_weakening"), self.seed, "prefix", entry.item.id)
        id_ = entry.item.id.replace(CONVENTIONAL, CONFIDENCE, 1)
        return replace(
            entry, part=CONFIDENCE, item=replace(entry.item, id=id_, prefix=prefix, answer=None, category=None)
        )

    def _counterfactual(self, row: VqaRow, steps: list[str], asking: Asking) -> list[tuple[str, str]]:
        if self.writer is None or not self.counterfactuals:
            return []
        fields = {"question": row.question, "answer": row.answer}
        reply, instructions = self._ask_writer("counterfactual", fields, steps, asking)
        accepted: list[tuple[str, str]] = []
        controls: list[EvidenceVerdict] = []
        for pair in reply["pairs"] if reply else ():
            question, response = pair["misleading_question"].strip(), pair["ideal_response"].strip()
            why = no_question(question, row.question, instructions) or no_response(response, question, instructions)
            if why is None and question in {earlier for earlier, _ in accepted}:
                why = "said twice"
            why = why or self._pair_fault(row, question, response, controls, asking, true_premise=False)
            steps.append(f"counterfactual refused: {why}" if why else "counterfactual")
            if why is None:
                accepted.append((question, response))
        steps += control_steps(controls)
        return accepted

    def _twin(self, row: VqaRow, misleading: str, steps: list[str], asking: Asking) -> tuple[str, str] | None:
        """A question of the form of a misleading one whose premise is true, with its response."""
        fields = {"question": row.question, "answer": row.answer, "misleading": misleading}
        reply, instructions = self._ask_writer("twin", fields, steps, asking, number=misleading)
        if reply is None:
            return None
        question, response = reply["question"].strip(), reply["response"].strip()
        why = no_question(question, misleading, instructions) or no_response(response, question, instructions)
        why = why or self._pair_fault(row, question, response, [], asking, true_premise=True)
        steps.append(f"twin refused: {why}" if why else "twin with a true premise")
        return None if why else (question, response)

    def _ask_writer(
        self, stage: str, fields: dict[str, str], steps: list[str], asking: Asking, *, number: str = ""
    ) -> tuple[dict[str, Any] | None, str]:
        """The writer's reply, and the instructions that it was given."""
        assert self.writer is not None
        prompt = load_template(__package__, stage)
        reply = asking.ask(stage, self.writer, prompt, fields, number=number, temperature=_TEMPERATURE, top_p=_TOP_P)
        if reply is None:
            steps.append(f"{stage}s unreadable")
        return reply, instructions_of(prompt)

    def _pair_fault(
        self,
        row: VqaRow,
        question: str,
        response: str,
        controls: list[EvidenceVerdict],
        asking: Asking,
        *,
        true_premise: bool,
    ) -> str | None:
        """Why verifiers refuse a question with its response; None where they do not.

        Args:
            controls: All verdicts are added to it.
            true_premise: Whether the premise of the question has to be true, or false.
        """
        premise = self._verify(row.question, row.answer, question, asking)
        controls += premise
        if true_premise and not confirmed(premise):
            return "premise not supported"
        if not true_premise and (verdict := outcome(premise)) != CONTRADICTED:
            return f"premise {verdict}"
        corrected = self._verify(question, row.answer, response, asking)
        controls += corrected
        return None if confirmed(corrected) else "response not supported"

    def _verify(self, question: str, answer: str, text: str, asking: Asking) -> tuple[EvidenceVerdict, ...]:
        return evidence_verdicts(question, answer, (), text, self.active_verifiers, asking)


def full_question(item: MedHallMarkItem) -> str:
    """A question as it is asked."""
    return item.prefix.replace(QUESTION, item.question) if item.prefix else item.question
