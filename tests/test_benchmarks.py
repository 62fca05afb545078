"""Every benchmark starts: its imports are there and its options are known."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"
HELPERS = {"medical_models"}
"""Modules that others import."""


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """A benchmark is a process of its own otherwise, and sets variables as it likes."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
@pytest.mark.framework
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_benchmark_starts(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(FOLDER, f"{name}.py")
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    if name in HELPERS:
        runpy.run_path(str(path))
        return
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    assert "usage: " in capsys.readouterr().out
