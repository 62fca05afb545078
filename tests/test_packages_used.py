"""Each package that a user is promised is imported on the way of a documented command."""

from __future__ import annotations

import ast

import pytest
from conftest import REPOSITORY
from test_architecture import import_graph, modules

USED = {
    "lmms_eval": ("hedge_tasks.lmms.plugin", "lmms-eval --model"),
    "torch": ("hedge_tasks.cli.score", "hedge score"),
    "transformers": ("hedge_tasks.clustering.nli", "hedge score"),  # chosen by name
    "datasets": ("hedge_tasks.cli.report", "hedge report"),
    "sentence_transformers": ("hedge_tasks.cli.score", "hedge score"),
    "albumentations": ("hedge_tasks.lmms.plugin", "lmms-eval --model"),
    "optuna": ("hedge_tasks.cli.detectors", "hedge detectors"),
    "sklearn": ("hedge_tasks.cli.detectors", "hedge detectors"),
    "evaluate": ("hedge_tasks.measures.evaluate", "hedge_tasks.measures.evaluate"),
    "yaml": ("hedge_tasks.cli.init", "hedge init"),
}
"""Package -> the module that a command starts in, and how the documentation names the command."""


def reached(start: str) -> set[str]:
    """Names of our modules that one imports, by any number of steps."""
    graph, waiting, names = import_graph(), [start], set()
    while waiting:
        if (name := waiting.pop()) not in names:
            names.add(name)
            waiting += graph.get(name, ())
    return names


def imports(module: str) -> set[str]:
    """Top-level packages that a module imports, anywhere in it."""
    tree = ast.parse(modules()[module].read_text("utf-8"))
    nodes = list(ast.walk(tree))
    named = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in named}


@pytest.mark.parametrize("package", USED)
def test_a_documented_command_imports_it(package: str) -> None:
    start, command = USED[package]
    assert any(package in imports(module) for module in reached(start))
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "tasks").rglob("README.md")]
    assert any(command in page.read_text("utf-8") for page in pages)
