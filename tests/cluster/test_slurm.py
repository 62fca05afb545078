"""The job array of docs/scaling.md on a SLURM of two nodes: a node and a job are killed, no draw is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import slurm
from conftest import REPOSITORY
from slurm import Slurm, wait_until

TASKS = 4
SIZE = 4
DRAWS = 1 + 2 * 40
"""Draws a question, many enough that a job is still at it when it is killed."""

pytestmark = pytest.mark.skipif(bool(slurm.missing()), reason=f"not installed: {', '.join(slurm.missing())}")


@pytest.fixture
def cluster() -> Iterator[Slurm]:
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, Slurm(Path(folder)) as up:
        yield up


def array_script() -> str:
    """The script of docs/scaling.md, for the embedded model and a machine without GPUs."""
    text = (REPOSITORY / "docs" / "scaling.md").read_text("utf-8")
    script = re.search(r"### SLURM.*?```bash\n(.*?)```", text, re.DOTALL)
    assert script
    changes = {
        "--array=0-49": f"--array=0-{TASKS - 1}",
        "#SBATCH --gres=gpu:1\n": "",
        "SIZE=2000": f"SIZE={SIZE}",
        "--model hedge_hf --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct,dtype=bfloat16": "--model hedge_tiny",
        "--tasks my_task": f"--tasks hedge_demo --gen_kwargs n={DRAWS // 2},probe=false",
    }
    changed = script[1]
    for old, new in changes.items():
        assert old in changed, old
        changed = changed.replace(old, new)
    return changed


def test_the_array_of_the_documentation_survives_a_dead_node_and_a_killed_job(cluster: Slurm, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    script = tmp_path / "array.sh"
    script.write_text(array_script(), "utf-8")
    environment = {"SCRATCH": str(scratch), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    exported = ",".join(["ALL", *(f"{name}={value}" for name, value in environment.items())])
    job = cluster.run(
        "sbatch", "--parsable", f"--export={exported}", f"--output={tmp_path}/%a.log", "--open-mode=append", str(script)
    ).strip()
    store = scratch / "hedge" / "store"
    wait_until(lambda: all(cluster.tasks(job)[task] == "RUNNING" for task in "01"), "two running jobs")
    where = {task: cluster.node_of(job, task) for task in "01"}
    assert sorted(where.values()) == ["n1", "n2"]

    wait_until(lambda: len(logs(store)) == 2 and all(map(records, logs(store))), "draws of both jobs", 240)
    dead = next(task for task, node in where.items() if node == "n2")
    cluster.kill("n2")
    [killed] = {"0", "1"} - {dead}
    kill_samplers(cluster, job, killed)
    left = {log: records(log) for log in logs(store)}
    assert all(0 < n < SIZE * DRAWS for n in left.values()), left

    wait_until(lambda: cluster.tasks(job)[killed] in {"FAILED", "OUT_OF_MEMORY"}, "the killed job failed")
    cluster.run("scontrol", "requeue", f"{job}_{killed}")
    wait_until(lambda: cluster.tasks(job)[dead] == "PENDING", "the dead node's job is queued again")
    for task in (dead, killed):  # SLURM makes a job that is queued again wait two minutes
        cluster.run("scontrol", "update", f"JobId={job}_{task}", "StartTime=now")
    wait_until(lambda: set(cluster.tasks(job).values()) == {"COMPLETED"}, "all jobs completed", 480)

    counts = draws(store)
    assert len(counts) == TASKS * SIZE * DRAWS
    assert set(counts.values()) == {1}
    assert len(logs(store)) == TASKS + 2
    assert rescored(store)["n"] == TASKS * SIZE


def kill_samplers(cluster: Slurm, job: str, task: str) -> None:
    """Kill the Python of a task, as the kernel does when the memory is full."""
    [number] = re.findall(r"JobId=(\d+)", cluster.run("scontrol", "show", "job", f"{job}_{task}"))[:1]
    variables = {"SLURM_JOB_ID": number, "SLURM_CONF": cluster.environment["SLURM_CONF"], "SLURM_PROCID": "0"}
    samplers = [pid for pid in slurm.processes(variables) if b"lmms" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert samplers
    for pid in samplers:
        os.kill(pid, signal.SIGKILL)


def logs(store: Path) -> list[Path]:
    return sorted(store.glob("answers-*.jsonl"))


def records(log: Path) -> int:
    """Draws in a log that is being written."""
    return log.read_bytes().count(b'"key"')


def draws(store: Path) -> Counter[str]:
    from hedge_tasks.io.keyed_log import read_lines

    return Counter(line.record["key"] for line in read_lines(logs(store)) if line.record and "key" in line.record)


def rescored(store: Path) -> dict[str, Any]:
    """The last command of the documentation, without a model."""
    command = [sys.executable, "-m", "hedge_tasks.cli", "rescore", str(store), "--clustering", "exact", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    [summary] = json.loads(done.stdout)["filters"].values()
    return dict(summary)
