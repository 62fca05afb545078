"""Tables 2, 3, 5, 6 and 7 of the SHALE paper (arXiv 2508.09584), transcribed: every printed number is a row.

`published.csv` has the models in the order of each table, without its rows of averages. Spellings that differ between
tables are one here ("InterVL2-8B", "Qwen-VL-7b"). In all 21 rows of Table 5 the generative average is the number of FFQ
again and the overall one the mean of YNQ, MCQ and FFQ; (FFQ + IC) / 2 stands in Table 3 as "Clean". So the column
`generative` of Table 5 is given by `published` as Table 3 has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.measures.published import Published, read_published

TABLES = (2, 3, 5, 6, 7)

AVERAGE = "average"
"""Stands for the mean of the paper's models, which Tables 2 and 3 print and the others do not."""


@cache
def printed(table: int) -> dict[str, dict[str, float]]:
    """Return a table as it was printed: model -> column -> number.

    Raises:
        ConfigError: the paper has no such table of results.
    """
    if table not in TABLES:
        raise ConfigError(f"SHALE: table {table}: the numbers of tables 2, 3, 5, 6 and 7 are here")
    rows: dict[str, dict[str, float]] = {}
    for entry in read_published(__package__):
        if entry.table == f"Table {table}":
            rows.setdefault(entry.model, {})[entry.measure] = entry.value
    return rows


def models() -> list[str]:
    """Return the paper's 21 models, in the order of Table 2."""
    return list(printed(2))


def published(table: int, model: str) -> Mapping[str, Published]:
    """Return the numbers of one model, or of `AVERAGE`, by column.

    Raises:
        ConfigError: the paper has no such model; names the nearest one.
    """
    rows = {**printed(table)}
    if table == 5:
        rows = {name: {**row, "generative": printed(3)[name]["clean"]} for name, row in rows.items()}
    if model == AVERAGE:
        mean = {column: sum(row[column] for row in rows.values()) / len(rows) for column in next(iter(rows.values()))}
        rows[AVERAGE] = mean
    if model not in rows:
        raise unknown("model of the SHALE paper", model, [*rows, AVERAGE])
    return {column: Published(f"Table {table}", model, "", column, value) for column, value in rows[model].items()}
