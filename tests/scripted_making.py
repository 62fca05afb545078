"""Models in this process that play a part by a script, and a making that is killed at a reply and goes on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from openai_server import Script

from hedge_tasks.llm.account import Account
from hedge_tasks.llm.failures import RequestFailed
from hedge_tasks.llm.log import Reply
from hedge_tasks.llm.messages import to_openai
from hedge_tasks.llm.models import Request
from hedge_tasks.making.stages import Made, MakingStage, Models, make

Play = Callable[[dict[str, Any]], str]


class Killed(BaseException):
    """The process ends here."""


class Scripted:
    """A model that replies by a script of request bodies, as the server of the tests does."""

    concurrency = 1

    def __init__(self, name: str, play: Play) -> None:
        self.name = self.who = name
        self.identity: Mapping[str, Any] = {"model": name}
        self.play = play

    def reply(self, request: Request, stop: threading.Event) -> Reply | RequestFailed:
        body = {"model": self.name, "messages": to_openai(request.conversation()), **request.settings}
        text = self.play(body)
        return RequestFailed("overloaded", "away") if text == "<failed>" else Reply(text, "stop", self.name, 1, 1)


def counted(account: Account, what: str) -> dict[str, int]:
    """One of the counts by stage, without the stages where it is 0."""
    return {stage: n for stage, counts in account.stages.items() if (n := getattr(counts, what))}


def models_by(play: Play, roles: Mapping[str, Sequence[str]]) -> Models:
    """Scripted models by their role."""
    return {role: [Scripted(name, play) for name in names] for role, names in roles.items()}  # type: ignore[misc]


def killed_at(
    replies: int, rows: Sequence[Any], build: Any, stages: Mapping[str, MakingStage], models: Models, folder: Path
) -> Made:
    """A making that is killed at every so-many-th reply until it comes to its end."""
    counter = itertools.count(1)

    def ends(play: Play, body: dict[str, Any]) -> str:
        if next(counter) % replies == 0:
            raise Killed
        return play(body)

    for model in {id(model): model for those in models.values() for model in those}.values():
        model.play = partial(ends, model.play)  # type: ignore[attr-defined]
    while True:
        with suppress(Killed):
            return make(rows, build, stages, models, folder, concurrency=1)


__all__ = ["Killed", "Script", "Scripted", "killed_at", "models_by"]
