"""Run lmms-eval as its command line does, inside this process: importing it takes ten seconds, once."""

from __future__ import annotations

import atexit
import gc
import hashlib
import json
import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from once import SHARED, once

TASKS = Path(__file__).parent / "tasks"


@dataclass(frozen=True)
class Run:
    """What an evaluation left behind."""

    output: Path
    results: dict[str, Any]

    def samples(self, task: str) -> list[dict[str, Any]]:
        [file] = self.output.rglob(f"*_samples_{task}.jsonl")
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    def values(self, task: str) -> dict[str, Any]:
        """Metric cells of a task, `metric,filter` -> value; without lmms-eval's bookkeeping."""
        return {k: v for k, v in self.results["results"][task].items() if "," in k and "stderr_cl" not in k}


def same_values(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two tables agree: numbers to 1e-6, reasons to the letter."""

    def same(a: object, b: object) -> bool:
        numbers = isinstance(a, float) and isinstance(b, float)
        return abs(a - b) < 1e-6 if numbers else a == b

    return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)


def evaluate(output: Path, *arguments: str) -> Run:
    """`lmms-eval ARGUMENTS --output_path OUTPUT --log_samples`, raising what it raises."""
    prepare()
    from lmms_eval.__main__ import cli_evaluate_single, parse_eval_args

    command = ["lmms-eval", *arguments, "--output_path", str(output), "--log_samples"]
    with patch.object(sys, "argv", command):
        _, parsed = parse_eval_args()
    cli_evaluate_single(parsed)
    return _run(output)


def evaluated(output: Path, *arguments: str) -> Run:
    """The same for a run that several tests need: made once a test run, and copied to OUTPUT."""
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("HEDGE_"))
    name = hashlib.sha256(json.dumps([arguments, settings]).encode()).hexdigest()[:16]
    made = once(f"run-{name}", lambda folder: evaluate(folder / "output", *arguments))
    shutil.copytree(made / "output", output, dirs_exist_ok=True)
    return _run(output)


def _run(output: Path) -> Run:
    [file] = output.rglob("*_results.json")
    return Run(output, json.loads(file.read_text("utf-8")))


@cache
def prepare() -> None:
    """Import lmms-eval, and let the index of its own tasks and of ours be made once: 1,800 YAMLs, 5 CPU seconds an
    evaluation."""
    import lmms_eval.__main__
    from lmms_eval.tasks import TaskManager

    from hedge_tasks.evaluation import own_folder

    stock = str(Path(lmms_eval.__file__).parent / "tasks") + os.sep
    names = {stock: "stock-tasks", str(own_folder("")): "own-tasks"}
    index = TaskManager._get_task_and_group

    read: dict[str, str] = {}

    def indexed(self: Any, folder: str) -> Any:
        if folder not in names:
            return index(self, folder)
        if folder not in read:

            def make(made: Path) -> None:
                (made / "index.json").write_text(json.dumps(index(self, folder)))

            read[folder] = (once(names[folder], make) / "index.json").read_text()
        return json.loads(read[folder])

    if SHARED in os.environ:
        TaskManager._get_task_and_group = indexed
    gc.freeze()  # what is imported stays: `lm.clean()` of lmms-eval collects garbage, half a second through all of it
    atexit.register(gc.unfreeze)
