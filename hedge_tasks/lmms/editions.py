"""Editions out of tasks' YAML: built as an evaluation builds the task, without its data and without a model."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.evaluation import included_file
from hedge_tasks.judging.config import ENVIRONMENT
from hedge_tasks.lmms.filters import DETECTORS_VARIABLE, FILTERS, FILTERS_VARIABLE, MODEL_VARIABLES
from hedge_tasks.lmms.manifests import file_of
from hedge_tasks.lmms.results import declared_settings
from hedge_tasks.lmms.settings import DocumentSettings
from hedge_tasks.runs.editions import Edition, edition_of
from hedge_tasks.runs.protocols import VARIABLE, protocol_of
from hedge_tasks.runs.trust import read_task
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt

_VARIABLES = (ENVIRONMENT, VARIABLE, FILTERS_VARIABLE, DETECTORS_VARIABLE, *MODEL_VARIABLES.values())


def edition_of_task(task: str) -> Edition:
    """Return the edition of a task by its YAML, whatever the environment says.

    Raises:
        ConfigError: there is no such task, or a setting of it makes no sense.
    """
    file = file_of(task)
    with own_settings():
        return edition_of(task, _settings(read_task(file), _class_of(file)))


def _settings(config: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Settings as a run of the task records them, but for what only its data or its answers tell."""
    documents = DocumentSettings.of_task(config)
    protocol = protocol_of(documents.protocol)
    plan = SamplingPlan.from_generation_kwargs({**protocol.sampling, **(config.get("generation_kwargs") or {})})
    prompt = load_prompt(documents.prompt)
    judge = kind.judge_of(object.__new__(kind), documents, config["task"])
    pipelines = {
        pipeline["name"]: [
            FILTERS[step["function"]](**{key: value for key, value in step.items() if key != "function"})
            for step in pipeline["filter"]
            if step.get("function") in FILTERS
        ]
        for pipeline in protocol.pipelines(config.get("filter_list") or ())[: None if plan.n else 1]
    }
    settings = declared_settings(documents, judge, config.get("dataset_kwargs"), prompt, plan, pipelines)
    return {"metadata": dict(config.get("metadata") or {}), **settings}


@contextmanager
def own_settings() -> Iterator[None]:
    """Leave out what the environment says of judges, models, filters and protocol: an edition is the YAML's."""
    before = {name: os.environ.pop(name) for name in _VARIABLES if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(before)


class _NamesFunctions(yaml.SafeLoader):
    """Reads a YAML with the names of its functions."""


_NamesFunctions.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def _class_of(file: Path) -> Any:
    """Return the class that a task is built as, which its file or one that it includes names."""
    config = yaml.load(file.read_text("utf-8"), Loader=_NamesFunctions) or {}
    if "class" in config:
        module, _, name = str(config["class"]).rpartition(".")
        return getattr(importlib.import_module(module), name)
    return _class_of(Path(included_file(os.path.join(file.parent, config["include"]))))
