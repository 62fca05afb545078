"""The files of a task of one's own: YAML, README, a test, and the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import yaml

from hedge_tasks.data.columns import Roles
from hedge_tasks.errors import ConfigError
from hedge_tasks.evaluation import TEMPLATE
from hedge_tasks.io.files import write_whole

DATA = "data/test.parquet"
SPLIT = "test"

TEXT_NOISE = "neutral_wording"
"""Perturbation of tasks that show nothing."""

_TEMPLATES = Path(__file__).parent / "templates"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_WITHIN = ("se_auroc_within", "radflag_auroc_within", "vase_auroc_within")
_METRICS = ("se_auroc", "radflag_auroc", "vase_auroc")
_COUNTS = ("hallucination_rate", "unlabelled_rate", "auroc_documents")


@dataclass(frozen=True)
class OwnTask:
    """A task before its files are written.

    Attributes:
        name: of the task.
        source: name of the table it was made of.
        prompt: `file/variant`.
        facts: lines on what was taken for what.
        n_documents: rows that are asked.
    """

    name: str
    source: str
    roles: Roles
    prompt: str
    facts: tuple[str, ...]
    n_documents: int


def check_name(name: str) -> None:
    """Refuse what a command line or lmms-eval would take apart.

    Raises:
        ConfigError: it has other characters than letters, digits, `_`, `-` and `.`, or begins with no letter.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a task: it begins with a letter (a to z), and letters, digits, _, - and "
            ". follow"
        )


def yaml_of(task: OwnTask) -> dict[str, Any]:
    """The YAML of the task, as a mapping."""
    roles = task.roles
    optional = {"id": roles.id, "group": roles.group, "question_type": roles.question_type}
    metrics = (*_METRICS, *(_WITHIN if roles.question_type else ()), *_COUNTS)
    return {
        "include": TEMPLATE,
        "task": task.name,
        "dataset_path": "parquet",
        "dataset_kwargs": {"data_files": {SPLIT: DATA}},
        "test_split": SPLIT,
        **({} if roles.images else {"generation_kwargs": {"perturbation": TEXT_NOISE}}),
        **({"metric_list": [{"metric": metric} for metric in metrics]} if roles.question_type else {}),
        "hedge": {
            "prompt": task.prompt,
            "question": roles.question,
            "answer": roles.answer,
            "images": list(roles.images),
            **{key: column for key, column in optional.items() if column},
            "judge": "rule",
        },
        "metadata": {"version": 1.0},
    }


def write_files(folder: Path, task: OwnTask) -> None:
    """Write YAML, README and test into a folder that is there."""
    values = {
        "name": task.name,
        "source": task.source,
        "folder": folder.name,
        "facts": "\n".join(f"- {fact}" for fact in task.facts),
        "n_documents": task.n_documents,
        "test": test_name(task.name),
        "n_images": len(task.roles.images),
        "commands": "\n".join(commands(task.name, task.name)),
    }
    text = yaml.safe_dump(yaml_of(task), sort_keys=False, allow_unicode=True, width=120)
    write_whole(folder / f"{task.name}.yaml", _filled("task.yaml.txt", values) + text)
    write_whole(folder / "README.md", _filled("README.md.txt", values))
    write_whole(folder / test_name(task.name), _filled("test.py.txt", values))


def test_name(name: str) -> str:
    """Name of the test's file, which has to be one of a module."""
    return f"test_{re.sub(r'[^A-Za-z0-9]+', '_', name)}.py"


def commands(name: str, folder: str) -> list[str]:
    """Return what a user types to run the task and to look at the result."""
    return [
        "lmms-eval --model hedge_hf --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct,dtype=bfloat16 \\",
        f"    --tasks {name} --include_path {folder} --output_path results --log_samples",
        "hedge report results --trust-run --out report.html",
    ]


def _filled(template: str, values: Mapping[str, object]) -> str:
    return Template((_TEMPLATES / template).read_text("utf-8")).substitute(values)
