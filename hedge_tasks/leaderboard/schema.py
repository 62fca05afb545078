"""The JSON Schema of submissions, and a check against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

_LONGEST = 300


@cache
def submission_schema() -> dict[str, Any]:
    """The schema of submissions, as published in `submission.schema.json`."""
    text = (resources.files("hedge_tasks.leaderboard") / "submission.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def schema_fault(value: Any) -> str | None:
    """The first thing that is wrong with a submission, with its place such as `documents[3].label`; None if valid."""
    from fastjsonschema import JsonSchemaValueException

    try:
        _validator()(value)
    except JsonSchemaValueException as error:
        # Names and values in it are the submitter's.
        return "".join(c if c.isprintable() else "\ufffd" for c in error.message.removeprefix("data.")[:_LONGEST])
    return None


@cache
def _validator() -> Callable[[Any], Any]:
    import fastjsonschema

    compiled: Callable[[Any], Any] = fastjsonschema.compile(submission_schema())
    return compiled
