"""What is expensive and the same for every test is made once a test run, and common to xdist's workers."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

SHARED = "TESTS_SHARED_FOLDER"
"""Names the folder of a test run: made and removed by conftest.py, inherited by workers."""

UNUSED = ("wandb", "bitsandbytes")
"""Other libraries import these where they find them, which takes as long as all the rest; no test needs them."""


def leave_out_unused() -> None:
    sys.modules.update(dict.fromkeys(UNUSED))


def programs() -> Path:
    """The folder with `python`, `hedge` and `lmms-eval` as forks of the fork server, for a PATH."""
    return Path(os.environ[SHARED]) / "bin"


def python() -> str:
    """The interpreter that forks; for `sys.executable` wherever imports are not what is tested."""
    return str(programs() / "python")


def once(name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder with what `make` wrote into it, made by whoever asks first. Others wait, and only read."""
    folder = Path(os.environ[SHARED]) / name
    folder.mkdir(exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / ".done"
        if not done.exists():
            make(folder)
            done.touch()
    return folder
