"""How the engines' environments are set up: once a recipe, and loudly where one cannot be had."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engines import environments
from engines.environments import CannotBeHad, Environment, interpreter, main, set_up, stamp

HARMLESS = Environment("engine", (("--version",),))
MISSING = Environment("engine", (("install", "--no-index", "no-such-engine==1.2.3"),))


def test_an_environment_is_made_once_for_a_recipe(tmp_path: Path) -> None:
    assert set_up(HARMLESS, tmp_path) > 0
    python = interpreter(tmp_path, "engine")
    subprocess.run([python, "-c", "import sys; assert sys.prefix != sys.base_prefix"], check=True)
    assert set_up(HARMLESS, tmp_path) == 0
    changed = replace(HARMLESS, recipe=(("--version",), ("--version",)), sees_project=True)
    assert set_up(changed, tmp_path) > 0
    assert not stamp(tmp_path, HARMLESS).exists()  # the environment is another one now
    subprocess.run([python, "-c", "import pytest, hedge_tasks"], check=True, cwd=tmp_path)


def test_an_engine_that_cannot_be_had_is_said_with_pips_words_and_leaves_no_stamp(tmp_path: Path) -> None:
    with pytest.raises(CannotBeHad) as caught:
        set_up(MISSING, tmp_path)
    message = str(caught.value)
    assert message.startswith("engine cannot be set up on this machine (")
    assert "No matching distribution found for no-such-engine==1.2.3" in message
    assert str(tmp_path / "engine" / "setup.log") in message
    assert not stamp(tmp_path, MISSING).exists()


def test_a_library_of_the_system_that_is_missing_is_named_before_anything_is_downloaded(tmp_path: Path) -> None:
    lacking = replace(HARMLESS, library=("libnosuch.so.1", "libnosuch1"))
    with pytest.raises(CannotBeHad, match=r"needs the system's library libnosuch.so.1.*apt-get install libnosuch1"):
        set_up(lacking, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert set_up(replace(HARMLESS, library=("libc.so.6", "libc6")), tmp_path) > 0


def test_the_requirements_that_a_recipe_leaves_to_pip_are_written_down(tmp_path: Path) -> None:
    # `build`, which the tests need, requires these two among others.
    script = environments.HERE / "requirements_of.py"
    told = subprocess.run([sys.executable, script, "build", "packaging"], capture_output=True, text=True, check=True)
    lines = told.stdout.splitlines()
    assert any(line.startswith("pyproject_hooks") for line in lines)
    assert not any(line.startswith("packaging") or "extra ==" in line for line in lines)


def test_the_command_tries_all_and_fails_if_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(HARMLESS, name="other")
    monkeypatch.setattr(environments, "ENVIRONMENTS", (MISSING, other))
    assert main([str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "other: set up in" in out
    assert "they skip none" in err
    assert main([str(tmp_path), "other"]) == 0
    assert "other: is there" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([str(tmp_path), "vlm"])
    assert "no such engine: vlm; there are engine, other" in capsys.readouterr().err
