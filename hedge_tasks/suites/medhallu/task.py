"""MedHallu as an lmms-eval task: the answers are verdicts, and HEDGE's label is that the verdict is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging import Case, Verdict, required_judge
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.perturb import Wording
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.suites.medhallu.documents import ABOUT, verdict_columns
from hedge_tasks.suites.medhallu.judge import MedHalluJudge


class MedHalluTask(HedgeTask):
    """A task whose replies are read as verdicts before they are clustered.

    The judge reads the replies of the baseline as the model wrote them, and its record keeps them. From then on every
    answer that states a verdict is that verdict's name, so that "1", "**1**" and "Answer: 1" are one meaning for any
    clustering, also when the run is rescored; all that state none are `UNREADABLE`, one meaning together.
    """

    judge: MedHalluJudge

    def judge_of(self, settings: DocumentSettings, task: str) -> MedHalluJudge:
        return required_judge(settings.judge, MedHalluJudge, task)

    def choices(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        return ("0", "1", "2") if self.judge.not_sure else ("0", "1")

    def judge_cases(
        self, cases: Sequence[Case], answer_sets: Sequence[AnswerSet]
    ) -> list[tuple[Verdict, Mapping[str, Any]]]:
        """Judge as usual, and keep in the record what tables of finished runs group by."""
        columns = {row["id"]: {column: row[column] for column in ABOUT} for row in self._documents()}
        judged = super().judge_cases(cases, answer_sets)
        return [(verdict, {**facts, **columns[case.id]}) for case, (verdict, facts) in zip(cases, judged, strict=True)]

    def _documents(self) -> Any:
        return self.dataset_no_image[self.config.test_split].select_columns(["id", *ABOUT])

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        verdict = self.judge.read(answer.text, cut=answer.finish == "length")
        return replace(answer, text=UNREADABLE if verdict is None else verdict.replace("_", " "))

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        return verdict_columns(answers)
