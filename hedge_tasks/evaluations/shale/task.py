"""SHALE as lmms-eval tasks: closed questions whose replies are read, open ones that are judged, and blind ones."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.adjudication import Case, build_judge
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.evaluations.shale.items import DATASET, SCENARIOS, options_of
from hedge_tasks.evaluations.shale.judge import ShaleJudge, right_reading
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.sampling.plan import draw_seed
from hedge_tasks.sampling.requests import SampleRequest

if TYPE_CHECKING:
    from datasets import Dataset

BASE = "HEDGE_SHALE_BASE"
"""Output folder or run file of `hedge_shale_blind` with the language model that a model was made of, for leakage."""

_BLIND = "hedge_shale_blind"

_OPTIONS = ("scenarios", "aspects")


def process_docs(dataset: Dataset, **options: Any) -> Dataset:
    """The items that are asked.

    Args:
        dataset: as `building.build` makes it.
        options: `scenarios` and `aspects`: lists of names to keep; without them all.

    Raises:
        ConfigError: an option or a scenario is unknown; names the nearest one.
        DataError: no item is left.
    """
    for key in options:
        if key not in _OPTIONS:
            raise unknown("option of SHALE", key, _OPTIONS)
    kept = {"scenario": _names(options, "scenarios"), "aspect": _names(options, "aspects")}
    for name in kept["scenario"] or ():
        if name not in SCENARIOS:
            raise unknown("scenario of SHALE", name, SCENARIOS)
    columns = {column: dataset[column][:] for column in kept}
    rows = [
        row
        for row in range(len(dataset))
        if all(names is None or columns[column][row] in names for column, names in kept.items())
    ]
    if not rows:
        raise DataError(f"SHALE: no item is of {options}")
    return dataset.select(rows)


def _names(options: Mapping[str, Any], key: str) -> list[str] | None:
    given = options.get(key)
    if given is not None and (isinstance(given, str) or not isinstance(given, Sequence) or not given):
        raise ConfigError(f"SHALE: {key} must be a list of names, got {given!r}")
    return None if given is None else [str(name) for name in given]


class ShaleTask(HedgeTask):
    """What all have in common."""

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        try:
            super().download(dataset_kwargs)
        except DataError as error:
            if self.config.dataset_path != DATASET:
                raise
            hint = "SHALE is not on the hub: `hedge data shale` builds it from its download, `hedge data shale-synth`"
            raise DataError(f"{error} {hint} draws a small set of its shape (see the README).") from error


class ShaleDiscriminativeTask(ShaleTask):
    """Yes-or-no and multiple-choice questions.

    The judge reads the replies of the baseline as the model wrote them, and its record keeps them. From then on every
    answer that can be read is what it takes, such as "yes" or "dark blue", so that "(B)" and "B. dark blue" are one
    meaning for any clustering, also when the run is rescored. Noisy answers are read against the options that they
    were offered.
    """

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        super().__init__(config=config, model_name=model_name)
        # The verdict is in the reply: no other judge can tell, whatever the environment names for other tasks.
        options = dict(self._settings.judge)
        judge = build_judge(options.pop("name"), **options)
        if not isinstance(judge, ShaleJudge):
            raise ConfigError(f"{self.config.task}: the judge must be 'shale', got {judge.name!r}")
        self._judge = self._reader = judge

    def _adjudicate(self, answer_sets: list[AnswerSet]) -> list[AnswerSet]:
        keys = {str(id_): key for id_, key in zip(self._ids(), self._keys, strict=True)}
        rows = {str(id_): row for row, id_ in enumerate(self._ids())}
        labelled = super()._adjudicate(answer_sets)
        return [self._as_readings(answers, keys[answers.id], rows[answers.id]) for answers in labelled]

    def _ids(self) -> list[Any]:
        [documents] = self.dataset_no_image.values()
        return documents[self._settings.id][:]

    def _as_readings(self, answers: AnswerSet, key: str, row: int) -> AnswerSet:
        [documents] = self.dataset_no_image.values()
        wording = replace(self._wording(documents[row]), answer=answers.reference or "")
        noise, seed = self._plan.noise, self._plan.seed

        def noisy_question(index: int) -> str:
            return noise.perturb_wording(wording, seed=draw_seed(seed, key, "noisy", index)).question

        return replace(
            answers,
            baseline=self._reading(answers.baseline, wording.question),
            clean=tuple(self._reading(answer, wording.question) for answer in answers.clean),
            noisy=tuple(self._reading(answer, noisy_question(index)) for index, answer in enumerate(answers.noisy)),
        )

    def _reading(self, answer: Answer, question: str) -> Answer:
        said = self._reader.read(answer.text, question)
        return answer if said is None else replace(answer, text=options_of(question).get(said, said).lower())


class ShaleGenerativeTask(ShaleTask):
    """Free-form questions and captions; whoever judges is told what the image shows, in words, and known facts."""


class ShaleGainTask(ShaleDiscriminativeTask):
    """Clean closed questions with the image, and each of them once more without it; see `BASE` for the leakage."""

    def __init__(self, config: dict[str, Any], model_name: str | None = None) -> None:
        super().__init__(config=config, model_name=model_name)
        named = os.environ.get(BASE, "").strip()
        self._base = _right_answers(load_run(Path(named), _BLIND)) if named else {}

    def follow_up(self, doc_id: int, answers: AnswerSet) -> Sequence[SampleRequest]:
        """The question alone."""
        [split] = self.dataset_no_image
        request: SampleRequest = self.construct_requests(
            doc_id, "", metadata={"split": split, "task": self.config.task, "doc_id": doc_id, "repeats": 1}
        ).args[2]
        alone = hashlib.sha256(f"{request.key}\0blind".encode()).hexdigest()[:32]
        plan = replace(request.plan, n=1, n_noisy=0)
        return [replace(request, key=alone, plan=plan, load_images=_no_images, follow_up=None)]

    def process_results(self, doc: Mapping[str, Any], results: list[Any], full_docs: object = None) -> dict[str, Any]:
        if not self._predict_only:
            [blind] = results[0].answers.follow_ups
            case = Case(blind.id, blind.question or "", blind.reference or "", blind.baseline.text)
            right = self._reader.read(case.answer, case.question) == right_reading(case)
            doc = {**doc, "blind_right": int(right), "base_right": self._base.get(str(doc["id"]))}
        return super().process_results(doc, results, full_docs)


def _no_images(document: Mapping[str, Any]) -> list[Any]:
    return []


def _right_answers(run: Run) -> dict[str, int]:
    """1 or 0 for every document of a run of closed questions; an answer that cannot be read is wrong."""
    return {answers.id: int(answers.label == 0) for answers in run.answer_sets}
