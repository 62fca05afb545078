"""The tests of engines have a command of their own, `make test-engines`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_engine_tests_are_left_out_unless_named() -> None:
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    others = "--ignore-glob=tests/test_*"  # importing them takes long
    root = Path(__file__).parents[1]
    found = subprocess.run([*collect, others, "tests"], cwd=root, capture_output=True, text=True)
    assert found.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, found.stdout
