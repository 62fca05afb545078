"""Put small faults into the code, one at a time, and see whether the tests that are not slow fail.

    python benchmarks/mutants.py                             60 faults over all rooms
    python benchmarks/mutants.py --where guard/ --count 12   in files whose path matches

Faults are a comparison's border, a factor or condition dropped, a missing check, two arguments swapped, a number a
little larger. Each is written into a copy of the tree, and test files that import near by are run there, those first
that import the module itself and little else, until a test fails that passes without the fault. Some faults change
nothing that can be seen: not all can be killed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOADED = ("torch", "transformers", "datasets", "scipy.stats", "sklearn.metrics", "pandas", "pyarrow.parquet")
"""Imported once, before the forks; lmms-eval would import this package as its plug-in."""

BORDERS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
SYMMETRIC = ("min", "max", "zip", "isinstance", "math.isclose", "np.maximum", "np.minimum")
WHOLE = ("test_architecture.py::test_what_is_logged_has_a_place_for_each_of_its_values", "test_constants.py")
NUMBERED = (ast.Compare, ast.BinOp, ast.Assign, ast.AnnAssign, ast.arguments, ast.Slice)


def faults_of(node: ast.AST, parent: ast.AST) -> Iterator[str]:
    """Yield texts to stand for a node."""
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in BORDERS:
            yield ast.unparse(ast.Compare(left, [BORDERS[type(op)]()], [right]))
        case ast.BinOp(factor, ast.Mult() | ast.Div() | ast.Pow(), _) | ast.BoolOp(_, [factor, *_]):
            yield f"({ast.unparse(factor)})"
        case ast.If(_, [ast.Raise()], []):
            yield "pass"
        case ast.Call(function, [a, b, *others]) if ast.unparse(function) not in SYMMETRIC:
            yield ast.unparse(ast.Call(function, [b, a, *others], node.keywords))
        case ast.Constant(int() | float() as value) if not isinstance(value, bool) and isinstance(parent, NUMBERED):
            yield repr(value + 1 if isinstance(value, int) else value * 1.1)


def faults(path: Path) -> Iterator[tuple[int, str, int, int]]:
    """Yield line, text, and between which bytes it comes, of each fault of a file."""
    source = path.read_bytes()
    starts = [0, *(i + 1 for i, byte in enumerate(source) if byte == ord("\n"))]
    nodes: list[ast.AST] = [ast.parse(source)]
    for parent in nodes:  # grows
        children = [node for node in ast.iter_child_nodes(parent) if not isinstance(node, ast.JoinedStr)]
        nodes += children
        for child in children:
            for new in faults_of(child, parent):
                ends = starts[child.lineno - 1] + child.col_offset, starts[child.end_lineno - 1] + child.end_col_offset
                yield child.lineno, new, *ends


@cache
def imports(test: Path) -> frozenset[str]:
    """Modules that a test file imports, itself or through helpers beside it."""
    nodes = list(ast.walk(ast.parse(test.read_bytes())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in (node for node in nodes if isinstance(node, ast.ImportFrom)):
        names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    helpers = [helper for name in names if (helper := test.with_name(f"{name}.py")).exists()]
    return frozenset(names.union(*map(imports, helpers)))


def tests_of(path: str) -> list[str]:
    """Return the examples in a file's docstrings, the tests of all code, and test files that import near by."""
    name = re.sub(r"(/__init__)?\.py$", "", path)
    module = ("hedge_tasks/" * name.startswith("models/") + name).replace("/", ".")

    def distance(test: Path) -> tuple[int, int, Path]:
        """The module itself or what is next to it first."""
        near = max((len(os.path.commonprefix([name, module])) for name in imports(test)), default=0)  # noqa: RUF071
        return -near, len(imports(test)), test

    tests = sorted((ROOT / "tests").glob("test_*.py"), key=distance)[:12]  # so many say enough, and in time
    examples = [f"test_docstrings.py::test_examples[{module}]"] * (">>> " in (ROOT / path).read_text("utf-8"))
    return [f"tests/{name}" for name in [*examples, *WHOLE, *(test.name for test in tests)]]


@dataclass(frozen=True)  # pytest hashes its plug-ins
class Names:
    """Plug-in of pytest: writes the name of the first test, or file, that fails."""

    result: Path

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.result.read_text():
            self.result.write_text(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport


def failing(tree: Path, tests: Iterable[str], without: Iterable[str] = ()) -> str:
    """Run tests in a fork, and return the name of the first that fails; "" where none does."""
    (result := tree / "failing").write_text("")
    if not (child := os.fork()):
        os.chdir(tree)
        os.dup2(os.open("output", os.O_CREAT | os.O_TRUNC | os.O_WRONLY), 1)
        os.environ["PYTHONPATH"] = sys.path[0] = str(tree)
        options = ["-x", "-q", "--timeout=100", "-m", "not slow and not docs and not pages", "-p", "no:cacheprovider"]
        left_out = [f"--deselect={name}" for name in without]
        os._exit(importlib.import_module("pytest").main([*options, *left_out, *tests], [Names(result)]))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return result.read_text() or ("" if status in (0, 5) else "no end")  # 5: there is no test


def killer(tree: Path, path: str, whole: bytes, tests: list[str], broken: set[str]) -> str:
    """Return the name of a test that fails with a fault and passes without; "" where none does."""
    original = (ROOT / path).read_bytes()
    while True:
        (tree / path).write_bytes(whole)
        name = failing(tree, tests, broken)
        (tree / path).write_bytes(original)
        if name in ("", "no end") or not failing(tree, [name]):
            return name
        broken.add(name)


def chosen(where: str, seed: int) -> Iterator[tuple[str, str, int, str, bytes]]:
    """Yield room, path, line, text and whole source of faults, each room in turn, in an order by chance."""
    rooms = defaultdict[str, list[tuple[str, int, str, int, int]]](list)
    for path in sorted(path for top in ("hedge_tasks", "models") for path in (ROOT / top).rglob("*.py")):
        name = str(path.relative_to(ROOT))
        found = [(name, *fault) for fault in faults(path) if re.search(where, f"{name}:{fault[0]}")]
        rooms[path.relative_to(ROOT).parts[name.startswith("hedge_tasks/")]] += found
    for candidates in rooms.values():
        random.Random(seed).shuffle(candidates)
    for room, fault in (pair for turn in zip_longest(*rooms.values()) for pair in zip(rooms, turn, strict=True)):
        if fault is not None:
            path, line, new, begin, end = fault
            source = (ROOT / path).read_bytes()
            whole = source[:begin] + new.encode() + source[end:]
            with suppress(SyntaxError):  # an `elif` is no statement
                if ast.dump(ast.parse(whole)) != ast.dump(ast.parse(source)):
                    yield room, path, line, new, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--where", default="", help="regular expression for PATH:LINE")
    options = parser.parse_args()
    for name in LOADED:
        importlib.import_module(name)
    outcomes, broken = defaultdict[str, list[bool]](list), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, ROOT.name)
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "results", "build"))
        (tree / "hedge_tasks" / "models").symlink_to("../models")
        for room, path, line, new, whole in islice(chosen(options.where, options.seed), options.count):
            name = killer(tree, path, whole, tests_of(path), broken)
            outcomes[room].append(bool(name))
            print(f"{path}:{line}: {new}\n    {name or 'LIVES'}", flush=True)
    everything = [killed for room in outcomes.values() for killed in room]
    for room, killed in [*sorted(outcomes.items()), ("all", everything)]:
        print(f"{room:12} {sum(killed):3} of {len(killed):3} killed")


if __name__ == "__main__":
    main()
