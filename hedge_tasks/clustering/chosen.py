"""Models of clusterings that the environment names."""

from __future__ import annotations

import os
from typing import Any

KINDS = {"nli": ("nli", "HEDGE_NLI_MODEL"), "embed": ("embedding", "HEDGE_EMBEDDING_MODEL")}
"""Clusterings with one model: the kind of model, and the variable that names it."""


def chosen_models(backend: str) -> dict[str, Any]:
    """Return the model that HEDGE_NLI_MODEL or HEDGE_EMBEDDING_MODEL names, as an option of a clustering."""
    _, variable = KINDS.get(backend, ("", ""))
    return {"model": os.environ[variable]} if os.environ.get(variable) else {}
