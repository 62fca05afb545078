"""What lmms-eval's command line says of the model that answers, and of where a run is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

STORE = "HEDGE_STORE"

# What the command line says about speed and place, not about answers.
_NOT_OF_THE_ANSWER = frozenset({"batch_size", "max_batch_size", "device", "num_concurrent", "timeout", "max_retries"})

# An argument with such a word in its name is nobody's business, and another key is not another model.
_SECRETS = ("key", "token", "secret", "password")


def model_identity(args: Any) -> str | None:
    """Name of the model and its arguments as the command line gives them, less what does not shape an answer."""
    if args is None or not getattr(args, "model", None):
        return None
    given = (argument.strip() for argument in str(args.model_args or "").split(","))
    return "|".join([str(args.model), *sorted(argument for argument in given if _shapes_answers(argument))])


def _shapes_answers(argument: str) -> bool:
    name = argument.partition("=")[0].strip().lower()
    return bool(name) and name not in _NOT_OF_THE_ANSWER and not any(word in name for word in _SECRETS)


def store_folder(args: Any) -> Path | None:
    """Of the answer store: HEDGE_STORE, or a folder in lmms-eval's output folder; None keeps answers in memory."""
    if folder := os.environ.get(STORE):
        return Path(folder)
    output_path = getattr(args, "output_path", None)
    return Path(output_path) / "hedge_answers" if output_path else None


def output_folder(args: Any, name: str) -> Path | None:
    """A folder of this name in lmms-eval's output folder, or in HEDGE_STORE; None where there is neither."""
    parent = getattr(args, "output_path", None) or os.environ.get(STORE)
    return Path(parent) / name if parent else None
