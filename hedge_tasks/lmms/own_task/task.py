"""A task of one's own questions with options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging import Judge, required_judge
from hedge_tasks.judging.options import OptionJudge, options_of, read_reply
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.measures.forced_options import forced_measures, offered_facts
from hedge_tasks.measures.measure import Measure, by_name
from hedge_tasks.perturb import Wording
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.sampling.prompts import Prompt


class OptionTask(HedgeTask):
    """Questions whose lettered options stand in them; the reference is the letter of the right one.

    The judge reads the baseline reply as the model wrote it. From then on every answer that can be read is the text of
    the option that it takes, so that "(B)" and "B. dark blue" are one meaning for any clustering.
    """

    judge: OptionJudge

    def _start(
        self, settings: DocumentSettings, *, measures: Mapping[str, Measure], judge: Judge, prompt: Prompt
    ) -> None:
        with_forced = {**measures, **by_name(forced_measures())}
        super()._start(settings, measures=with_forced, judge=judge, prompt=prompt)

    def judge_of(self, settings: DocumentSettings, task: str) -> OptionJudge:
        return required_judge(settings.judge, OptionJudge, task)

    def choices(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(options_of(self._settings.wording(document).question))

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        read = read_reply(self.judge.parsing, answer.text, wording.question, cut=answer.finish == "length")
        text = UNREADABLE if read.value is None else options_of(wording.question).get(read.value, read.value)
        return replace(answer, text=text.lower())

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        return offered_facts(answers, self.doc_to_target(document).strip().upper())
