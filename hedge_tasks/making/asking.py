"""Questions of a pipeline to models: each is asked once, each reply is kept and checked for its form."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.llm.account import Account
from hedge_tasks.llm.asker import Asker, Query
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import Template

TRIES = 3
"""Number of times that a question is put before a record does without its reply."""


class Unfinished(Exception):
    """A question got no reply: its record is left for another time, and nothing of it is lost.

    Attributes:
        unreachable: Whether the server could not be reached.
    """

    def __init__(self, reason: str, *, unreachable: bool) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


@dataclass(frozen=True)
class Asking:
    """The questions of one source record.

    Attributes:
        log: Where replies are kept.
        account: What is counted, by stage.
        record: Id of the source record.
        seed: Of the whole making.
        stop: Ends pauses between retries once it is set.
    """

    log: ReplyLog
    account: Account
    record: str
    seed: int
    stop: threading.Event

    def ask(
        self,
        stage: str,
        model: Model,
        prompt: Template,
        values: Mapping[str, Any],
        *,
        number: str = "",
        images: Sequence[Any] = (),
        image_keys: Sequence[str] = (),
        **sampling: float,
    ) -> dict[str, Any] | None:
        """A reply of the prompt's form.

        Args:
            stage: What the question is for; replies are counted by it.
            model: The model.
            values: By the fields of the prompt.
            number: Tells apart questions that are put in the same words to get other replies.
            images: PIL images; `image_keys` are the digests of what they show.
            sampling: `temperature`, `top_p`; greedy without.

        Returns:
            The object that was replied; None where `TRIES` replies were none of the form.

        Raises:
            Unfinished: The request failed, retries included.
            HedgeError: Every other request would fail the same way.
        """
        assert len(images) == len(image_keys)
        question = Query(
            prompt,
            values,
            lambda reply: prompt.object(reply.text),
            lambda: images,
            image_keys,
            sampling=sampling,
            place=f"{self.seed}\0{self.record}\0{stage}\0{number}",
            about=lambda read: {"record": self.record},
        )
        outcome = Asker(model, self.account, self.log, asks=TRIES, stage=stage).ask(question, self.stop)
        if outcome.failure is not None:
            raise Unfinished(f"{stage} ({model.name}): {outcome.failure}", unreachable=outcome.failure.unreachable)
        return outcome.value
