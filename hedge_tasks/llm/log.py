"""Kept replies: what models have said, found again by all that shaped it.

A line is a sealed JSON object: `key`, `reply`, and for people what it was about (stage, model, prompt, ...). One format
for whoever asks; folders differ, for what is kept is kept with what it was asked for: labels beside a run, replies of a
making in its folder, support of claims in the cache. Keys of accounts never come near these files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Strict

from hedge_tasks.io.keyed_log import KeyedLog
from hedge_tasks.io.records import Text, checked


@dataclass(frozen=True)
class Reply:
    """A model's reply to one question.

    Attributes:
        text: Its words, without surrounding blanks; empty where it said nothing.
        finish: Why it stopped, as `Answer.finish`; None where nobody told.
        model: The model that answered, as its server names it; None where it does not.
        prompt_tokens, completion_tokens: What it cost; None where nobody told.
        seconds: That the request took, retries included.
        problem: Why it says nothing, where that is known.
        unread: Whether whoever asked for it could not read it.
    """

    text: Text
    finish: Text | None = None
    model: Text | None = None
    prompt_tokens: Annotated[int, Strict()] | None = None
    completion_tokens: Annotated[int, Strict()] | None = None
    seconds: Annotated[float, Strict()] | None = field(default=None, compare=False)
    problem: Text | None = None
    unread: bool = False


def digest(parts: Mapping[str, Any]) -> str:
    """The key of a question: a digest of all that shapes its reply, the same on any machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class ReplyLog(KeyedLog[Reply]):
    """The replies in a folder, by key.

    Where two workers asked the same, the reply in the older file stands, unless it could not be read.

    Args:
        folder: Where the files are; made when the first reply is kept.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "replies", "replies", _read, lambda reply: reply.unread)

    def add(self, key: str, reply: Reply, **about: str) -> None:
        """Keep a reply; when this returns, the death of the process does not lose it.

        Args:
            about: Further fields of the line, for people.

        Raises:
            HedgeError: The folder cannot be written.
        """
        fields = {name: value for name, value in asdict(reply).items() if value is not None}
        self.keep([(key, reply, {"reply": fields, **about})])


def _read(line: Mapping[str, Any]) -> Reply:
    return checked(Reply, line.get("reply"), "reply")
