"""Answers from elsewhere measured by a task: judged, read, clustered and scored on the path of an evaluation.

Whoever holds nothing but a model's words has its run by it: documents, labels and clusters are the task's own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import ConfigError, DataError, check_names
from hedge_tasks.io.sources import MODELS
from hedge_tasks.judging.config import ENVIRONMENT
from hedge_tasks.lmms.catalogue import list_tasks
from hedge_tasks.lmms.filters import DETECTORS_VARIABLE, FILTERS_VARIABLE
from hedge_tasks.runs.editions import edition_of
from hedge_tasks.runs.protocols import VARIABLE
from hedge_tasks.runs.run_files import FOLDER, Run, load_run
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.sampling.second_stage import further_requests

if TYPE_CHECKING:
    from hedge_tasks.lmms.task import HedgeTask

_VARIABLES = (ENVIRONMENT, VARIABLE, FILTERS_VARIABLE, DETECTORS_VARIABLE, MODELS)


def load_task(task: str) -> HedgeTask:
    """Return a task with its documents, as an evaluation loads it.

    Raises:
        ConfigError: there is no such task of ours; names the nearest one.
        DataError: its data cannot be had.
    """
    check_names("task", [task], [listed.task for listed in list_tasks() if not listed.group])
    from lmms_eval.tasks import TaskManager, get_task_dict

    from hedge_tasks.lmms.plugin import entry_point
    from hedge_tasks.lmms.task import HedgeTask

    entry_point()
    loaded = get_task_dict([task], TaskManager(include_defaults=False), "chat")[task]
    if not isinstance(loaded, HedgeTask):
        raise ConfigError(f"{task} is none of these tasks")
    return loaded


@contextmanager
def _own_settings() -> Iterator[None]:
    """Leave out what the environment says of judges, models, filters and protocol: an edition is the YAML's."""
    before = {name: os.environ.pop(name) for name in _VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)


class TaskDocuments:
    """A task's documents, with what is asked about each.

    Attributes:
        task: its name.
        requests: by document id, in the order of the data.
        edition: how it is run, by its YAML, whatever the environment says.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        with _own_settings():
            loaded = load_task(task)
            self.requests: dict[str, SampleRequest] = {r.id: r for r in loaded.documents()}
            self.edition = edition_of(task, loaded.dump_config()["hedge"])

    def run_of(self, model: str, words: Sequence[AnswerSet]) -> Run:
        """Return the run that a model's words make, as an evaluation writes it, with what clustering models say.

        Args:
            model: its name.
            words: of every document; of each only id and answers count.

        Raises:
            HedgeError: the task cannot judge or cluster here, as where its judge is a model that is not configured.
        """
        by_id = {answers.id: answers for answers in words}
        with tempfile.TemporaryDirectory() as folder, _own_settings():
            task = load_task(self.task)
            task.args = SimpleNamespace(model=model, model_args=None, output_path=folder)
            task.measure([self.answers(by_id[id]) for id in self.requests])
            return replace(load_run(Path(folder) / FOLDER), path=None)

    def answers(self, words: AnswerSet) -> AnswerSet:
        """Return a model's words with the question, reference, group and kind that the task has.

        Raises:
            DataError: its further answers are none to what the task asks in the light of the first ones.
        """
        request = self.requests[words.id]
        own = _with_request(request, words)
        further = {answers.id: answers for answers in words.follow_ups}
        follow_ups = further_requests(request, own)
        if sorted(further) != sorted(follow_up.id for follow_up in follow_ups):
            raise DataError(f"document {words.id[:80]!r}: follow_ups: not those that its answers lead to")
        return own.with_follow_ups([_with_request(follow_up, further[follow_up.id]) for follow_up in follow_ups])


def _with_request(request: SampleRequest, words: AnswerSet) -> AnswerSet:
    about: dict[str, Any] = {name: getattr(request, name) for name in ("question", "reference", "group")}
    return replace(words, **about, question_type=request.question_type)
