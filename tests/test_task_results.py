"""A task from its rows to its numbers, without a command: what is asked, judged, and put into the table."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from requested import FakeModel
from sklearn.metrics import roc_auc_score

from hedge_tasks.data.answers import Answer, Refused
from hedge_tasks.errors import DrawsFailed, HedgeError
from hedge_tasks.lmms.findings import FINDINGS, KEY
from hedge_tasks.lmms.results import TaskResults
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.runs.run_files import load_run
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.requests import DrawRequest

pytestmark = pytest.mark.framework
EXACT = [{"name": "exact", "filter": [{"function": "hedge_score", "backend": "exact"}]}]
N, LIMIT = 4, 30


def answer(draw: DrawRequest) -> Answer:
    """The reference, or with the chance of the document something else."""
    dice, chance = random.Random(draw.draw.seed), random.Random(draw.request.id).choice((0.0, 0.3, 0.9))
    text = f"other {dice.randrange(2)}" if dice.random() < chance else f"Answer: {draw.request.reference}"
    return Answer(text, -0.5, 2)


@cache
def demo_config() -> dict[str, Any]:
    from lmms_eval.utils import load_yaml_config

    from hedge_tasks.lmms.catalogue import task_folder
    from hedge_tasks.lmms.plugin import entry_point

    entry_point()
    return dict(load_yaml_config(str(task_folder() / "hedge_demo" / "hedge_demo.yaml"), mode="full"))


def demo_task(**plan: Any) -> HedgeTask:
    """The demo, with settings on top of its plan."""
    return HedgeTask({**demo_config(), "generation_kwargs": {**demo_config()["generation_kwargs"], **plan}})


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    from hedge_tasks.lmms.catalogue import task_folder

    return pd.read_parquet(task_folder() / "hedge_demo" / "data" / "demo-test.parquet").head(LIMIT)


def evaluated(
    folder: Path | None, refuses: Sequence[str] = (), filters: Any = EXACT, **plan: Any
) -> tuple[HedgeTask, list[dict[str, Any]]]:
    """The task, and the records of its documents that its aggregations get."""
    settings = {"n": N, "probe": False, "perturbation": "none", **plan}
    task = HedgeTask({**demo_config(), "filter_list": filters, "generation_kwargs": settings})
    task.args = SimpleNamespace(model="hedge_x", model_args="api_key=k,model=m", output_path=folder)
    task.build_all_requests(limit=LIMIT, rank=0, world_size=1)
    for instance in task.instances:
        assert (instance.request_type, instance.metadata["split"]) == ("generate_samples", task.config.test_split)
        assert instance.args[1] == {"do_sample": True, "n": 1 + settings["n"] * 2}
    refused = Refused("400: no")
    model = FakeModel(
        lambda draw: refused if draw.request.id in refuses else answer(draw), {"hedge_demo": task.dataset}
    )
    for instance, line in zip(task.instances, generate_samples(model, task.instances), strict=True):
        instance.resps = [line]
    task.apply_filters()
    documents = [task.dataset_no_image[task.config.test_split][instance.doc_id] for instance in task.instances]
    scored = zip(documents, (instance.filtered_resps["exact"] for instance in task.instances), strict=True)
    return task, [task.process_results(row, [result]) for row, result in scored]


def cell(task: HedgeTask, records: list[dict[str, Any]], name: str) -> Any:
    return task.aggregation()[name]([record[name] for record in records if name in record])


def test_the_rows_of_the_table_are_counted_by_hand(rows: pd.DataFrame, tmp_path: Path) -> None:
    task, records = evaluated(tmp_path)
    asked = [instance.args[2] for instance in task.instances]
    for field, column in {"id": "question_id", "group": "image_id", "question_type": "question_type"}.items():
        assert [getattr(one, field) for one in asked] == rows[column].tolist()
    assert [(one.question, one.reference) for one in asked] == list(zip(rows["question"], rows["answer"], strict=True))
    assert {one.model for one in asked} == {"hedge_x|model=m"}
    run = load_run(tmp_path)
    assert [a.id for a in run.answer_sets] == rows["question_id"].tolist()
    said = [[text.removeprefix("Answer: ") for text in a.texts] for a in run.answer_sets]
    wrong = np.array([texts[0] != answer for texts, answer in zip(said, rows["answer"], strict=True)])
    known = ~wrong | ~rows["question_type"].isin(["presence", "count"]).to_numpy()  # "other 1" answers no such question
    assert 0 < wrong[known].sum() < known.sum() < LIMIT
    assert [a.label for a in run.answer_sets] == [int(w) if k else None for w, k in zip(wrong, known, strict=True)]
    assert not any("Answer:" in text for a in run.answer_sets for text in a.texts), "as the evaluation reads it"
    counts = [np.unique(texts[1 : 1 + N], return_counts=True)[1] / N for texts in said]
    entropies = np.array([-(shares * np.log(shares)).sum() for shares in counts]).round(9)
    assert cell(task, records, "hallucination_rate") == pytest.approx(wrong[known].mean())
    assert cell(task, records, "unlabelled_rate") == pytest.approx(1 - known.mean())
    assert cell(task, records, "se_auroc") == pytest.approx(roc_auc_score(wrong[known], entropies[known]))
    assert "failed_rate" not in records[0]
    outcome = task.dump_config()["hedge"]["outcome"]
    assert outcome["zero_entropy"] == {"exact": pytest.approx(np.mean([len(shares) == 1 for shares in counts]))}
    assert run.settings["filters"]["exact"]["backend"] == "exact"
    assert run.settings["sampling"]["n"] == N
    assert "api_key" not in json.dumps(task.dump_config(), default=str)
    table = FINDINGS.under("table", {"groups": {}}, "results")
    assert table == "table", "where there are groups, their table comes last"
    assert "hedge_demo" in FINDINGS.under("table", {}, "groups")
    assert FINDINGS.under("table", {}, "groups") == "table", "once"
    results: dict[str, Any] = {"results": {"hedge_demo": {}}}
    FINDINGS.add_to(results)
    areas = {row["detector"]: row["value"] for row in results[KEY]["hedge_demo"]["roc_auc"]}
    assert areas["se"] == cell(task, records, "se_auroc")


def test_documents_that_fail_are_counted_and_end_the_run_where_they_are_too_many(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    lost = rows["question_id"].tolist()[3:5]
    task, records = evaluated(tmp_path, lost, max_failed=2)
    assert [record["failed_rate"]["value"] for record in records] == [int(i in (3, 4)) for i in range(LIMIT)]
    assert [*records[3]] == ["failed_rate"]
    assert cell(task, records, "failed_rate") == pytest.approx(2 / LIMIT)
    assert [entry["id"] for entry in task.dump_config()["hedge"]["outcome"]["failed"]] == lost
    assert len(load_run(tmp_path).answer_sets) == LIMIT - 2
    other: Any = SimpleNamespace(plan=task.plan.replaced(max_failed=1), config=task.config, _instances=task._instances)
    with pytest.raises(DrawsFailed, match=f"2 of {LIMIT} documents failed, more than max_failed=1"):
        TaskResults._note_sampling(other, [i.filtered_resps["exact"] for i in task.instances[3:5]])


def test_what_is_kept_nowhere_is_said_and_one_answer_has_no_rows_about_samples(said: list[str]) -> None:
    missing = {"function": "hedge_score", "backend": "nli", "model": "nobody/has-it"}
    _, records = evaluated(None, filters=[{"name": "exact", "filter": [missing]}], n=0)  # nobody misses it
    assert any("nothing will be kept" in line for line in said)
    assert {name for name in records[0] if "auroc" in name} == {"msp_auroc", "auroc_documents"}


def test_a_wrong_yaml_is_explained() -> None:
    step = {"function": "hedge_score", "backend": "embed", "treshold": 1}
    for wrong, words in (
        ({"hedge": {"prompt": "plain/question", "imags": ["image"]}}, "'imags', did you mean 'images'"),
        ({"hedge": {"prompt": "plain/question", "answer": "reply"}}, "no column reply; there are"),
        ({"metric_list": [{"metric": "se_aurok"}]}, "'se_aurok', did you mean 'se_auroc'"),
        ({"filter_list": [{"name": "x", "filter": [step]}]}, "'treshold', did you mean 'threshold'"),
    ):
        with pytest.raises(HedgeError, match=words):
            HedgeTask({**demo_config(), **wrong})
