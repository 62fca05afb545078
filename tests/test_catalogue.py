"""`hedge list`: tasks and their variants, told apart."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import yaml

from hedge_tasks.lmms.catalogue import CATALOGUE, PACKAGE, list_tasks, task_folder
from hedge_tasks.lmms.rows import measures_for
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.runs.trust import read_task
from hedge_tasks.sampling.prompts import load_prompt

OURS = [task for task in list_tasks() if task_folder() in Path(task.yaml).parents]


def test_every_task_says_what_sets_it_apart() -> None:
    assert [task.task for task in OURS if not (task.about and task.licence and task.data)] == []
    texts = Counter((Path(task.yaml).parent, task.about) for task in OURS)
    assert {about for (_, about), n in texts.items() if n > 1} <= {"demo with scripted answers"}


def test_catalogues_name_only_tasks_that_exist() -> None:
    names = {task.task for task in OURS}
    for path in task_folder().glob(f"*/{CATALOGUE}"):
        catalogue = json.loads(path.read_text("utf-8"))
        assert {*catalogue["tasks"], *catalogue["variants"]} <= names


def test_data_of_the_package_are_those_that_need_no_network() -> None:
    for task in OURS:
        if not task.group:
            config = Path(task.yaml).read_text("utf-8")
            assert ("dataset_path: package://" in config) == (task.data == PACKAGE), task.task


def test_a_task_shows_its_filters_and_metrics_within_one_hop() -> None:
    for task in OURS:
        text = Path(task.yaml).read_text("utf-8")
        for include in re.findall(r"^include: (\S+)$", text, re.MULTILINE):
            text += (Path(task.yaml).parent / include).read_text("utf-8")
        shown = [key for key in ("metric_list", "filter_list") if f"\n{key}:" in text]
        assert task.group or len(shown) == 2, (task.task, shown)


def test_every_task_lists_prompts_and_measures_that_there_are() -> None:
    for task in OURS:
        config = read_task(Path(task.yaml))
        if not task.group:
            settings = DocumentSettings.of_task(config)
            assert {m["metric"] for m in config["metric_list"]} <= measures_for(settings.evaluation).keys(), task.task
            assert load_prompt(settings.prompt).user, task.task


def test_a_group_has_the_documents_of_its_members() -> None:
    tasks = {task.task: task for task in OURS}
    group = tasks["hedge_medvqa"]
    members = yaml.safe_load(Path(group.yaml).read_text("utf-8"))["task"]
    assert group.documents == sum(tasks[name].documents or 0 for name in members) == 4 * (451 + 500)
    assert (tasks["hedge_medhallu"].modality, group.modality) == ("text", "image")
