"""Tables 1, 3 and 4 to 6 of the VOPE paper (arXiv 2511.13420), transcribed: every printed number is one cell.

`paper/table1.csv` and `paper/table3.csv` (methods of mitigation, LLaVA1.5 with greedy decoding) have Hal-D, Hal-I and
Exp in per cent, `paper/relevance.csv` numbers of objects by relevance score. That Tables 4, 5 and 6 are captioning,
reasoning and writing, which the paper leaves open, follows from Table 1: only so do numbers and shares agree, and they
do for all models and tasks.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from hedge_tasks.errors import unknown
from hedge_tasks.measures.published import Published

TASKS = ("captioning", "reasoning", "writing")
NAMES = ("hal_d", "hal_i", "exp")
MITIGATED = "LLaVA1.5"
"""The model of Table 3."""

KINDS = ("hallucinated", "imagined")


@cache
def shares() -> dict[str, dict[tuple[str, str], float]]:
    """Table 1: model -> (task, "hal_d", "hal_i" or "exp") -> share in [0, 1]."""
    return _shares("table1.csv", "model")


@cache
def mitigated() -> dict[str, dict[tuple[str, str], float]]:
    """Table 3, of LLaVA1.5: method -> (task, "hal_d", "hal_i" or "exp") -> share in [0, 1]; "greedy" is without any."""
    return _shares("table3.csv", "method")


def _shares(file: str, name_column: str) -> dict[str, dict[tuple[str, str], float]]:
    table: dict[str, dict[tuple[str, str], float]] = {}
    for row in _rows(file):
        name = row.pop(name_column)
        places = {key: key.split("/") for key in row}
        table[name] = {(task, measure): float(row[key]) / 100 for key, (task, measure) in places.items()}
    return table


@cache
def relevance() -> dict[str, dict[tuple[str, str], tuple[int, ...]]]:
    """Tables 4 to 6: model -> (task, kind) -> numbers of objects with score 1, 2 and 3."""
    table: dict[str, dict[tuple[str, str], tuple[int, ...]]] = {}
    for row in _rows("relevance.csv"):
        counts = tuple(int(row[f"score_{score}"]) for score in (1, 2, 3))
        table.setdefault(row["model"], {})[row["task"], row["kind"]] = counts
    return table


def published_of(model: str | None, task: str | None) -> dict[str, Published]:
    """Everything printed of a model in a task, by the name of our measure; empty where one is not the paper's."""
    if model is None or task is None:
        return {}
    values = {name: ("Table 1", value) for (of_task, name), value in shares()[model].items() if of_task == task}
    for (of_task, kind), counts in relevance()[model].items():
        if of_task == task:
            values |= {f"relevance_{kind}_{i}": ("Tables 4 to 6", float(n)) for i, n in enumerate(counts, 1)}
    return {name: Published(table, model, task, name, value) for name, (table, value) in values.items()}


def published_with(method: str, model: str | None, task: str | None) -> dict[str, Published]:
    """The same of a model with a method of mitigation; empty where one is not Table 3's."""
    if model != MITIGATED or task is None or method not in mitigated():
        return {}
    values = {name: value for (of_task, name), value in mitigated()[method].items() if of_task == task}
    return {name: Published("Table 3", model, task, name, value) for name, value in values.items()}


def models() -> list[str]:
    """The paper's eight models, in the order of Table 1."""
    return list(shares())


def check_model(model: str) -> str:
    """The name itself.

    Raises:
        ConfigError: the paper has no such model; names the nearest one.
    """
    if model not in shares():
        raise unknown("model of the VOPE paper", model, models())
    return model


def task_of(name: str) -> str | None:
    """The paper's task that a task of ours is.

    Example:
        >>> task_of("hedge_vope_official_writing"), task_of("hedge_vope_captioning_relevance"), task_of("mine")
        ('writing', 'captioning', None)
    """
    return next((task for task in TASKS if name.startswith("hedge_vope") and task in name.split("_")), None)


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files(__package__) / "paper" / name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))
