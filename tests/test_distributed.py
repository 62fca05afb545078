"""Two processes give the numbers of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, same_values

from hedge_tasks.runs.run_files import load_run
from hedge_tasks.sampling import AnswerSet

pytestmark = [pytest.mark.framework, pytest.mark.slow]

# 15 documents on 2 ranks: the second gets a padding request, which must not be counted.
ARGUMENTS = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "15", "--gen_kwargs", "n=2", "--log_samples")


def launch(output: Path, *launcher: str, store: Path | None = None) -> Run:
    command = [sys.executable, "-m", *launcher, "lmms_eval", *ARGUMENTS, "--output_path", str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({"HEDGE_STORE": str(store)} if store else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    files = list(output.rglob("*_results.json"))
    assert len(files) == 1, (done.stdout + done.stderr)[-3000:]
    return Run(output, json.loads(files[0].read_text("utf-8")))


def test_torchrun_with_two_processes_gives_the_numbers_of_one_and_one_resumes_from_two(tmp_path: Path) -> None:
    one = launch(tmp_path / "one")
    two = launch(tmp_path / "two", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m")
    assert same_values(two.values("hedge_demo"), one.values("hedge_demo"))
    answers_of_one, answers_of_two = answers(one), answers(two)
    assert len(answers_of_one) == 15
    assert answers_of_two == answers_of_one
    assert len(list((tmp_path / "two" / "hedge_answers").glob("answers-*.jsonl"))) == 2
    kept, kept_by_two = load_run(tmp_path / "one"), load_run(tmp_path / "two")
    assert len(kept.answer_sets) == 15
    assert (kept_by_two.answer_sets, kept_by_two.verdicts) == (kept.answer_sets, kept.verdicts)
    assert kept_by_two.settings["outcome"] == kept.settings["outcome"]
    assert kept.settings["outcome"]["documents"] == 15
    # The threshold is chosen once, on the documents of both.
    chosen = [each.settings["filters"]["embed"]["chosen"] for each in (kept, kept_by_two)]
    assert chosen[0] == chosen[1]
    assert chosen[0]["held_out"] == 3

    resumed = launch(tmp_path / "resumed", store=tmp_path / "two" / "hedge_answers")
    assert answers(resumed) == answers_of_one
    assert not (tmp_path / "resumed" / "hedge_answers").exists()
    assert len(list((tmp_path / "two" / "hedge_answers").glob("answers-*.jsonl"))) == 2  # nothing was left to make


def answers(run: Run) -> dict[str, list[Any]]:
    """Texts and clusters of every document, a list entry a filter."""
    found: dict[str, list[Any]] = {}
    for sample in run.samples("hedge_demo"):
        answer_set = AnswerSet.from_json(sample["filtered_resps"])
        found.setdefault(answer_set.id, []).append((answer_set.texts, answer_set.cluster_ids))
    return found
