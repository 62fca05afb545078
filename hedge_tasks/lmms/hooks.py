"""Hooks of a task: what an evaluation overrides where its YAML cannot say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging import (
    Case,
    Judge,
    Verdict,
    configured_judge,
)
from hedge_tasks.lmms.reasoning import spoken
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.perturb import Wording
from hedge_tasks.replies import spoken_text
from hedge_tasks.sampling.plan import SecondStage


class TaskHooks:
    """Defaults of the hooks, in the order in which they are called.

    Attributes:
        judge: says which baseline answers are hallucinated.
        kept: columns of texts that the run file keeps of every document, for tables of finished runs, beside those that
            the suite's own numbers need.
    """

    judge: Judge
    kept: ClassVar[tuple[str, ...]] = ()

    def judge_of(self, settings: DocumentSettings, task: str) -> Judge:
        """The judge of the task; called first of all, before data is loaded. Default: as YAML and environment say.

        Args:
            settings: the key `hedge` of the YAML.
            task: its name, for errors.
        """
        return configured_judge(settings.judge)

    def second_stage(self) -> SecondStage | None:
        """Return what every document is asked in the light of its answers; called when the plan is known. Default:
        nothing.
        """
        return None

    def judge_cases(
        self, cases: Sequence[Case], answer_sets: Sequence[AnswerSet]
    ) -> list[tuple[Verdict, Mapping[str, Any]]]:
        """Return the verdict on each document, and what else its record should hold. Default: the judge is asked.

        Args:
            cases: what a judge sees of every document, in the order of the answer sets.
            answer_sets: all answers, with those of the second stage as `follow_ups`.
        """
        if self.answers_are_free:  # else the judge reads the reply, as the model wrote it
            cases = [replace(case, answer=spoken_text(case.answer)) for case in cases]
        return [(verdict, {}) for verdict in self.judge.judge(cases)]

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        """Return an answer as it is clustered and stored once it is judged. Default: without thoughts and labels.

        For replies of a fixed form: "1", "**1**" and "Answer: 1" are one meaning for any clustering once each is read.

        Args:
            answer: any answer of a document: baseline, clean or noisy.
            wording: that this draw was asked with, perturbed where the draw is a noisy one.
        """
        return spoken(answer)

    def choices(self, document: Mapping[str, Any]) -> Sequence[str] | None:
        """The texts that answer a document's question, for `guided: true` and for the model's distribution over them.

        Default: None, its answers are free.

        An empty sequence leaves this question free in a task whose second stage has questions with such texts.
        """
        return None

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        """Return what the metrics see of a document besides its columns. Default: nothing."""
        return {}

    def circumstances(self) -> Mapping[str, Any]:
        """Return what else the metrics rest on, such as models that they load, for the record. Default: nothing."""
        return {}

    @property
    def answers_are_free(self) -> bool:
        """Whether replies have no fixed form that the evaluation reads."""
        return type(self).read_answer is TaskHooks.read_answer
