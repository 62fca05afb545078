"""VOPE as an lmms-eval task: the model writes, and is asked about every object that it wrote of."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval.api.instance import Instance
from loguru import logger

from hedge_tasks.adjudication import build_judge, judge_from, keep_labels, verdict_record
from hedge_tasks.adjudication.config import ENVIRONMENT, LABELS
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.evaluations.vope.building import DATASET
from hedge_tasks.evaluations.vope.documents import objects_of
from hedge_tasks.evaluations.vope.extraction import objects_in
from hedge_tasks.evaluations.vope.judge import VopeJudge, rates_relevance, relevance_judges
from hedge_tasks.evaluations.vope.objects import ObjectRecord, answered_records, story_verdict
from hedge_tasks.evaluations.vope.relevance import rate
from hedge_tasks.evaluations.vope.vocabulary import object_phrase
from hedge_tasks.lmms.task import DocumentSettings, HedgeTask, _document_config, _output_folder
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import SampleRequest

_RECHECK, _RECHECK_PLURAL = "vope/recheck", "vope/recheck_plural"


class VopeTask(HedgeTask):
    """A task in two stages: stories, and a recheck of every object of the baseline story in a fresh turn.

    Rechecks are drawn at the baseline's temperature. A plan needs at least one clean answer, so each recheck has a
    second reply, which tells how firm the first one is (`recheck_flips`).
    """

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        # First of all: a wrong judge should not cost the loading of the data.
        judge = own_judge(config)
        super().__init__(config=config, model_name=model_name)
        self._judge = self._vope = judge
        self._recheck_prompts = {False: load_prompt(_RECHECK), True: load_prompt(_RECHECK_PLURAL)}
        self._requests: dict[int, SampleRequest] = {}

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        try:
            super().download(dataset_kwargs)
        except DataError as error:
            if self.config.dataset_path != DATASET:
                raise
            hint = "VOPE's own images are not on the hub: build the set with `hedge data vope` (see its README)"
            raise DataError(f"{error} {hint}") from error

    # --- requests -----------------------------------------------------------------------------------------------------

    def build_all_requests(self, **options: Any) -> None:
        self._requests.clear()
        super().build_all_requests(**options)
        # One object for all rechecks: the hook shares what follows from a plan.
        self._recheck_plan = replace(self._plan, n=1, n_noisy=0)

    def construct_requests(self, doc_id: int, ctx: str, **kwargs: Any) -> Instance:
        instance = super().construct_requests(doc_id, ctx, **kwargs)
        self._requests[doc_id] = instance.args[2]
        return instance

    def follow_up(self, doc_id: int, answers: AnswerSet) -> Sequence[SampleRequest]:
        """One question for each object of the baseline story, in a turn of its own."""
        request = self._requests[doc_id]
        truth = objects_of(request.reference or "")
        return [
            self._recheck(request, word, category in truth)
            for word, category in self._objects(self._strip_reasoning(answers))
        ]

    def _objects(self, answers: AnswerSet) -> list[tuple[str, str]]:
        return objects_in(answers.baseline.text, unit=self._vope.unit)

    def _recheck(self, request: SampleRequest, word: str, present: bool) -> SampleRequest:
        phrase, plural = object_phrase(word)
        return replace(
            request,
            id=f"{request.id}/{word}",
            question=phrase,
            prompt=self._recheck_prompts[plural],
            plan=self._recheck_plan,
            reference="yes" if present else "no",
            question_type=word,
            follow_up=None,
        )

    # --- results ------------------------------------------------------------------------------------------------------

    def _strip_reasoning(self, answer_set: AnswerSet) -> AnswerSet:
        stripped = super()._strip_reasoning(answer_set)
        return stripped.with_follow_ups([super(VopeTask, self)._strip_reasoning(a) for a in stripped.follow_ups])

    def _adjudicate(self, answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        keep_labels(self._vope, _output_folder(getattr(self, "args", None), LABELS))
        cases = [self._case(instance, a) for instance, a in zip(self._instances, answer_sets, strict=True)]
        records = rate([self._records(a) for a in answer_sets], cases, self._vope.relevance)
        labelled = []
        for case, answer_set, mine in zip(cases, answer_sets, records, strict=True):
            verdict = story_verdict(mine, self._vope.name, self._vope.version)
            self._verdicts[case.id] = {
                **verdict_record(case, verdict),
                "judge": f"{verdict.judge} {verdict.version}",
                "objects": [entry.to_dict() for entry in mine],
            }
            labelled.append(answer_set.with_label(verdict.label))
        return labelled

    def _records(self, answers: AnswerSet) -> list[ObjectRecord]:
        objects = self._objects(answers)
        if [f"{answers.id}/{word}" for word, _ in objects] != [recheck.id for recheck in answers.follow_ups]:
            raise DataError(f"{answers.id}: the rechecks are not those of the story's objects")
        return answered_records(answers, self._vope)


def own_judge(config: Mapping[str, Any]) -> VopeJudge:
    """The judge of a task's YAML. Presence is in the reply and in the data, so that none from the environment is needed
    for it: one that HEDGE_JUDGE names is asked about relevance, if it can rate that.

    Raises:
        ConfigError: the YAML names another judge, or an option makes no sense.
    """
    settings = DocumentSettings.from_config(_document_config(config), config["task"])
    options = dict(settings.judge)
    judge = build_judge(options.pop("name"), **options)
    if not isinstance(judge, VopeJudge):
        raise ConfigError(f"{config['task']}: the judge must be 'vope', got {judge.name!r}")
    if given := os.environ.get(ENVIRONMENT, "").strip():
        if _all_rate_relevance(given):
            judge.relevance = relevance_judges(given)
        else:
            logger.info("{}: {} names no judge of relevance and is not asked", config["task"], ENVIRONMENT)
    return judge


def _all_rate_relevance(spec: str) -> bool:
    judge = judge_from(spec)
    members = getattr(judge, "judges", [judge])
    return all(rates_relevance(member) for member in members)
