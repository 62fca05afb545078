"""Answers from elsewhere measured by a task: judged, read, clustered and scored on the path of an evaluation.

Whoever holds nothing but a model's words has its run by it: documents, labels and clusters are the task's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.lmms.editions import own_settings
from hedge_tasks.lmms.manifests import load_task
from hedge_tasks.runs.run_files import FOLDER, Run, load_run
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.sampling.second_stage import further_requests


class TaskDocuments:
    """A task's documents, with what is asked about each.

    Attributes:
        task: its name.
        requests: by document id, in the order of the data.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        with own_settings():
            self.requests: dict[str, SampleRequest] = {r.id: r for r in load_task(task).documents()}

    def run_of(self, model: str, words: Sequence[AnswerSet]) -> Run:
        """Return the run that a model's words make, as an evaluation writes it, with what clustering models say.

        Args:
            model: its name.
            words: of every document; of each only id and answers count.

        Raises:
            HedgeError: the task cannot judge or cluster here, as where its judge is a model that is not configured.
        """
        by_id = {answers.id: answers for answers in words}
        with tempfile.TemporaryDirectory() as folder, own_settings():
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
