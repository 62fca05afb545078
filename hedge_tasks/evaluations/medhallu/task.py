"""MedHallu as an lmms-eval task: the answers are verdicts, and HEDGE's label is that the verdict is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hedge_tasks.adjudication import build_judge
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError
from hedge_tasks.evaluations.medhallu.judge import MedHalluJudge
from hedge_tasks.lmms.task import HedgeTask


class MedHalluTask(HedgeTask):
    """A task whose replies are read as verdicts before they are clustered.

    The judge reads the replies of the baseline as the model wrote them, and its record keeps them. From then on every
    answer that states a verdict is that verdict's name, so that "1", "**1**" and "Answer: 1" are one meaning for any
    clustering, also when the run is rescored. Answers without a verdict stay as they are.
    """

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        super().__init__(config=config, model_name=model_name)
        # The verdict is in the reply: no other judge can tell, whatever the environment names for other tasks.
        options = dict(self._settings.judge)
        judge = build_judge(options.pop("name"), **options)
        if not isinstance(judge, MedHalluJudge):
            raise ConfigError(f"{self.config.task}: the judge must be 'medhallu', got {judge.name!r}")
        self._judge = self._reader = judge

    def _adjudicate(self, answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        return [self._as_verdicts(answer_set) for answer_set in super()._adjudicate(answer_sets)]

    def _as_verdicts(self, answer_set: AnswerSet) -> AnswerSet:
        def read(answer: Answer) -> Answer:
            verdict = self._reader.read(answer.text)
            return answer if verdict is None else replace(answer, text=verdict.replace("_", " "))

        return replace(
            answer_set,
            baseline=read(answer_set.baseline),
            clean=tuple(map(read, answer_set.clean)),
            noisy=tuple(map(read, answer_set.noisy)),
        )
