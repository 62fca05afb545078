"""What models have said in the making of a data set: append-only, found again by what was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.keyed_log import KeyedLog

KIND = "replies"
"""First part of the file names."""


@dataclass(frozen=True)
class Reply:
    """What a model said to one question.

    Attributes:
        text: Its words, without surrounding blanks; empty where it said nothing.
        finish: Why it stopped, as `Completion.finish`; None where nobody told.
        model: The model that answered, as its server names it; None where it does not.
        prompt_tokens, completion_tokens: What it cost; None where nobody told.
    """

    text: str
    finish: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    @classmethod
    def of(cls, fields: object) -> Reply:
        """Check and build.

        Raises:
            DataError: These are no fields of a reply.
        """
        if not isinstance(fields, Mapping) or not isinstance(fields.get("text"), str):
            raise DataError("no reply")
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        kinds = {"finish": str, "model": str, "prompt_tokens": int, "completion_tokens": int}
        for name, kind in kinds.items():
            value = known.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
                raise DataError(f"{name} of a reply is {value!r}")
        return cls(**known)


def digest(parts: Mapping[str, Any]) -> str:
    """The key of a question: a digest of all that shapes its reply, the same on any machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


class Ledger(KeyedLog[Reply]):
    """The replies in a folder, by key.

    A line is a sealed JSON object: `key`, `reply`, and for people what it was about (stage, record, model, prompt,
    decoding, attempt, seed). Where two workers asked the same, the reply in the older file stands.

    Args:
        folder: Where the files are; made when the first reply is kept.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, KIND, "replies", lambda record: Reply.of(record.get("reply")))

    def add(self, key: str, reply: Reply, about: Mapping[str, Any]) -> Reply:
        """Keep a reply; when this returns, the death of the process does not lose it.

        Args:
            about: Further fields of the line, for people.

        Returns:
            The reply that stands: the first one under this key.

        Raises:
            HedgeError: The folder cannot be written.
        """
        fields = {name: value for name, value in asdict(reply).items() if value is not None}
        self.keep([(key, reply, {"reply": fields, **about})])
        return self.get(key) or reply
