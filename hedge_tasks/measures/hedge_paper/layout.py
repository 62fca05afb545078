"""Cells of the paper's tables as records and CSV, as rows laid out like the paper's, and what each run rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.io import tables
from hedge_tasks.measures.hedge_paper.cells import CellResult
from hedge_tasks.measures.hedge_paper.published import (
    DATASETS,
    FILTERS,
    MODELS,
    PROMPTS,
    SCORES,
    TABLE_2_N,
    Key,
    PublishedNumber,
    filter_name,
)
from hedge_tasks.runs.run_files import Run

SMALL = 0.02
"""Differences up to here the paper calls "small and potentially within sampling noise" (§5)."""


def as_rows(results: Iterable[CellResult]) -> list[dict[str, Any]]:
    """Return one flat record a cell."""
    return [
        {
            **result.cell._asdict(),
            "filter": filter_name(result.cell),
            "ours": result.ours,
            "stderr": result.estimate.stderr if result.estimate else None,
            "paper": result.published,
            "difference": result.difference,
            "n_used": result.n,
            "n_documents": result.estimate.n if result.estimate else None,
            "reason": result.reason,
        }
        for result in results
    ]


def as_csv(results: Sequence[CellResult]) -> str:
    """Return one line a cell; an empty field where there is nothing."""
    rows = as_rows(results)
    return tables.as_csv([list(rows[0]), *(list(row.values()) for row in rows)])


def describe(key: Key, run: Run) -> dict[str, Any]:
    """Return what the numbers of a run rest on, beside what the paper's rest on."""
    judge = (run.settings.get("documents") or {}).get("judge") or {}
    return {
        **key._asdict(),
        "task": run.task,
        "answered_by": run.model,
        "questions": len(run.answer_sets),
        "paper_questions": DATASETS[key.dataset],
        "labelled": sum(answer_set.label is not None for answer_set in run.answer_sets),
        "hallucinated": sum(answer_set.label == 1 for answer_set in run.answer_sets),
        "n": min((len(answer_set.clean) for answer_set in run.answer_sets), default=0),
        "judge": judge.get("judge") or judge.get("name") or "unknown",
        "run": str(run.path),
    }


Values = Mapping[PublishedNumber, float | None]
"""A number for every cell of a table: the paper's, or ours; None where there is none."""

MEAN = "mean"


@dataclass(frozen=True)
class PaperRow:
    """A row of a table as the paper prints it.

    Attributes:
        prompt, score: of the row; the prompt is `MEAN` for means over the prompts.
        values: one a column.
        best: positions of the largest values among those that are compared: in Table 2 the two clusterings of a model
            and input, in Table 3 all numbers of answers. Ties are all best.
        top: positions of the largest value of the row.
    """

    prompt: str
    score: str
    values: tuple[float | None, ...]
    best: frozenset[int]
    top: frozenset[int]


def columns_of_table_2() -> list[tuple[str, str, str]]:
    """(input, model, clustering) of each column, in the paper's order; the last of each input are means over models."""
    inputs = dict.fromkeys(column_input for column_input, _ in FILTERS)
    return [
        (column_input, model, clustering)
        for column_input in inputs
        for model in (*MODELS, MEAN)
        for clustering in ("NLI", "Embed")
    ]


def rows_of_table_2(values: Values, dataset: str) -> list[PaperRow]:
    """Return rows of one half of Table 2, and means over the prompts; a mean needs all that it is over."""
    columns = columns_of_table_2()

    def value(prompt: str, score: str, column: tuple[str, str, str]) -> float | None:
        inputs, model, clustering = column
        models = MODELS if model == MEAN else (model,)
        cells = (PublishedNumber(2, dataset, prompt, name, score, inputs, clustering, TABLE_2_N) for name in models)
        return _mean([values.get(cell) for cell in cells])

    pairs = [(i, i + 1) for i in range(0, len(columns), 2)]
    singles = [i for i, (_, model, _) in enumerate(columns) if model != MEAN]
    return _rows([lambda p, s, c=column: value(p, s, c) for column in columns], pairs, singles)


def rows_of_table_3(values: Values, clustering: str, sizes: Sequence[int]) -> list[PaperRow]:
    """Return rows of one half of Table 3, and means over the prompts."""

    def value(prompt: str, score: str, n: int) -> float | None:
        return values.get(PublishedNumber(3, "VQA-RAD", prompt, "Qwen2.5-VL", score, "AO", clustering, n))

    every = list(range(len(sizes)))
    return _rows([lambda p, s, n=n: value(p, s, n) for n in sizes], [every], every)


def _rows(columns: Sequence[Any], groups: Iterable[Sequence[int]], all_of: Sequence[int]) -> list[PaperRow]:
    rows = []
    groups = list(groups)
    for prompt in (*PROMPTS, MEAN):
        for score in SCORES:
            prompts = PROMPTS if prompt == MEAN else (prompt,)
            values = tuple(_mean([column(name, score) for name in prompts]) for column in columns)
            best = frozenset(i for group in groups for i in _largest(values, group))
            rows.append(PaperRow(prompt, score, values, best, _largest(values, all_of)))
    return rows


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return sum(defined) / len(defined) if defined and len(defined) == len(values) else None


def _largest(values: Sequence[float | None], among: Sequence[int]) -> frozenset[int]:
    """Return where the largest of the values is, if there are two to compare."""
    defined = {i: value for i in among if (value := values[i]) is not None}
    return frozenset(i for i, value in defined.items() if len(defined) > 1 and value == max(defined.values()))
