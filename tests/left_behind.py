"""Processes that tests have started and not ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
PATIENCE = 3.0  # seconds until what has been told to end has ended


def left_behind(run: str, known: Collection[int]) -> dict[int, str]:
    """Return what runs still, by process id: its command line, and the test that started it where that is known.

    Args:
        run: a setting `NAME=VALUE` of the environment that all processes of this test run have inherited.
        known: processes that may go on.
    """
    end = time.monotonic() + PATIENCE
    while (found := _processes(run, known)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def kill(processes: Collection[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _processes(run: str, known: Collection[int]) -> dict[int, str]:
    found = {}
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            parent, state = _parent_and_state(folder)
            environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            mine = run in environment or parent == os.getpid()
            if mine and state != "Z" and int(folder.name) not in {*known, os.getpid()}:
                command = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")[:300]
                tests = [each.partition("=")[2] for each in environment if each.startswith("PYTEST_CURRENT_TEST=")]
                found[int(folder.name)] = " ".join([command, *(f"(of {test})" for test in tests)])
    return found


def _parent_and_state(folder: Path) -> tuple[int, str]:
    state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
    return int(parent), state
