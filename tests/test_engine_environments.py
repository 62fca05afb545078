"""How the engines' environments are set up: once a recipe, and loudly where one cannot be had."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from engines import environments
from engines.environments import CannotBeHad, Environment, interpreter, main, set_up, stamp

pytestmark = pytest.mark.slow

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


def test_the_engine_tests_are_left_out_unless_named() -> None:
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    others = "--ignore-glob=tests/test_[!e]*"  # importing them takes long
    root = Path(__file__).parents[1]
    found = subprocess.run([*collect, others, "tests"], cwd=root, capture_output=True, text=True).stdout
    assert f"tests/{Path(__file__).name}" in found
    assert "tests/engines" not in found
