"""One test for each thing we believe of lmms-eval, so that a new release breaks the one with the right name."""

from __future__ import annotations

import inspect
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evaluation import prepare
from fork_server import AFTER_ENTRY_POINT
from once import SHARED, python

pytestmark = pytest.mark.framework


@pytest.fixture(scope="module")
def tasks() -> Any:
    prepare()
    import lmms_eval.models
    import lmms_eval.tasks

    return lmms_eval.tasks


def test_the_registry_loads_the_entry_point(tasks: Any) -> None:
    from lmms_eval.models import list_available_models

    assert {"hedge_hf", "hedge_tiny"} <= set(list_available_models())


@pytest.mark.slow
def test_a_task_manager_finds_our_tasks_without_being_told(tasks: Any) -> None:
    manager = tasks.TaskManager()
    assert {"hedge_demo", "hedge_vqarad", "pope"} <= set(manager.all_tasks)
    assert manager.task_index["hedge_vqarad"]["type"] == "python_task"
    assert not [name for name in manager.all_tasks if "template" in name]


@pytest.mark.slow
def test_a_users_own_folder_wins(tasks: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("task: hedge_vqarad\ndataset_path: mine\n")
    manager = tasks.TaskManager(include_path=str(tmp_path), include_defaults=False)
    assert manager.task_index["hedge_vqarad"]["yaml_path"] == str(tmp_path / "mine.yaml")


def test_installing_twice_changes_nothing(tasks: Any) -> None:
    from lmms_eval import evaluator_utils
    from lmms_eval.api.model import lmms
    from lmms_eval.filters import FILTER_REGISTRY

    from hedge_tasks.lmms import plugin

    def state() -> tuple:
        return (
            tasks.TaskManager.initialize_tasks,
            lmms.generate_samples,
            evaluator_utils.stderr_for_metric,
            FILTER_REGISTRY["hedge_score"],
        )

    before = state()
    assert plugin.install() == []
    assert state() == before


def test_the_table_has_the_main_rows_and_no_two_alike(tasks: Any) -> None:
    from lmms_eval.__main__ import make_table  # what the command line prints with

    filters = {"nli": {}, "embed": {}, "nli_qa": {"with_question": True}}
    rates = {f"{name},{f}": 0.25 for name in ("hallucination_rate", "unlabelled_rate") for f in filters}
    areas = {
        f"{d}_auroc{w},{f}": 0.7 + i / 10
        for d in ("se", "vase")
        for w in ("", "_within")
        for i, f in enumerate(filters)
    }
    free = {f"msp_auroc,{f}": 0.6 for f in filters}
    config = {"hedge": {"filters": filters, "documents": {"evaluation": None}}}
    cells = {"alias": "a", **rates, **areas, **free, "acc,none": 1.0}
    results = {
        "results": {"a": cells, "b": {"alias": "b", "acc,none": 0.5}},
        "configs": {"a": config, "b": {}},
        "n-shot": {},
    }

    def rows() -> list[list[str]]:  # below them the findings of evaluations before may stand
        lines = [line for line in make_table(results).splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]

    short = rows()
    assert sorted((row[4], row[2]) for row in short if row[1] == "a") == [
        *(("acc", "none"), ("hallucination_rate", "nli"), ("msp_auroc", "nli")),
        *(("se_auroc", "embed"), ("se_auroc", "nli"), ("vase_auroc", "embed"), ("vase_auroc", "nli")),
    ]
    assert [row[4] for row in short if row[1] == "b"] == ["acc"]
    assert cells["alias"] == "a"  # what is written stays as it is


def test_an_unknown_release_warns_and_goes_on(tasks: Any, monkeypatch: pytest.MonkeyPatch, warnings: list[str]) -> None:
    from hedge_tasks.lmms import plugin

    def gone() -> None:
        raise ImportError("no module named lmms_eval.tasks")

    monkeypatch.setattr(plugin, "version", lambda name: "9.9")
    monkeypatch.setattr(plugin, "_ADDITIONS", (gone, plugin.add_request_type))
    assert plugin.install() == ["gone"]
    assert len(warnings) == 2
    assert "this is 9.9" in warnings[0]
    assert "gone does not work with lmms-eval 9.9" in warnings[1]


@pytest.mark.slow
def test_loading_the_entry_point_imports_no_heavy_room() -> None:
    """As the fork server did, in a fresh process, before it imported anything else."""
    subprocess.run([python(), "-c", ""], check=True)
    loaded = set(Path(os.environ[SHARED], AFTER_ENTRY_POINT).read_text().splitlines())
    assert {"lmms_eval.models", "hedge_tasks.lmms.plugin"} <= loaded
    heavy = {"hedge_tasks.lmms.task", "hedge_tasks.lmms.stock.loading", "hedge_tasks.lmms.stock.task"}
    heavy |= {"hedge_tasks.clustering", "hedge_tasks.perturb", "hedge_tasks.judging"}
    heavy |= {"hedge_tasks.models.hedge_hf", "albumentations"}
    assert not heavy & loaded


def test_a_task_config_refuses_unknown_keys(tasks: Any) -> None:
    from lmms_eval.api.task import TaskConfig

    with pytest.raises(TypeError, match="class"):
        TaskConfig(**{"task": "x", "class": object})


def test_a_json_answer_set_passes_through_unchanged(tasks: Any) -> None:
    from lmms_eval.api.instance import unwrap_generation_output

    assert unwrap_generation_output('{"id": "q"}') == ('{"id": "q"}', None)


def test_our_request_is_not_kept_by_the_response_cache(tasks: Any) -> None:
    from lmms_eval.caching.response_cache import extract_gen_kwargs, is_deterministic

    instance = SimpleNamespace(args=("text", {"do_sample": True, "n": 3}, object(), 0, "task", "test"))
    assert not is_deterministic("generate_samples", extract_gen_kwargs(instance))


def test_an_aggregation_may_bring_its_standard_error(tasks: Any) -> None:
    from lmms_eval import evaluator_utils

    from hedge_tasks.lmms.rows import Aggregation
    from hedge_tasks.measures.standard_measures import detector_auroc

    metric = Aggregation(detector_auroc("se"))
    assert evaluator_utils.stderr_for_metric(metric, 100) == metric.stderr
    assert evaluator_utils.stderr_for_metric(metric, 0) is None


def test_a_stock_aggregation_keeps_its_standard_error_behind_our_name(tasks: Any) -> None:
    from lmms_eval import evaluator_utils
    from lmms_eval.api.metrics import mean

    from hedge_tasks.lmms.stock.scoring import StockScoring

    guarded = StockScoring(SimpleNamespace(_filters=())).guarded(mean, "hedge:x, acc")
    assert evaluator_utils.stderr_for_metric(guarded, 100)([0.0, 1.0]) == pytest.approx(0.5)


def test_names_of_tasks_pass_through_three_methods(tasks: Any) -> None:
    """What `hedge:TASK` wraps: by these signatures lmms-eval calls them, and by these the wrappers do."""
    found = {
        name: list(inspect.signature(inspect.unwrap(getattr(tasks.TaskManager, name))).parameters)
        for name in ("match_tasks", "load_task_or_group", "_load_individual_task_or_group")
    }
    assert found == {
        "match_tasks": ["self", "task_list"],
        "load_task_or_group": ["self", "task_list", "task_type"],
        "_load_individual_task_or_group": ["self", "name_or_config", "task_type", "parent_name", "update_config"],
    }
    assert tasks.TaskManager.match_tasks.hedge_tasks


def test_the_retries_of_process_results_can_be_left_out(tasks: Any) -> None:
    from lmms_eval.api.task import ConfigurableTask

    assert ConfigurableTask.process_results.__wrapped__.__name__ == "process_results"
