"""Eight jobs of an array on one machine: `lmms-eval --offset ... --limit ... --predict_only` over one store.

    python tests/job_array.py FOLDER PER_JOB

lmms-eval is imported once and every job is a fork of that, so that eight jobs are not eight imports. Three are killed
after some answers and sent again, as a scheduler requeues them; one is slow. Prints what happened as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation import evaluate

JOBS = 8
KILLED = (1, 4, 6)
SLOW = 3
PAUSE = 0.2  # seconds a document, so that a job is killed in the middle
SLOW_PAUSE = 0.6


def start(folder: Path, job: int, per_job: int, pause: float) -> int:
    """Fork a job. Returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        log = os.open(folder / f"job-{job}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _slow_down(pause)
        evaluate(folder / f"job-{job}-{os.getpid()}", *arguments(job * per_job, per_job), "--predict_only")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # the parent's clean-up is not a job's


def arguments(offset: int, limit: int) -> tuple[str, ...]:
    task = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--gen_kwargs", "n=2")
    return (*task, "--offset", str(offset), "--limit", str(limit))


def _slow_down(pause: float) -> None:
    from hedge_tasks.models.hedge_hf import HedgeHF

    original = HedgeHF.generate_draws

    def slow(self: Any, draws: Any) -> Iterator[Any]:
        for batch in original(self, draws):
            time.sleep(pause)
            yield batch

    HedgeHF.generate_draws = slow  # type: ignore[method-assign]


def stored(store: Path, pid: int) -> int:
    """Answers that a process has written so far."""
    files = store.glob(f"answers-*-{pid}-*.jsonl")
    return sum('"answer"' in line for file in files for line in file.read_text("utf-8").splitlines())


def main() -> None:
    folder, per_job = Path(sys.argv[1]), int(sys.argv[2])
    store = folder / "store"
    os.environ["HEDGE_STORE"] = str(store)
    import lmms_eval.__main__

    assert lmms_eval.__main__  # imported before the forks
    started = time.monotonic()
    pids = {job: start(folder, job, per_job, SLOW_PAUSE if job == SLOW else PAUSE) for job in range(JOBS)}
    left_behind = {}
    waiting = set(KILLED)
    while waiting and time.monotonic() - started < 300:
        for job in sorted(waiting):
            if (answers := stored(store, pids[job])) >= 5:
                os.kill(pids[job], signal.SIGKILL)
                os.waitpid(pids[job], 0)
                left_behind[job] = max(answers, stored(store, pids[job]))
                waiting.discard(job)
        time.sleep(0.02)
    pids |= {job: start(folder, job, per_job, 0) for job in left_behind}  # requeued, while the slow one is still at it
    codes, seconds = {}, {}
    while len(codes) < JOBS:
        pid, status = os.wait()
        job = next(job for job, known in pids.items() if known == pid)
        codes[job], seconds[job] = os.waitstatus_to_exitcode(status), round(time.monotonic() - started, 1)
    sys.stdout.write(json.dumps({"left_behind": left_behind, "codes": codes, "seconds": seconds}) + "\n")


if __name__ == "__main__":
    main()
