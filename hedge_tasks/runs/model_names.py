"""Names of models: in short for people, and which model of a paper a run's model is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# What makes another model of a name: the 3B of "DeepSeek-VL2-Tiny" is not "DeepSeek-VL2".
_SMALLER = ("tiny", "small", "mini", "nano")

_SHORT = 36
"""Characters that a name may have in a table, before those that tell it from others."""

_CONTRASTS = ("contrast=", "decoding=")
_DECODING = frozenset({"contrast", "decoding", "alpha", "beta", "noise_step", "layers", "first_layer"})
"""Arguments of `hedge_hf` that say how logits are contrasted."""

_ABOUT = re.compile(r"(.*\S) \(([^()]*)\)$", re.DOTALL)
_NAMING = re.compile(r"(?:pretrained|model|model_version|model_name)=(.*)", re.DOTALL)


def short_names(models: Sequence[str]) -> dict[str, str]:
    """Return a short name for each model, no two alike: without folders in front, and without the adapter's arguments.

    Models whose names would be alike have their whole names, and numbers where these are long.

    Example:
        >>> list(short_names(["Qwen/Qwen2.5-VL-7B (hedge_hf)", "/data/models/llava-1.5 (hedge_hf)"]).values())
        ['Qwen2.5-VL-7B', 'llava-1.5']
        >>> list(short_names(["Q/Q (hedge_hf)", "Q/Q (hedge_vllm)"]).values())
        ['Q/Q (hedge_hf)', 'Q/Q (hedge_vllm)']
    """
    names = {model: _shorten(_name_of(model)) for model in models}
    unique = dict[str, str]()
    for model, name in names.items():
        alike = [m for m in names if names[m] == name]
        number = f"{name} [{alike.index(model) + 1}]"
        unique[model] = name if len(alike) == 1 else model if 0 < len(model) <= _SHORT else number
    return unique


def plain_model(model: str) -> str:
    """Return the name of a run's model without its arguments about decoding.

    Example:
        >>> plain_model("Q/Q (hedge_hf, alpha=0.5, decoding=vcd, dtype=bfloat16)")
        'Q/Q (hedge_hf, dtype=bfloat16)'
    """
    match = _ABOUT.match(model)
    arguments = match[2] if match else model
    mark = "|" if "|" in arguments else ", "
    parts = arguments.split(mark)
    if not any(part.startswith(_CONTRASTS) for part in parts):
        return model
    others = mark.join(part for part in parts if part.partition("=")[0] not in _DECODING)
    return f"{match[1]} ({others})" if match else others


def _name_of(model: str) -> str:
    """The last part of a model's name in the one that runs give it: `folder/name (adapter, arguments)` or
    `adapter|argument|pretrained=folder/name`."""
    match = _ABOUT.match(model)
    namings = filter(None, map(_NAMING.fullmatch, model.split("|")))
    name = match[1] if match else next((naming[1] for naming in namings), model)
    return ([part for part in re.split(r"[/\\]", name) if part.strip()] or ["unnamed model"])[-1]


def _shorten(name: str) -> str:
    """Both ends of a long name: sizes and versions stand at its end."""
    return name if len(name) <= _SHORT else f"{name[: _SHORT // 2]}…{name[-(_SHORT // 2 - 1) :]}"


def named_like(model: str, names: Iterable[str]) -> str | None:
    """The longest of some names that stands in a run's model, letters and digits alone; None where there is none.

    Example:
        >>> named_like("hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf", ["LLaVA-1.5-7B", "LLaVA-1.5-13B"])
        'LLaVA-1.5-7B'
        >>> named_like("hedge_openai|model=gpt-4o-mini", ["GPT-4o"])
    """
    letters = _letters(model)
    matching = [name for name in names if _is_in_name(_letters(name), letters)]
    return max(matching, key=len, default=None)


def _is_in_name(name: str, model: str) -> bool:
    _, match, after = model.partition(name)
    return bool(match) and not after.startswith(_SMALLER)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
