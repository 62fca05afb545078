"""An entry in the formats of others: metadata of a model card on the Hub, lmms-eval's results file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.detectors.registry import names
from hedge_tasks.leaderboard.board import stated_auroc, suite_titles
from hedge_tasks.leaderboard.stated import number_in
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import Number
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.trust import installed_tasks

TASK_TYPE = "visual-question-answering"
"""On the Hub."""

_RATE = HALLUCINATION_RATE.name


@dataclass(frozen=True)
class _Number:
    """Attributes: row: as lmms-eval's table calls it; kind: as the Hub calls the metric; filter: clustering."""

    row: str
    kind: str
    title: str
    filter: str
    estimate: Number | Number
    higher_is_better: bool
    verified: bool


def as_model_index(submission: Mapping[str, Any], findings: ValidationFindings) -> str:
    """The `model-index` of a model card, between its dashes: to be put at the head of the model's README.md.

    Read by `huggingface_hub.ModelCard`. An undefined number is left out; whether a number is verified by this package
    is said in its `args`, and not in the Hub's own field of this name.
    """
    import yaml

    entry, settings = submission["entry"], submission["settings"]
    task = entry["task"]
    config = next((c for c in installed_tasks() if c.get("task") == task), {})
    recorded = settings.get("documents")
    revision = recorded.get("revision") if isinstance(recorded, Mapping) else None
    dataset = {
        "name": task,
        "type": config.get("dataset_path") or task,
        "config": config.get("dataset_name"),
        "split": config.get("test_split"),
        "revision": revision if isinstance(revision, str) else None,
    }
    metrics = [_metric(number) for number in _numbers(submission, findings) if number.estimate.value is not None]
    result = {
        "task": {"type": TASK_TYPE, "name": task},
        "dataset": {key: value for key, value in dataset.items() if value},
        "metrics": metrics,
        **({"source": {"name": "HEDGE leaderboard entry", "url": entry["url"]}} if "url" in entry else {}),
    }
    index = {"model-index": [{"name": entry["name"], "results": [result]}]}
    text: str = yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=120)
    return f"---\n{text}---\n"


def as_lmms_eval(submission: Mapping[str, Any], findings: ValidationFindings) -> str:
    """A results file as lmms-eval writes it, for tools that read those; `hedge report` is one."""
    entry, settings = submission["entry"], submission["settings"]
    task, model = entry["task"], entry["model"]
    table: dict[str, Any] = {"alias": task}
    better = {}
    for number in _numbers(submission, findings):
        value, stderr = number.estimate.value, number.estimate.stderr
        table[f"{number.row},{number.filter}"] = f"undefined: {number.estimate.reason}" if value is None else value
        table[f"{number.row}_stderr,{number.filter}"] = "N/A" if stderr is None else stderr
        better[number.row] = number.higher_is_better
    metadata = settings.get("metadata")
    version = metadata.get("version") if isinstance(metadata, Mapping) else None
    coverage, n = findings.coverage, submission["summary"]["documents"]
    adapter, _, arguments = model.partition("|")
    results = {
        "results": {task: table},
        "group_subtasks": {task: []},
        "configs": {task: {"task": task, "metadata": metadata, "hedge": settings}},
        "versions": {task: version},
        "n-shot": {task: 0},
        "higher_is_better": {task: better},
        "n-samples": {task: {"original": (coverage.of if coverage else None) or n, "effective": n}},
        "config": {"model": adapter, "model_args": arguments, "batch_size": None, "limit": None},
        "lmms_eval_version": submission["versions"].get("lmms-eval"),
        "transformers_version": submission["versions"].get("transformers"),
        "date": entry["created"],
        "task_hashes": {},
        "model_source": adapter,
        "model_name": model,
        "model_name_sanitized": re.sub(r"[\"<>:/|\\?*\[\]]+", "__", model),
    }
    return json.dumps(results, indent=2, ensure_ascii=False) + "\n"


def _numbers(submission: Mapping[str, Any], findings: ValidationFindings) -> Iterator[_Number]:
    """All numbers of an entry, under every clustering as in lmms-eval's table."""
    summary, labels = submission["summary"], findings.labels.verified
    counts = {"n": summary["labelled"], "n_positive": summary["hallucinated"]}
    rate = Number(summary[_RATE], **counts, reason="no document has a label")
    titles = suite_titles([submission])
    for clustering, clustering_record in submission["clusterings"].items():
        for name, (title, higher, _) in titles.items():
            number = number_in(submission["suite"][name])
            yield _Number(name, name, title, clustering, number, higher, findings.suite[name].verified)
        yield _Number(_RATE, _RATE, HALLUCINATION_RATE.title, clustering, rate, False, labels)
        for detector, record in clustering_record["detectors"].items():
            called = name_of(detector) if detector in names() else clean(record["title"], 100)
            parts = [findings.labels, *(part for _, part in findings.rests_on(clustering, detector))]
            yield _Number(
                f"{detector}_auroc",
                "roc_auc",
                f"ROC-AUC of {called} ({clustering})",
                clustering,
                stated_auroc(submission, clustering, detector),
                True,
                all(part.verified for part in parts),
            )


def _metric(number: _Number) -> dict[str, Any]:
    estimate = number.estimate
    interval = {"low": estimate.interval[0], "high": estimate.interval[1]} if estimate.interval else {}
    checked = "recomputed" if number.verified else "self-reported"
    return {
        "type": number.kind,
        "name": number.title,
        "value": estimate.value,
        "args": {"filter": number.filter, "n": estimate.n, **interval, "checked": checked},
    }
