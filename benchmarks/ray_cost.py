"""The price of Ray on one machine: draws a second of one process and of one and two replicas, and with a straggler.

    python benchmarks/ray_cost.py [--questions 60] [--n 10] [--rounds 3]

The embedded model answers questions of hedge_demo, without an answer store. Loading is not counted. The rows are made
in turns, and each is the best of `--rounds`; quote the ratios. In the last row one of two replicas is stopped for five
seconds in the middle, which costs a run that splits its questions beforehand all of them.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from itertools import count
from typing import Any

from lmms_eval.tasks import TaskManager, get_task_dict

from hedge_tasks.lmms.plugin import entry_point
from hedge_tasks.models.hedge_ray import HedgeRay
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.sampling.hook import generate_samples

STOPPED_S = 5.0
_SEEDS = count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["HEDGE_STORE"] = "off"
    entry_point()
    task = get_task_dict(["hedge_demo"], TaskManager(include_defaults=False), "chat")["hedge_demo"]
    models: dict[str, Any] = {
        "one process": HedgeTiny(),
        "1 replica": HedgeRay(of="hedge_tiny", replicas=1, num_cpus=0.5),
        "2 replicas": HedgeRay(of="hedge_tiny", replicas=2, num_cpus=0.5),
    }
    n_draws = arguments.questions * (1 + 2 * arguments.n)
    best: dict[str, tuple[float, float]] = {}
    for model in models.values():
        sampled(task, model, arguments.n, 2)  # loads what is loaded once
    for _ in range(arguments.rounds):
        for name, model in models.items():
            best[name] = min(
                best.get(name, (float("inf"), 0.0)), sampled(task, model, arguments.n, arguments.questions)
            )
    two = models["2 replicas"]
    timer = threading.Timer(best["2 replicas"][0] / 3, _pause, [_pid(two)])
    timer.start()
    best["2 replicas, one stopped for 5 s"] = sampled(task, two, arguments.n, arguments.questions)
    timer.join()
    base = best["one process"][0]
    for name, (seconds, cpu) in best.items():
        print(
            f"{name}: {n_draws / seconds:.0f} draws a second, {base / seconds:.2f} of one process; "
            f"{1e3 * cpu / n_draws:.2f} CPU ms a draw in the process that hands out; {seconds:.1f} s"
        )
    for model in list(models.values())[1:]:
        model.clean()


def sampled(task: Any, model: Any, n: int, questions: int) -> tuple[float, float]:
    """Seconds by the clock, and of CPU time in this process. Each time with a seed of its own: nothing is known."""
    settings = {"n": n, "probe": False, "seed": next(_SEEDS)}
    task.set_config(key="generation_kwargs", value=settings, update=True)
    model.task_dict = {"hedge_demo": task.dataset}
    task.build_all_requests(limit=questions)
    start, cpu = time.perf_counter(), time.process_time()
    generate_samples(model, task.instances)
    return time.perf_counter() - start, time.process_time() - cpu


def _pid(model: HedgeRay) -> int:
    """The process of the first replica."""
    import ray

    actor = model._replicas[0].actor
    return int(ray.get(actor.__ray_call__.remote(lambda _: os.getpid())))


def _pause(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    main()
