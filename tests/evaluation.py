"""Run lmms-eval as its command line does, inside this process: importing it takes ten seconds, once."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

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
    from lmms_eval.__main__ import cli_evaluate_single, parse_eval_args

    command = ["lmms-eval", *arguments, "--output_path", str(output), "--log_samples"]
    with patch.object(sys, "argv", command):
        _, parsed = parse_eval_args()
    cli_evaluate_single(parsed)
    [file] = output.rglob("*_results.json")
    return Run(output, json.loads(file.read_text("utf-8")))
