from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hedge_colours.judge import colour_in
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.perturb import Wording
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import SampleRequest


class ColourTask(HedgeTask):
    """Asks twice, and reads replies as the colour that they name."""

    def second_stage(self) -> SecondStage:
        return SecondStage("colours_again", self.plan.replaced(n=1, n_noisy=0))

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        return replace(answer, text=colour_in(answer.text) or answer.text)

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        [again] = answers.follow_ups
        return {"firm": int(colour_in(again.baseline.text) == answers.baseline.text)}


def ask_again(request: SampleRequest, answers: AnswerSet, stage: SecondStage) -> list[SampleRequest]:
    said = colour_in(answers.baseline.text)
    again = replace(request, id=f"{request.id}/again", prompt=load_prompt("colours/again"), plan=stage.plan)
    return [replace(again, key=f"{request.key}/{said}", second_stage=None)]
