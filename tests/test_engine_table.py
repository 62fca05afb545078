"""docs/engines.md says what the engine tests check, and on which engines; here it is held against the tests' source."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "engines"
PAGE = Path(__file__).parents[1] / "docs" / "engines.md"

COLUMNS = {"vLLM": "vllm", "llama.cpp": "llama_cpp", "transformers serve": "transformers_serve"}
OF_ADAPTERS = (
    "test_adapters.py",
    "test_contract.py",
    "test_moved.py",
    "test_prefix_cache.py",
    "test_vllm_in_process.py",
)
"""Files whose every test is a row: the others are about the engines alone."""


def rows() -> list[list[str]]:
    """Rows of the tables that have a column of tests."""
    tables: list[list[str]] = [[]]
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    cells = [[[cell.strip() for cell in line.strip("| ").split("|")] for line in table] for table in tables]
    return [row for table in cells if table and "test" in table[0] for row in table]


def named_test(row: list[str]) -> str | None:
    return next((found[1] for cell in row if (found := re.fullmatch(r"`(test_\w+\.py::test_\w+)`", cell))), None)


@cache
def engines_of(file: str) -> dict[str, frozenset[str]]:
    """The tests of a file, each with the engines that its `@on(...)` names; none where it has no such mark."""
    module = ast.parse((FOLDER / file).read_text("utf-8"))
    known: dict[str, Any] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                known[statement.targets[0].id] = ast.literal_eval(statement.value)
            except ValueError:
                continue  # no constant
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {test.name: frozenset(_marked(test, known)) for test in tests}


def _marked(test: ast.FunctionDef, known: dict[str, Any]) -> list[str]:
    names: list[str] = []
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "on":
            for argument in mark.args:
                starred = isinstance(argument, ast.Starred)
                names += known[argument.value.id] if starred else [ast.literal_eval(argument)]  # type: ignore[attr-defined]
    return [name.removesuffix("_greedy") for name in names]


def test_every_row_names_a_test_and_marks_the_engines_that_it_runs_on() -> None:
    header: list[str] = []
    seen = 0
    for row in rows():
        if "test" in row:
            header = row
            continue
        named = named_test(row)
        if named is None:
            assert set("".join(row)) <= set("-|"), row
            continue
        file, _, name = named.partition("::")
        found = engines_of(file)
        assert name in found, f"{named}: there is no such test"
        marks = dict(zip(header, row + [""] * len(header), strict=False))
        if "vLLM" in marks:
            assert {COLUMNS[c] for c in COLUMNS if marks[c]} == found[name], named
        seen += 1
    assert seen > 15


def test_every_test_of_an_adapter_is_a_row() -> None:
    named = {named_test(row) for row in rows()}
    missing = [f"{file}::{name}" for file in OF_ADAPTERS for name in engines_of(file)]
    assert [test for test in missing if test not in named] == []
