"""Children of a process without threads, killed again and again: what is imported is imported once."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

from tqdm import tqdm


def progress_locks_apart() -> None:
    """tqdm's lock is one semaphore of a process and of all its forks: the last act of one that is killed while its bar
    moves would be to stop every other at its next bar. A fork has a lock of its own after this."""
    tqdm.set_lock(threading.RLock())


def child(task: Callable[[], None]) -> int:
    """A process that does something and ends; its id."""
    process = os.fork()
    if process:
        return process
    try:
        task()
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


def killed(task: Callable[[], None], kills: int, least: float, most: float) -> int:
    """Begin a task anew after each kill, and let it end after so many. Returns how many it was killed indeed."""
    rng, done = random.Random(0), 0
    for _ in range(kills):
        process = child(task)
        time.sleep(rng.uniform(least, most))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        done += os.WIFSIGNALED(status)
    process = child(task)
    _, status = os.waitpid(process, 0)
    assert status == 0
    return done
