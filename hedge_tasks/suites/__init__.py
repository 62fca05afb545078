"""Single evaluations, as far as they go beyond the shared engine: their reading of replies, their metrics, their data.

A folder here is an evaluation: its `__init__.py` holds `EVALUATION`, which says what it brings. Nothing else lists it.
The modules here are what several of them share.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

from hedge_tasks.evaluation import Evaluation


def own() -> Iterator[Evaluation]:
    """Yield the evaluations of this package."""
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            yield import_module(f"{__name__}.{module.name}").EVALUATION
