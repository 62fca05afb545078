"""What the package says of itself is so: its requirements, the Pythons it runs on, what it offers."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from conftest import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]

NOT_INSTALLED = {
    **{name: name for name in ("diffusers", "vllm")},
    "rapidocr_onnxruntime": "rapidocr-onnxruntime",
}
"""Module -> distribution, of optional ones that the tests' environment lacks."""


def distribution(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def required(*extras: str) -> set[str]:
    """Distributions that are required, with those of extras; ours stands for those of its extras."""
    wanted = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    found = set()
    for line in wanted:
        name, inner = re.match(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?", line).groups()  # type: ignore[union-attr]
        found |= required(*inner.split(",")) if name == "hedge-tasks" else {distribution(name)}
    return found


def imported(files: Iterable[Path]) -> dict[str, str]:
    """Top-level modules that are imported anywhere in the files, each with one of them."""
    found = {}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0]: file.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found[node.module.partition(".")[0]] = file.name
    return {name: file for name, file in found.items() if name not in sys.stdlib_module_names and name != "hedge_tasks"}


def undeclared(modules: dict[str, str], known: set[str]) -> list[str]:
    by_module = packages_distributions()
    return [
        f"{module} in {file}"
        for module, file in sorted(modules.items())
        if not {distribution(name) for name in by_module.get(module, [NOT_INSTALLED.get(module, module)])} & known
    ]


def packaged() -> list[Path]:
    files = [path for folder in ("hedge_tasks", "models", "tasks") for path in (REPOSITORY / folder).rglob("*.py")]
    return [path for path in files if "training" not in path.parts]


@pytest.mark.slow
def test_what_the_package_imports_is_declared() -> None:
    modules = imported(packaged())
    assert {"cv2", "pyarrow", "huggingface_hub", "markupsafe", "diffusers"} <= modules.keys()
    assert undeclared(modules, required(*PROJECT["optional-dependencies"])) == []
    assert undeclared({"yaml": "b.py", "nowhere": "c.py"}, {"numpy"}) == ["nowhere in c.py", "yaml in b.py"]
    used = {distribution(name) for module in modules for name in packages_distributions().get(module, [])}
    assert required() - used == {"filelock"}, "nothing is required that nobody imports"


@pytest.mark.slow
def test_what_is_imported_as_a_module_begins_is_no_extra() -> None:
    """An extra may be missing, so it is imported in a function only; or in a room that is entered in one only."""
    at_the_top = set()
    for file in packaged():
        if file.is_relative_to(REPOSITORY / "hedge_tasks" / "guard" / "proxy"):
            continue
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.Import):
                at_the_top |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                at_the_top.add(str(node.module).partition(".")[0])
    third = dict.fromkeys(at_the_top - set(sys.stdlib_module_names) - {"hedge_tasks"}, "")
    assert undeclared(third, required()) == []


@pytest.mark.slow
def test_what_the_tests_import_is_declared() -> None:
    tests = sorted((REPOSITORY / "tests").glob("*.py"))
    own = {"engines", "environments", "golden", "hedge_bench", "hedge_colours", "replies", "sizes", "training"}
    own |= {path.stem for path in tests}
    modules = {name: file for name, file in imported(tests).items() if name not in own}
    assert undeclared(modules, required(*PROJECT["optional-dependencies"])) == []


def test_every_requirement_has_a_bound_and_every_version_a_place() -> None:
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    assert [line for line in lines if not line.startswith("hedge-tasks") and not re.search(r"[><=]", line)] == []
    pinned = {
        distribution(line.partition("==")[0])
        for line in (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    }
    assert required() - pinned == set()


# --- Python versions --------------------------------------------------------------------------------------------------


def test_make_says_in_one_line_which_python_it_takes(tmp_path: Path) -> None:
    old = tmp_path / "python-of-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.13 || exit 1\n')
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "setup.cfg", "constraints.txt"):
        shutil.copy(REPOSITORY / name, tmp_path)
    for python, told in ((str(old), "is Python 3.10.13"), ("nowhere/python", "nowhere/python")):
        call = ["make", "demo", f"PYTHON={python}"]
        alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(call, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
        first = done.stderr.splitlines()[0]
        assert first.startswith("hedge-tasks needs Python 3.11 or later, and "), done.stderr
        assert told in first
        assert first.endswith("as in  make demo PYTHON=python3.12")
        assert not (tmp_path / ".venv").exists()


def test_the_pythons_that_are_tried_are_those_of_the_metadata() -> None:
    import pythons

    assert pythons.versions()[0] == PROJECT["requires-python"].removeprefix(">=")
    assert pythons.versions() == sorted(pythons.versions(), key=lambda version: int(version.split(".")[1]))
    assert "test-pythons" in (REPOSITORY / "Makefile").read_text("utf-8")


@pytest.mark.slow
def test_this_python_runs_what_others_are_tried_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pythons

    pythons.score(Path(sys.executable).parent, tmp_path)  # in the environment of the tests: nothing is installed
    monkeypatch.setattr(pythons, "ENTROPY", 0.1)
    with pytest.raises(AssertionError):
        pythons.score(Path(sys.executable).parent, tmp_path)
