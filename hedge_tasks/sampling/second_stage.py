"""Second stages: what is asked about a document in the light of its first answers.

A task of two stages (VOPE asks about every object that a story mentions) puts a `SecondStage` into its requests: the
name of a registered function, the plan of what is asked next, and options. When every document has answered, the hook
calls the function with each request and its answers, so that the draws of the second stage, too, come in large
batches. The function knows nothing of the task; requests can be pickled, stored and asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registry
from hedge_tasks.sampling.plan import SecondStage
from hedge_tasks.sampling.requests import SampleRequest


class Stage(Protocol):
    """A registered function of two-stage tasks."""

    def __call__(self, request: SampleRequest, answers: AnswerSet, stage: SecondStage) -> Sequence[SampleRequest]:
        """Further questions about the same document, each with an id or key of its own.

        Args:
            request: the first question about the document.
            answers: to it, as the model gave them.
            stage: with the plan that the further questions have.
        """


STAGES: Registry[Any] = Registry(
    "second stage", "hedge_tasks.second_stages", {}, also=from_evaluations("second_stages")
)
"""Every second stage by name: those of evaluations and those of other packages."""


def further_requests(request: SampleRequest, answers: AnswerSet) -> Sequence[SampleRequest]:
    """Requests that follow about a document; nothing where its request has no second stage.

    Raises:
        ConfigError: the stage is not registered; names the nearest one.
    """
    stage = request.second_stage
    return () if stage is None else STAGES.get(stage.name)(request, answers, stage)
