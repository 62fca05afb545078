"""Tables 2, 3, 5, 6 and 7 of the SHALE paper (arXiv 2508.09584), transcribed: every printed number is one cell.

`published/tableN.csv` has a row a model, in the paper's order and without its rows of averages. Spellings that differ
between tables are one here ("InterVL2-8B", "Qwen-VL-7b"). In all 21 rows of Table 5 the generative average is the
number of FFQ again and the overall one the mean of YNQ, MCQ and FFQ; (FFQ + IC) / 2 stands in Table 3 as "Clean". So
the column `generative` of Table 5 is given here as Table 3 has it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

from hedge_tasks.errors import ConfigError, unknown

TABLES = (2, 3, 5, 6, 7)

AVERAGE = "average"
"""Stands for the mean of the paper's models, which Tables 2 and 3 print and the others do not."""

# What makes another model of a name: the 3B of "DeepSeek-VL2-Tiny" is not in the paper.
_SMALLER = ("tiny", "small", "mini", "nano")


@cache
def printed(table: int) -> dict[str, dict[str, float]]:
    """A table as it was printed: model -> column -> number.

    Raises:
        ConfigError: the paper has no such table of results.
    """
    if table not in TABLES:
        raise ConfigError(f"SHALE: table {table}: the numbers of tables 2, 3, 5, 6 and 7 are here")
    text = (resources.files(__package__) / "published" / f"table{table}.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return {row.pop("model"): {name: float(value) for name, value in row.items()} for row in rows}


def models() -> list[str]:
    """The paper's 21 models, in the order of Table 2."""
    return list(printed(2))


def published(table: int, model: str) -> Mapping[str, float]:
    """The numbers of one model, or of `AVERAGE`, by column.

    Raises:
        ConfigError: the paper has no such model; names the nearest one.
    """
    rows = {**printed(table)}
    if table == 5:
        rows = {name: {**row, "generative": printed(3)[name]["clean"]} for name, row in rows.items()}
    if model == AVERAGE:
        return {column: sum(row[column] for row in rows.values()) / len(rows) for column in next(iter(rows.values()))}
    if model not in rows:
        raise unknown("model of the SHALE paper", model, [*rows, AVERAGE])
    return rows[model]


def named_like(model: str) -> str:
    """The paper's model whose name stands in a run's, `AVERAGE` where there is none.

    Example:
        >>> named_like("hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf"), named_like("hedge_tiny")
        ('LLaVA-1.5-7B', 'average')
    """
    given = _letters(model)
    found = [name for name in models() if _stands_in(_letters(name), given)]
    return max(found, key=len, default=AVERAGE)


def _stands_in(name: str, given: str) -> bool:
    _, there, after = given.partition(name)
    return bool(there) and not after.startswith(_SMALLER)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
