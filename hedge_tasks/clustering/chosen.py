"""Models of clusterings that the environment names."""

from __future__ import annotations

import os
from typing import Any

VARIABLES = {"nli": "HEDGE_NLI_MODEL", "embed": "HEDGE_EMBEDDING_MODEL"}
"""Of clusterings with a model, the variable that names it."""


def chosen_models(backend: str) -> dict[str, Any]:
    """Return the model that HEDGE_NLI_MODEL or HEDGE_EMBEDDING_MODEL names, as an option of a clustering."""
    model = os.environ.get(VARIABLES.get(backend, ""))
    return {"model": model} if model else {}
