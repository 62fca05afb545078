"""Two processes, two nodes and the jobs of an array give the numbers of one process, and make every draw once."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, same_values
from once import python
from printed import json_of
from test_task_results import demo_task

from hedge_tasks.io.keyed_log import files_of, read_lines
from hedge_tasks.runs.run_files import load_run
from hedge_tasks.sampling import AnswerSet
from hedge_tasks.sampling.store import KIND

pytestmark = [pytest.mark.framework, pytest.mark.slow]

# 15 documents on 2 ranks: the second gets a padding request, which must not be counted.
ARGUMENTS = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "15", "--gen_kwargs", "n=2", "--log_samples")


def environment(store: Path | None = None) -> dict[str, str]:
    """For programs of the fork server; torchrun starts its own with PYTHON_EXEC."""
    return {**os.environ, "PYTHON_EXEC": python(), **({"HEDGE_STORE": str(store)} if store else {})}


def launch(output: Path, store: Path | None = None) -> Run:
    command = [python(), "-m", "lmms_eval", *ARGUMENTS, "--output_path", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(store), timeout=900)
    return finished(output, done.stdout + done.stderr)


def finished(output: Path, said: str) -> Run:
    files = list(output.rglob("*_results.json"))
    assert len(files) == 1, said[-3000:]
    return Run(output, json.loads(files[0].read_text("utf-8")))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return launch(tmp_path_factory.mktemp("one"))


def answers(run: Run) -> dict[str, list[Any]]:
    """Texts and clusters of every document, a list entry a filter."""
    found: dict[str, list[Any]] = {}
    for sample in run.samples("hedge_demo"):
        answer_set = AnswerSet.from_json(sample["filtered_resps"])
        found.setdefault(answer_set.id, []).append((answer_set.texts, answer_set.cluster_ids))
    return found


def test_two_nodes_of_one_process_each_give_the_numbers_of_one_which_resumes_from_them(
    one: Run, tmp_path: Path
) -> None:
    """Two agents of torchrun that find each other through an address, as on two machines with a common disk."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    store, output = tmp_path / "store", tmp_path / "nodes"
    agent = ["torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d"]
    agent += ["--rdzv-id", "hedge", "--rdzv-endpoint", address, "--local-addr", "127.0.0.1"]
    command = [python(), "-m", *agent, "-m", "lmms_eval", *ARGUMENTS, "--output_path", str(output)]
    logs = [tmp_path / f"node-{i}.log" for i in range(2)]
    nodes = []
    for log in logs:
        with log.open("w") as said:
            nodes.append(subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=environment(store)))
    try:
        codes = [node.wait(timeout=900) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    said_by_both = "\n".join(log.read_text("utf-8") for log in logs)
    assert codes == [0, 0], said_by_both[-3000:]
    two = finished(output, said_by_both)
    assert same_values(two.values("hedge_demo"), one.values("hedge_demo"))
    assert answers(two) == answers(one)
    counts = draws_of(store)
    assert len(counts) == 15 * 5
    assert set(counts.values()) == {1}
    alone, both = load_run(one.output), load_run(output)
    assert len(alone.answer_sets) == 15
    assert (both.answer_sets, both.verdicts) == (alone.answer_sets, alone.verdicts)
    assert both.settings["outcome"] == alone.settings["outcome"]
    # The threshold is chosen once, on the documents of both.
    chosen = [each.settings["filters"]["embed"]["chosen"] for each in (alone, both)]
    assert chosen[0] == chosen[1]
    assert chosen[0]["held_out"] == 0  # cross-fitted: every document counts

    assert answers(launch(tmp_path / "resumed", store)) == answers(one)
    assert len(list(store.glob("answers-*.jsonl"))) == 2  # nothing was left to make


def prepared(n: int) -> tuple[Any, Any]:
    """The task and the model, as lmms-eval would hand them to each job."""
    from hedge_tasks.models.hedge_tiny import HedgeTiny

    task = demo_task(n=n, probe=False)
    model = HedgeTiny()
    model.task_dict = {"hedge_demo": task.dataset}
    return task, model


def test_an_array_of_jobs_over_one_store_gives_the_numbers_of_one_process(
    one: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight jobs three end after their first answers and are sent again, as a scheduler requeues them."""
    monkeypatch.setenv("HEDGE_STORE", str(tmp_path / "store"))
    task, model = prepared(2)
    generate = model.generate_draws

    def ended(draws: Any) -> Iterator[Any]:
        yield next(iter(generate(draws)))
        raise KeyboardInterrupt

    for job, ends in [*((job, job in (1, 4, 6)) for job in range(8)), (1, False), (4, False), (6, False)]:
        task.build_all_requests(offset=2 * job, limit=min(2, 15 - 2 * job))
        model.generate_draws = ended if ends else generate
        with pytest.raises(KeyboardInterrupt) if ends else nullcontext():
            model.generate_samples(task.instances)

    store = tmp_path / "store"
    assert len(list(store.glob("answers-*.jsonl"))) == 8 + 3
    counts = draws_of(store)
    assert len(counts) == 15 * 5
    assert set(counts.values()) == {1}
    # One command at the end, which loads no model that answers, gives what it gives for the run of one process.
    for clustering in (["exact"], ["nli:model=package://hedge_tasks.models.tiny/nli"]):
        assert rescored(store, clustering, capsys) == rescored(one.output, clustering, capsys)


def rescored(source: Path, clustering: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `hedge rescore --json` says of the scores."""

    capsys.readouterr()
    [summary] = json_of(capsys, ["rescore", str(source), "--clustering", *clustering, "--json"])["filters"].values()
    assert summary["n_labelled"] == 15
    assert "5 of each class" in str(summary["auroc"]["se"]), summary["auroc"]["se"]
    return summary


def draws_of(store: Path) -> Counter[str]:
    """How often each draw is in a store."""
    records = [line.record for line in read_lines(files_of(store, KIND))]
    assert all(records)
    return Counter(record["key"] for record in records if record and "key" in record)
