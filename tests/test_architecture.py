"""The house has stairs that go one way: no two modules, and no two rooms, import each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from string import Formatter

import sizes
from conftest import REPOSITORY

FOLDERS = {"hedge_tasks": "hedge_tasks", "models": "hedge_tasks.models"}
"""Where the code is, and the package that it is installed as."""

ORDER = [
    "cli",
    "making",
    "guard",
    "leaderboard",
    "report",
    "suites",
    "lmms",
    "measures",
    "runs",
    "detectors",
    "judging",
    "claims",
    "models",
    "sampling",
    "perturb",
    "clustering",
    "replies",
    "statistics",
    "llm",
    "data",
    "evaluation",
    "registry",
    "numbers",
    "io",
    "errors",
]
"""The rooms from the roof to the ground: one imports only what stands behind it."""

ROUNDING = re.compile(r":[+ ]?,?\.(?:\d+|\{\w+\})[f%]")
"""A format that rounds, as in `f"{value:.3f}"`: numbers are rounded for people by `hedge_tasks.numbers` alone."""

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module of the package by its name; a package is its `__init__`."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in (REPOSITORY / folder).rglob("*.py"):
            parts = path.relative_to(REPOSITORY / folder).with_suffix("").parts
            found[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return found


def imported(tree: ast.AST, names: Mapping[str, Path]) -> Iterator[str]:
    """Modules of ours that a module imports anywhere in it: in functions and for the type checker as well."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from (name for name in (whole, str(node.module)) if name in names)
        else:
            yield from imported(node, names)


@cache
def import_graph() -> Graph:
    """Module -> modules that it imports. A package that a module is in is no import of it."""
    names = modules()
    graph = {}
    for name, path in names.items():
        found = set(imported(ast.parse(path.read_text("utf-8")), names))
        graph[name] = {other for other in found if other != name and not name.startswith(f"{other}.")}
    return graph


def room(module: str) -> str:
    """`hedge_tasks.statistics.roc` is in the room `statistics`; a file at the top is a room of its own."""
    return module.split(".")[1] if "." in module else module


def cycle(graph: Graph) -> list[str]:
    """One cycle of the graph, empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_one_that_imports_it() -> None:
    assert len(import_graph()) > 100
    assert cycle(import_graph()) == []


def test_rooms_import_what_is_below_them() -> None:
    """And so no two of them import each other."""
    level = {name: i for i, name in enumerate(["hedge_tasks", *ORDER])}
    assert {room(name) for name in import_graph()} <= level.keys(), "rooms that ORDER does not know"
    upwards = [
        f"{name} imports {other}"
        for name, others in import_graph().items()
        for other in sorted(others)
        if room(name) != room(other) != "hedge_tasks" != room(name) and level[room(name)] >= level[room(other)]
    ]
    assert upwards == []


def test_a_cycle_is_found_where_there_is_one() -> None:
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    tree = ast.parse(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b\ndef f():\n    from c import x\nimport a.d"
    )
    assert set(imported(tree, dict.fromkeys(["b", "c", "a.d"], Path()))) == {"b", "c", "a.d"}


def test_numbers_are_rounded_for_people_in_one_place() -> None:
    folder = REPOSITORY / "hedge_tasks"
    rounding = {
        str(path.relative_to(REPOSITORY))
        for path in folder.rglob("*.py")
        if path.parent.name != "numbers" and ROUNDING.search(path.read_text("utf-8"))
    }
    assert rounding == set(), "format numbers with hedge_tasks.numbers"
    assert ROUNDING.search("{value:+.2f}")
    assert not ROUNDING.search("{value:g}, x[1:.5]")


def test_what_is_logged_has_a_place_for_each_of_its_values() -> None:
    places = {}
    for module, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(ast.Attribute(ast.Name("logger"), "info" | "warning"), [text, *values]) if values:
                    parts = Formatter().parse(text.value) if isinstance(text, ast.Constant) else ()
                    given = sum(len(v.value.elts) if isinstance(v, ast.Starred) else 1 for v in values)  # type: ignore[attr-defined]
                    places[f"{module}:{node.lineno}"] = sum(part[1] is not None for part in parts) - given
    assert [where for where, difference in places.items() if difference] == []
    assert len(places) > 50


def test_a_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}, "name a class by what it alone is"
    assert len(places) > 300


def test_few_rooms_know_of_claims() -> None:
    known = {room(name) for name, others in import_graph().items() if any(room(other) == "claims" for other in others)}
    assert known <= {"claims", "detectors", "runs", "cli", "suites"}


def test_docstrings_are_imperative_or_name_the_thing() -> None:
    """ "What a reader gives" neither says what is done nor what it is."""
    vague = [
        f"{module}:{number}"
        for module, path in modules().items()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if line.lstrip().startswith('"""What ')
    ]
    assert vague == []


VAGUE = frozenset(["found", "one", "asked", "said", "given", "other", "of", "kept", "told", "each", "made"])
"""Names that say that something is there, and not what."""


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that are bound as variables or parameters, with their line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def test_names_say_what_they_hold() -> None:
    vague = [
        f"{module}:{line}: {name}"
        for module, path in modules().items()
        for name, line in bindings(ast.parse(path.read_text("utf-8")))
        if name in VAGUE
    ]
    # A few are keys of files, or names that other packages implement.
    assert len(vague) <= 60, "\n".join(vague)
    assert [name for name, _ in bindings(ast.parse("def f(found): of = [each for each in found]"))] == [
        *("found", "of", "each"),
    ]


def test_no_room_is_larger_than_its_ceiling() -> None:
    """The ratchet: `python benchmarks/sizes.py --lower` writes lower sizes, and nothing writes higher ones."""
    ceilings = sizes.budgets()["ceilings"]
    grown = [
        f"{room}: {size[name]} {name}, at most {ceilings.get(room, {}).get(name, 0)}"
        for room, size in sizes.sizes().items()
        if room != "tasks"
        for name in sizes.COUNTED
        if size[name] > ceilings.get(room, {}).get(name, 0)
    ]
    assert grown == []


def test_sizes_count_what_a_line_holds(tmp_path: Path) -> None:
    long, dense = tmp_path / "long.py", tmp_path / "dense.py"
    long.write_text('"""A docstring."""\n\nimport os\n\n# a comment\nx: int = 1\ny = 2\n', "utf-8")
    dense.write_text("x, y = 1, 2\n", "utf-8")
    assert sizes.size_of(long)["lines"] == 2
    assert sizes.size_of(dense)["lines"] == 1
    assert sizes.size_of(dense)["nodes"] >= sizes.size_of(long)["nodes"] - 1
