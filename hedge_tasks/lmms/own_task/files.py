"""The files of a task of one's own: YAML and data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.data.pictures import picture_of
from hedge_tasks.data.roles import Roles
from hedge_tasks.data.tables import read_table
from hedge_tasks.errors import ConfigError
from hedge_tasks.evaluation import TEMPLATE
from hedge_tasks.io.files import write_whole
from hedge_tasks.judging.references import references_of
from hedge_tasks.lmms.settings import TEXT_NOISE
from hedge_tasks.measures.forced_options import FORCED_ROWS
from hedge_tasks.perturb import Wording
from hedge_tasks.sampling.prompts import load_prompt

DATA = "data/test.parquet"
SPLIT = "test"

_MADE = "Made by `hedge init`. `include: hedge_tasks` brings sampling, metrics and filters; what is here comes first."
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_WITHIN = ("se_auroc_within", "radflag_auroc_within", "vase_auroc_within")
_METRICS = ("se_auroc", "radflag_auroc", "vase_auroc", "msp_auroc")
_OPTIONS_CLASS = "class: !function hedge_tasks.lmms.own_task.task.OptionTask\n"
_COUNTS = ("hallucination_rate", "unlabelled_rate", "auroc_documents")


@dataclass(frozen=True)
class OwnTask:
    """A task before its files are written.

    Attributes:
        name: of the task.
        prompt: `file/variant`.
        facts: lines on what was taken for what.
    """

    name: str
    roles: Roles
    prompt: str
    facts: tuple[str, ...]


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
    """Return the YAML of the task, as a mapping."""
    roles = task.roles
    optional = {"id": roles.id, "group": roles.group, "question_type": roles.question_type}
    metrics = _metrics(roles)
    return {
        "include": TEMPLATE,
        "task": task.name,
        "dataset_path": "parquet",
        "dataset_kwargs": {"data_files": {SPLIT: DATA}},
        "test_split": SPLIT,
        **({} if roles.image else {"generation_kwargs": {"perturbation": TEXT_NOISE}}),
        **({"metric_list": [{"metric": metric} for metric in metrics]} if metrics else {}),
        "hedge": {
            "prompt": task.prompt,
            "question": roles.question,
            "answer": roles.answer,
            "images": [roles.image] if roles.image else [],
            **{key: column for key, column in optional.items() if column},
            "judge": judge_of(roles),
        },
        "metadata": {"version": 1.0},
    }


def judge_of(roles: Roles) -> str | dict[str, str]:
    """Return the judge: options are read, several references are tried in turn, and without any nobody judges."""
    if roles.answer is None:
        return "none"
    if roles.options:
        return "option"
    return {"name": "any_of", "judge": "rule"} if roles.several else "rule"


def prompt_of(roles: Roles) -> str:
    """Return the prompt that is asked with where the user names none."""
    return "plain/options" if roles.options else "plain/question"


def _metrics(roles: Roles) -> tuple[str, ...]:
    """Return the rows of the table; none where they are the template's."""
    within = _WITHIN if roles.question_type else ()
    forced = (*FORCED_ROWS, "option_entropy_auroc") if roles.options and roles.answer else ()
    return (*_METRICS, *within, *_COUNTS, *forced) if within or forced else ()


def write_yaml(folder: Path, task: OwnTask) -> None:
    """Write the YAML into a folder that is there, with what was taken for what as comments."""
    comments = "".join(f"# {' '.join(line.split())}\n" for line in (_MADE, *task.facts))
    settings = yaml.safe_dump(yaml_of(task), sort_keys=False, allow_unicode=True, width=120)
    reads_options = _OPTIONS_CLASS if task.roles.options and task.roles.answer else ""
    write_whole(folder / f"{task.name}.yaml", comments + settings + reads_options)


def previewed(folder: Path, task: OwnTask, n: int = 3) -> list[tuple[str, str, str]]:
    """Return text, sizes of pictures and reference of the first documents, as the prompt shows what was written.

    Raises:
        HedgeError: they cannot be read.
    """
    roles, prompt, previews = task.roles, load_prompt(task.prompt), []
    for _, row in islice(read_table(folder / DATA).rows(None), n):
        cell = row[roles.image] if roles.image else []
        pictures = [picture_of(p) for p in (cell if isinstance(cell, list) else [cell])]
        reference = " | ".join(references_of(row[roles.answer])) if roles.answer else ""
        sizes = ", ".join(f"{picture.width} x {picture.height}" for picture in pictures)
        previews.append((prompt.text(Wording(str(row[roles.question]))), sizes, reference))
    return previews


def commands(name: str, folder: str) -> list[str]:
    """Return what a user types to run the task and to look at the result."""
    return [
        "lmms-eval --model hedge_hf --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct,dtype=bfloat16 \\",
        f"    --tasks {name} --include_path {folder} --output_path results --log_samples",
        "hedge report results --trust-run --out report.html",
    ]
