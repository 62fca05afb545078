"""Every example in a docstring gives what it says."""

from __future__ import annotations

import doctest
import importlib

import pytest
from test_architecture import modules

EXAMPLES = sorted(name for name, path in modules().items() if ">>> " in path.read_text("utf-8"))
SLOW = ("hedge_tasks.measures.evaluate", "hedge_tasks.suites.vope.extraction")
"""For what they import."""


@pytest.mark.parametrize(
    "module", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in EXAMPLES]
)
def test_examples(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert results.attempted >= 1
    assert results.failed == 0
