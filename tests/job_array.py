"""Eight jobs of an array on one machine, over one store: each samples its slice of hedge_demo, as `--offset`, `--limit`
and `--predict_only` of lmms-eval have it.

    python tests/job_array.py FOLDER QUESTIONS N

lmms-eval, the task and the model are loaded once and every job is a fork of that: eight jobs are not eight times twenty
seconds of imports. Three are killed after their first answers and sent again, as a scheduler requeues them; one is
slow.
Prints as JSON what happened.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

JOBS = 8
KILLED = (1, 4, 6)
SLOW = 3
SLOW_PAUSE, ENDLESS_PAUSE = 2.0, 3600.0  # seconds a document
PATIENCE = 300.0
PR_SET_PDEATHSIG = 1


def main() -> None:
    folder, questions, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = folder / "store"
    os.environ["HEDGE_STORE"] = str(store)
    task, model = prepare(n)
    per_job = -(-questions // JOBS)
    slices = {job: (job * per_job, min(per_job, questions - job * per_job)) for job in range(JOBS)}

    def start(job: int, pause: float) -> int:
        return fork(task, model, slices[job], pause, folder / f"job-{job}.log")

    pauses = {SLOW: SLOW_PAUSE, **dict.fromkeys(KILLED, ENDLESS_PAUSE)}
    pids: dict[int, int] = {}
    left_behind = {}
    try:
        pids |= {job: start(job, pauses.get(job, 0)) for job in slices}
        for job in KILLED:
            wait_until(lambda job=job: stored(store, pids[job]) > 0)
            os.kill(pids[job], signal.SIGKILL)
            os.waitpid(pids[job], 0)
            left_behind[job] = stored(store, pids[job])
            pids[job] = start(job, 0)  # while others, the slow one among them, are still at it
        codes = {job: os.waitstatus_to_exitcode(os.waitpid(pids[job], 0)[1]) for job in sorted(pids)}
    except BaseException:
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise
    sys.stdout.write(json.dumps({"left_behind": left_behind, "codes": codes}) + "\n")


def prepare(n: int) -> tuple[Any, Any]:
    """The task and the model, as lmms-eval would hand them to each job."""
    from lmms_eval.tasks import TaskManager, get_task_dict

    from hedge_tasks.lmms.plugin import entry_point
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    entry_point()
    manager = TaskManager(include_defaults=False)
    task = get_task_dict(["hedge_demo"], manager, "chat")["hedge_demo"]
    task.set_config(key="generation_kwargs", value={"n": n, "probe": False}, update=True)
    model = HedgeTiny()
    model.task_dict = {"hedge_demo": task.dataset}
    return task, model


def fork(task: Any, model: Any, questions: tuple[int, int], pause: float, log: Path) -> int:
    """Start a job. Returns its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        die_with_the_parent()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        offset, limit = questions
        task.build_all_requests(offset=offset, limit=limit)
        generate = model.generate_draws

        def slow(draws: Any) -> Iterator[Any]:
            for batch in generate(draws):
                yield batch  # and stored
                time.sleep(pause)

        model.generate_draws = slow
        model.generate_samples(task.instances)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # what the parent cleans up is not the job's


def die_with_the_parent() -> None:
    """An endless job must not outlive a test that has been killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def stored(store: Path, pid: int) -> int:
    """Answers that a process has written so far."""
    files = store.glob(f"answers-*-{pid}-*.jsonl")
    return sum('"answer"' in line for file in files for line in file.read_text("utf-8").splitlines())


def wait_until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "a job stored nothing"
        time.sleep(0.02)


if __name__ == "__main__":
    main()
