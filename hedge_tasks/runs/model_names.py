"""Which model of a paper a run's model is, by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

# What makes another model of a name: the 3B of "DeepSeek-VL2-Tiny" is not "DeepSeek-VL2".
_SMALLER = ("tiny", "small", "mini", "nano")


def named_like(model: str, names: Iterable[str]) -> str | None:
    """The longest of some names that stands in a run's model, letters and digits alone; None where there is none.

    Example:
        >>> named_like("hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf", ["LLaVA-1.5-7B", "LLaVA-1.5-13B"])
        'LLaVA-1.5-7B'
        >>> named_like("hedge_openai|model=gpt-4o-mini", ["GPT-4o"])
    """
    given = _letters(model)
    found = [name for name in names if _stands_in(_letters(name), given)]
    return max(found, key=len, default=None)


def _stands_in(name: str, given: str) -> bool:
    _, there, after = given.partition(name)
    return bool(there) and not after.startswith(_SMALLER)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
