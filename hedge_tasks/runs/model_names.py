"""Names of models, in short for people."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SHORT = 36
"""Characters that a name may have in a table, before those that tell it from others."""


def short_names(models: Sequence[str]) -> dict[str, str]:
    """Return a short name for each model, no two alike: without folders in front, and without the adapter's arguments.

    Models whose names would be alike have their whole names, and numbers where these are long.

    Example:
        >>> list(short_names(["Qwen/Qwen2.5-VL-7B (hedge_hf)", "/data/models/llava-1.5 (hedge_hf)"]).values())
        ['Qwen2.5-VL-7B', 'llava-1.5']
        >>> list(short_names(["Q/Q (hedge_hf)", "Q/Q (hedge_vllm)"]).values())
        ['Q/Q (hedge_hf)', 'Q/Q (hedge_vllm)']
    """
    names = {model: _name_of(model) for model in models}
    unique = dict[str, str]()
    for model, name in names.items():
        alike = [m for m in names if names[m] == name]
        number = f"{name} [{alike.index(model) + 1}]"
        unique[model] = name if len(alike) == 1 else model if 0 < len(model) <= _SHORT else number
    return unique


def _name_of(model: str) -> str:
    """The last part of a model's name in the one that runs give it: `folder/name (adapter, arguments)`.

    Of a long one both ends: sizes and versions stand at its end.
    """
    match = re.match(r"(.*\S) \([^()]*\)$", model, re.DOTALL)
    parts = [part for part in re.split(r"[/\\]", match[1] if match else model) if part.strip()]
    name = parts[-1] if parts else "unnamed model"
    return name if len(name) <= _SHORT else f"{name[: _SHORT // 2]}…{name[-(_SHORT // 2 - 1) :]}"
