"""VOPE as an lmms-eval task: the model writes, and is asked about every object that it wrote of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.judging import Case, Verdict, judge_from, required_judge
from hedge_tasks.judging.config import ENVIRONMENT
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.runs.claim_labels import CLAIMS
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.suites.vope.claims import labelled_objects
from hedge_tasks.suites.vope.judge import VopeJudge, rates_relevance, relevance_judges
from hedge_tasks.suites.vope.objects import ObjectRecord, recheck_records, story_facts, story_verdict
from hedge_tasks.suites.vope.rechecks import story_objects
from hedge_tasks.suites.vope.relevance import rate


class VopeTask(HedgeTask):
    """A task in two stages: stories, and a recheck of every object of the baseline story in a fresh turn."""

    judge: VopeJudge

    def judge_of(self, settings: DocumentSettings, task: str) -> VopeJudge:
        """The judge of the YAML. Presence is in the reply and in the data, so that none from the environment is needed
        for it: one that HEDGE_JUDGE names is asked about relevance, if it can rate that.
        """
        judge = required_judge(settings.judge, VopeJudge, task)
        if spec := os.environ.get(ENVIRONMENT, "").strip():
            if _all_rate_relevance(spec):
                judge.relevance = relevance_judges(spec)
            else:
                logger.info("{}: {} names no judge of relevance and is not asked", task, ENVIRONMENT)
        return judge

    def choices(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        """Return none: stories are free; the rechecks have choices, see `rechecks`."""
        return ()

    def second_stage(self) -> SecondStage:
        options = {"reasoning_tags": [list(pair) for pair in self.reasoning_tags]}
        plan = self.plan.replaced(n=0, n_noisy=0)
        if (temperature := self.judge.recheck_temperature) is not None:
            plan = plan.replaced(baseline_temperature=temperature)
        return SecondStage("vope_rechecks", plan, options)

    def judge_cases(
        self, cases: Sequence[Case], answer_sets: Sequence[AnswerSet]
    ) -> list[tuple[Verdict, Mapping[str, Any]]]:
        """One verdict a story, with the record of every object that it mentions."""
        records = rate([self._records(answers) for answers in answer_sets], cases, self.judge.relevance)
        return [
            (
                story_verdict(of_story, self.judge.name, self.judge.version),
                {
                    **story_facts(answers, of_story),
                    CLAIMS: [span.to_dict() for span in labelled_objects(answers, of_story)],
                },
            )
            for of_story, answers in zip(records, answer_sets, strict=True)
        ]

    def _records(self, answers: AnswerSet) -> list[ObjectRecord]:
        objects = story_objects(answers)
        if [f"{answers.id}/{word}" for word, _ in objects] != [recheck.id for recheck in answers.follow_ups]:
            raise DataError(f"{answers.id}: the rechecks are not those of the story's objects")
        return recheck_records(answers, self.judge)


def _all_rate_relevance(spec: str) -> bool:
    judge = judge_from(spec)
    members = getattr(judge, "judges", [judge])
    return all(rates_relevance(member) for member in members)
