"""How the engines' environments are set up: once a recipe, and never half."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engines import environments
from engines.environments import Environment, interpreter, set_up, stamp

HARMLESS = Environment("engine", (("--version",),))
MISSING = Environment("engine", (("install", "--no-index", "no-such-engine==1.2.3"),))


def test_an_environment_is_made_once_for_a_recipe(tmp_path: Path) -> None:
    set_up(HARMLESS, tmp_path)
    made = stamp(tmp_path, HARMLESS).stat().st_mtime_ns
    set_up(HARMLESS, tmp_path)
    assert stamp(tmp_path, HARMLESS).stat().st_mtime_ns == made
    set_up(replace(HARMLESS, recipe=(("--version",), ("--version",)), sees_project=True), tmp_path)
    assert not stamp(tmp_path, HARMLESS).exists()  # the environment is another one now
    subprocess.run([interpreter(tmp_path, "engine"), "-c", "import pytest, hedge_tasks"], check=True, cwd=tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        set_up(MISSING, tmp_path)
    assert not stamp(tmp_path, MISSING).exists()


def test_the_requirements_that_a_recipe_leaves_to_pip_are_written_down() -> None:
    # `build`, which the tests need, requires these two among others.
    script = environments.HERE / "requirements_of.py"
    told = subprocess.run([sys.executable, script, "build", "packaging"], capture_output=True, text=True, check=True)
    lines = told.stdout.splitlines()
    assert any(line.startswith("pyproject_hooks") for line in lines)
    assert not any(line.startswith("packaging") or "extra ==" in line for line in lines)
