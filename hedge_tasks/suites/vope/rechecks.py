"""The second stage of VOPE: the model is asked about every object of its story, each in a fresh turn.

Rechecks are drawn once, at the judge's `recheck_temperature`, or else at the baseline's.
"""

from __future__ import annotations

from dataclasses import replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.lmms.reasoning import without_reasoning
from hedge_tasks.replies import spoken_text
from hedge_tasks.sampling.forced import OPTIONS, SELF_READING
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.suites.vope.documents import objects_of
from hedge_tasks.suites.vope.extraction import objects_in
from hedge_tasks.suites.vope.vocabulary import object_phrase

_YES_NO = ("Yes", "No")

_PROMPTS = {False: "vope/recheck", True: "vope/recheck_plural"}


def rechecks(request: SampleRequest, answers: AnswerSet, stage: SecondStage) -> list[SampleRequest]:
    """One question for each object of the baseline story.

    Args:
        stage: with the option `reasoning_tags` (see `HedgeTask`).
    """
    story = without_reasoning(answers, stage.options["reasoning_tags"])
    truth = objects_of(request.reference or "")
    return [_recheck(request, stage, word, category in truth) for word, category in story_objects(story)]


def story_objects(answers: AnswerSet) -> list[tuple[str, str]]:
    """(word, category) of every object of the baseline story."""
    return objects_in(spoken_text(answers.baseline.text))


def _recheck(request: SampleRequest, stage: SecondStage, word: str, present: bool) -> SampleRequest:
    phrase, plural = object_phrase(word)
    return replace(
        request,
        id=f"{request.id}/{word}",
        question=phrase,
        prompt=load_prompt(_PROMPTS[plural]),
        plan=stage.plan,
        reference="yes" if present else "no",
        question_type=word,
        second_stage=None,
        choices=_YES_NO if stage.plan.guided else (),
        options=_YES_NO,
        forced=(*(name for name in request.forced if name == OPTIONS), SELF_READING),
    )
