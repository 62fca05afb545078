"""Killed again and again, written by two at once: the answers are those of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from once import python
from sampling_process import DOCUMENTS, SeededModel, requests

from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.store import AnswerStore

PROGRAM = Path(__file__).with_name("sampling_process.py")
N = 10
DRAWS = DOCUMENTS * (1 + 2 * N)


def start(store: Path, seconds_a_batch: float) -> subprocess.Popen[str]:
    command = [python(), str(PROGRAM), str(store), str(N), str(seconds_a_batch)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return generate_samples(SeededModel(0), requests(tmp_path_factory.mktemp("undisturbed"), N))


def fork(store: Path, seconds_a_batch: float) -> int:
    """A process that samples, without the seconds that a fresh interpreter imports for. Returns its id."""
    if pid := os.fork():
        return pid
    try:
        generate_samples(SeededModel(seconds_a_batch), requests(store, N))
    finally:
        os._exit(0)


def is_running(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_killed_again_and_again(tmp_path: Path, undisturbed: list[str]) -> None:
    """SIGKILL at random moments after sampling began; what is stored only grows, and in the end nothing differs."""
    dice = random.Random(0)
    stored = killed = 0
    for _ in range(15):
        size_before, pid = size(tmp_path), fork(tmp_path, 0.01)
        while size(tmp_path) == size_before and is_running(pid):
            time.sleep(0.001)
        time.sleep(dice.uniform(0, 0.012))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        now = len(AnswerStore(tmp_path))
        assert now >= stored
        stored = now
    assert killed > 10  # the last ones may find everything done
    assert generate_samples(SeededModel(0), requests(tmp_path, N)) == undisturbed
    assert len(AnswerStore(tmp_path)) == DRAWS


@pytest.mark.slow
def test_two_processes_on_the_same_documents(tmp_path: Path, undisturbed: list[str]) -> None:
    processes = [start(tmp_path, 0.005) for _ in range(2)]
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert outputs == [undisturbed, undisturbed]
    assert len(list(tmp_path.iterdir())) == 2
    store = AnswerStore(tmp_path)
    assert (len(store), len(store.dropped)) == (DRAWS, 0)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("answers-*.jsonl"))
