"""MedHallu as an lmms-eval task: the answers are verdicts, and HEDGE's label is that the verdict is wrong."""

from __future__ import annotations

from dataclasses import replace

from hedge_tasks.adjudication import required_judge
from hedge_tasks.data.answers import Answer
from hedge_tasks.evaluations.medhallu.judge import MedHalluJudge
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.perturb import Wording


class MedHalluTask(HedgeTask):
    """A task whose replies are read as verdicts before they are clustered.

    The judge reads the replies of the baseline as the model wrote them, and its record keeps them. From then on every
    answer that states a verdict is that verdict's name, so that "1", "**1**" and "Answer: 1" are one meaning for any
    clustering, also when the run is rescored. Answers without a verdict stay as they are.
    """

    judge: MedHalluJudge

    def judge_of(self, settings: DocumentSettings, task: str) -> MedHalluJudge:
        return required_judge(settings.judge, MedHalluJudge, task)

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        verdict = self.judge.read(answer.text)
        return answer if verdict is None else replace(answer, text=verdict.replace("_", " "))
