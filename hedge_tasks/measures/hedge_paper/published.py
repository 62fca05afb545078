"""Tables 2 and 3 of the HEDGE paper (Gautam, Riegler, Halvorsen), transcribed: every printed number is one cell.

Table 3 does not say whether the question was put in front of the answers. Its column n = 10 is Table 2's answer-only
half, rounded, in all 24 rows, so that is what it is filed under.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

from hedge_tasks.errors import ConfigError

TABLES = (2, 3)

DATASETS = {"VQA-RAD": 451, "KvasirVQA-x1": 500}
"""Number of questions the paper asks of each (§4.7.3)."""

PROMPTS = ("minimal-label", "clinical-phrase", "default", "one-sentence")
MODELS = ("LLaVA-Med", "Med-Gemma", "Qwen2.5-VL")

SCORES = {"SE": "se", "RadFlag": "radflag", "VASE": "vase"}
"""The paper's name of each score, and ours."""

FILTERS = {("A+Q", "NLI"): "nli_qa", ("A+Q", "Embed"): "embed_qa", ("AO", "NLI"): "nli", ("AO", "Embed"): "embed"}
"""The paper's four columns (input, clustering), and the filters of our tasks."""

TABLE_2_N = 10


class Key(NamedTuple):
    """The questions of one run: a data set, asked with one prompt variant, of one model."""

    dataset: str
    prompt: str
    model: str


class PublishedNumber(NamedTuple):
    """Where a number stands in the paper.

    Attributes:
        table: 2 or 3.
        dataset, prompt, model: as in the paper; see `DATASETS`, `PROMPTS`, `MODELS`.
        score: "SE", "RadFlag" or "VASE".
        inputs: what is clustered: "A+Q" (question and answer) or "AO" (answer only).
        clustering: "NLI" or "Embed".
        n: clean and noisy answers each.
    """

    table: int
    dataset: str
    prompt: str
    model: str
    score: str
    inputs: str
    clustering: str
    n: int

    @property
    def key(self) -> Key:
        return Key(self.dataset, self.prompt, self.model)


def filter_name(cell: PublishedNumber) -> str:
    """Return the filter of our tasks that a cell's column is: nli, embed, nli_qa or embed_qa."""
    return FILTERS[cell.inputs, cell.clustering]


@cache
def published(table: int) -> dict[PublishedNumber, float]:
    """Every number of a table, in the paper's order: 288 in Table 2 (three decimals), 336 in Table 3 (two decimals).

    Raises:
        ConfigError: the paper has no such table of numbers.
    """
    if table not in TABLES:
        raise ConfigError(f"table {table}: the numbers of tables 2 and 3 are here")
    read = _read_table_2 if table == 2 else _read_table_3
    text = (resources.files("hedge_tasks.measures.hedge_paper") / f"table{table}.csv").read_text("utf-8")
    return read(list(csv.DictReader(text.splitlines())))


def published_cells(table: int) -> list[PublishedNumber]:
    """Return the cells of a table, in the paper's order."""
    return list(published(table))


def _read_table_2(rows: list[dict[str, str]]) -> dict[PublishedNumber, float]:
    cells = {}
    for row in rows:
        place = (row.pop("dataset"), row.pop("prompt"), row.pop("score"))
        for column, value in row.items():
            inputs, model, clustering = column.split("/")
            dataset, prompt, score = place
            cells[PublishedNumber(2, dataset, prompt, model, score, inputs, clustering, TABLE_2_N)] = float(value)
    return cells


def _read_table_3(rows: list[dict[str, str]]) -> dict[PublishedNumber, float]:
    cells = {}
    for row in rows:
        clustering, prompt, score = row.pop("clustering"), row.pop("prompt"), row.pop("score")
        for n, value in row.items():
            cells[PublishedNumber(3, "VQA-RAD", prompt, "Qwen2.5-VL", score, "AO", clustering, int(n))] = float(value)
    return cells
