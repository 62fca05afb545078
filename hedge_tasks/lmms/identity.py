"""Facts from lmms-eval's command line: of the model that answers, and of where a run is kept."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hedge_tasks.io.places import Place, Remote, check_writable, local, place

STORE = "HEDGE_STORE"

# What the command line says about speed and place, not about answers.
_NOT_OF_THE_ANSWER = (
    *("batch_size", "max_batch_size", "device", "num_concurrent", "timeout", "max_retries", "retry_backoff_s"),
    *("wait_for_server", "draws_per_request"),
)

_NAMES = ("pretrained", "model", "model_version", "model_name")
"""Arguments that name the model, in lmms-eval's adapters and ours."""

# Such an argument never reaches a file, and another key is not another model.
_SECRETS = ("key", "token", "secret", "password")


def model_identity(args: Any) -> str | None:
    """Name of the model and its arguments as the command line gives them, less what does not shape an answer."""
    if args is None or not getattr(args, "model", None):
        return None
    arguments = (argument.strip() for argument in str(args.model_args or "").split(","))
    return "|".join([str(args.model), *sorted(argument for argument in arguments if _shapes_answers(argument))])


def _shapes_answers(argument: str) -> bool:
    name = argument.partition("=")[0].strip().lower()
    return bool(name) and name not in _NOT_OF_THE_ANSWER and not any(word in name for word in _SECRETS)


def display_name(args: Any) -> str | None:
    """Return what people are shown of a model: its name, its adapter, and what else shapes its answers.

    Neither addresses nor folders of one machine: a report is passed on.

    Example:
        >>> from types import SimpleNamespace
        >>> display_name(SimpleNamespace(model="hedge_openai", model_args="base_url=http://10.0.0.7:8000/v1,model=Qwen/Q"))
        'Qwen/Q (hedge_openai)'
    """
    identity = model_identity(args)
    if identity is None:
        return None
    adapter, *arguments = identity.split("|")
    settings = dict(argument.partition("=")[::2] for argument in arguments)
    named = next((settings.pop(key) for key in _NAMES if key in settings), None)
    shown_settings = [f"{key}={_without_place(value)}" for key, value in settings.items() if "://" not in value]
    if named is None:
        return ", ".join([adapter, *shown_settings])
    return f"{_without_place(named)} ({', '.join([adapter, *shown_settings])})"


def _without_place(value: str) -> str:
    """Return a hub id as it is, of a folder the last part."""
    is_place = value.startswith(("/", "~", ".", "\\")) or value.count("/") > 1 or Path(value).is_dir()
    return re.split(r"[/\\]", value.rstrip("/\\"))[-1] if is_place else value


def store_folder(args: Any) -> Place | None:
    """Return the answer store: HEDGE_STORE, or a folder in lmms-eval's output folder; None: in memory.

    `HEDGE_STORE=off` keeps them in memory, whatever the output folder, as `HEDGE_CACHE=off` does without that cache.

    Raises:
        ConfigError: HEDGE_STORE is a URL that cannot be written, or the output folder is a URL, which lmms-eval would
            make a folder of.
    """
    output = _output_path(args)
    if _is_off():
        return None
    if named := os.environ.get(STORE):
        store = place(named, STORE)
        if isinstance(store, Remote):
            check_writable(store, STORE)
        return store
    return output / "hedge_answers" if output else None


def output_folder(args: Any, name: str) -> Path | None:
    """Return a folder of this name in lmms-eval's output folder, or in HEDGE_STORE; None where there is neither.

    On object storage there is nothing but the answers.
    """
    store = None if _is_off() else os.environ.get(STORE)
    parent = _output_path(args) or (place(store, STORE) if store else None)
    return parent / name if isinstance(parent, Path) else None


def _is_off() -> bool:
    return os.environ.get(STORE, "").strip().casefold() == "off"


def _output_path(args: Any) -> Path | None:
    output = getattr(args, "output_path", None)
    return local(str(output), "--output_path") if output else None
