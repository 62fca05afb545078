"""lmms-eval model adapters that also return the mean token log-probability of every sampled answer."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hedge_tasks.errors import unknown

MODELS = {
    "hedge_hf": "hedge_tasks.models.hedge_hf.HedgeHF",
    "hedge_openai": "hedge_tasks.models.hedge_openai.HedgeOpenAI",
    "hedge_ray": "hedge_tasks.models.hedge_ray.HedgeRay",
    "hedge_scripted": "hedge_tasks.models.hedge_scripted.HedgeScripted",
    "hedge_tiny": "hedge_tasks.models.hedge_tiny.HedgeTiny",
    "hedge_vllm": "hedge_tasks.models.hedge_vllm.HedgeVLLM",
}
"""Our adapters: name for `--model` -> class."""


def adapter_class(name: str) -> Any:
    """Return one of our adapters by its name.

    Raises:
        ConfigError: there is none; names the nearest one.
    """
    if name not in MODELS:
        raise unknown("adapter", name, MODELS)
    module, _, attribute = MODELS[name].rpartition(".")
    return getattr(import_module(module), attribute)
