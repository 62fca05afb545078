"""SHALE as lmms-eval tasks: closed questions whose replies are read, open ones that are judged, and blind ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.judging import required_judge
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.measures.forced_options import offered_facts
from hedge_tasks.perturb import Wording
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.suites.documents import check_options
from hedge_tasks.suites.shale.items import ALL_SCENARIOS, options_of
from hedge_tasks.suites.shale.judge import ShaleJudge, reply_is_right

if TYPE_CHECKING:
    from datasets import Dataset

_OPTIONS = ("scenarios", "aspects")


def process_docs(dataset: Dataset, **options: Any) -> Dataset:
    """Return the items that are asked.

    Args:
        dataset: as `building.build` makes it.
        options: `scenarios` and `aspects`: lists of names to keep; without them all.

    Raises:
        ConfigError: an option or a scenario is unknown; names the nearest one.
        DataError: no item is left.
    """
    check_options("SHALE", options, _OPTIONS)
    wanted_names = {"scenario": _names(options, "scenarios"), "aspect": _names(options, "aspects")}
    for name in wanted_names["scenario"] or ():
        if name not in ALL_SCENARIOS:
            raise unknown("scenario of SHALE", name, ALL_SCENARIOS)
    columns = {column: dataset[column][:] for column in wanted_names}
    rows = [
        row
        for row in range(len(dataset))
        if all(names is None or columns[column][row] in names for column, names in wanted_names.items())
    ]
    if not rows:
        raise DataError(f"SHALE: no item is of {options}")
    return dataset.select(rows)


def _names(options: Mapping[str, Any], key: str) -> list[str] | None:
    names = options.get(key)
    if names is not None and (isinstance(names, str) or not isinstance(names, Sequence) or not names):
        raise ConfigError(f"SHALE: {key} must be a list of names, got {names!r}")
    return None if names is None else [str(name) for name in names]


class ShaleTask(HedgeTask):
    """Fields that all have in common."""

    kept = ("task", "scenario", "aspect", "pair")
    """`hedge paper shale` lays its tables out by them."""


class ShaleDiscriminativeTask(ShaleTask):
    """Yes-or-no and multiple-choice questions.

    The judge reads the replies of the baseline as the model wrote them, and its record keeps them. From then on every
    answer that can be read is what it takes, such as "yes" or "dark blue", so that "(B)" and "B. dark blue" are one
    meaning for any clustering, also when the run is rescored; all that cannot are `UNREADABLE`, one meaning together.
    Noisy answers are read against the options that they were offered.
    """

    judge: ShaleJudge

    def judge_of(self, settings: DocumentSettings, task: str) -> ShaleJudge:
        return required_judge(settings.judge, ShaleJudge, task)

    def choices(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(options_of(str(document["question"]))) or ("Yes", "No")

    def read_answer(self, answer: Answer, wording: Wording) -> Answer:
        choice = self.judge.read(answer.text, wording.question, cut=answer.finish == "length")
        text = UNREADABLE if choice is None else options_of(wording.question).get(choice, choice).lower()
        return replace(answer, text=text)

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        right = str(document["answer"])
        # "Yes" or "No", or an option such as "(B) red".
        option = right[1:2] if options_of(str(document["question"])) else right.strip().capitalize()
        return {"sampled": [answer.text for answer in answers.clean], **offered_facts(answers, option)}


class ShaleGenerativeTask(ShaleTask):
    """Free-form questions and captions; whoever judges is told what the image shows, in words, and known facts."""


class ShaleGainTask(ShaleDiscriminativeTask):
    """Clean closed questions with the image, and each of them once more without it."""

    def second_stage(self) -> SecondStage:
        return SecondStage("shale_blind", self.plan.replaced(n=1, n_noisy=0))

    def facts(self, document: Mapping[str, Any], answers: AnswerSet) -> Mapping[str, Any]:
        [blind] = answers.follow_ups
        return {
            **super().facts(document, answers),
            "blind_right": int(reply_is_right(blind, self.judge.parsing)),
        }
