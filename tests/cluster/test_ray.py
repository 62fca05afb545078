"""hedge_ray on a real local Ray of two simulated nodes: the answers of one process, whoever dies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import test_blocks
from test_task_results import demo_task

from hedge_tasks.models.hedge_ray import HedgeRay
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.sampling import blocks
from hedge_tasks.sampling import store as store_module
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.store import AnswerStore

Alone = tuple[list[str], dict[str, Any]]
"""The answers of one process, and what is in its store."""

QUESTIONS, N = 12, 3
DRAWS = QUESTIONS * (1 + 2 * N)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    started.add_node(num_cpus=1)
    ray.init(address=started.address, configure_logging=False, log_to_driver=False)
    yield started
    ray.shutdown()
    started.shutdown()


@pytest.fixture(scope="module")
def task() -> Any:
    return demo_task(n=N, probe=False)


def sampled(task: Any, model: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("HEDGE_STORE", str(store))
    model.task_dict = {"hedge_demo": task.dataset}
    task.build_all_requests(limit=QUESTIONS)
    return generate_samples(model, task.instances)


@pytest.fixture(scope="module")
def alone(task: Any, tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """What one process answers."""
    folder = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        answers = sampled(task, HedgeTiny(), folder, patch)
    opened = AnswerStore(folder)
    return answers, {key: opened[key] for key in opened}


@pytest.fixture
def two(cluster: Any) -> Iterator[HedgeRay]:
    """Two replicas, one a node."""
    made = HedgeRay(of="hedge_tiny", replicas=2, draws_per_task=7)
    yield made
    made.clean()


def held(folder: Path) -> dict[str, Any]:
    """The answers of a store, each of which was written once."""
    opened = AnswerStore(folder)
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    assert sum('"answer"' in line for line in lines) == DRAWS
    assert (opened.conflicts, opened.dropped) == ([], [])
    return {key: opened[key] for key in opened}


@pytest.mark.parametrize("event", ["none", "a killed replica", "a node that dies and one that joins"])
def test_two_nodes_answer_as_one_process(
    cluster: Any, two: HedgeRay, task: Any, alone: Alone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    """Who dies loses what it had in hand; it is made again, and nothing twice."""
    import ray

    draw = two.generate_draws

    def disturbed(draws: Sequence[Any]) -> Iterator[Any]:
        for i, batch in enumerate(draw(draws)):
            yield batch
            if (event, i) == ("a killed replica", 1):
                ray.kill(two._replicas[0].actor)
            if (event.startswith("a node"), i) == (True, 1):
                [other] = list(cluster.worker_nodes)
                cluster.remove_node(other, allow_graceful=False)
            if (event.startswith("a node"), i) == (True, 4):
                cluster.add_node(num_cpus=1)

    monkeypatch.setattr(two, "generate_draws", disturbed)
    assert (sampled(task, two, tmp_path, monkeypatch), held(tmp_path)) == alone


def test_rescore_on_ray_gives_the_numbers_of_one_process(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(store_module, "SMALLEST_SEGMENT", 1)
    for documents in (range(20), range(15, 34)):
        test_blocks.fill(tmp_path, documents)
    one = test_blocks.rescored(tmp_path, capsys)
    monkeypatch.setattr(blocks, "BLOCK", 7)
    assert test_blocks.rescored(tmp_path, capsys, "--ray", "workers=2") == one


def test_rescore_of_a_run_on_ray_gives_its_numbers(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hedge_tasks.runs import parts
    from hedge_tasks.runs.from_store import run_from_store
    from hedge_tasks.runs.run_files import save_run

    test_blocks.fill(tmp_path / "store", range(20))
    stored = run_from_store(tmp_path / "store", None, "rule")
    labelled = tuple(answers.with_label(i % 2) for i, answers in enumerate(stored.answer_sets))
    run = save_run(replace(stored, answer_sets=labelled), tmp_path / "run")
    one = test_blocks.rescored(run, capsys)
    monkeypatch.setattr(parts, "_AT_A_TIME", 6)
    assert test_blocks.rescored(run, capsys, "--ray", "workers=1") == one
