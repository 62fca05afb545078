"""Cells of the paper's tables as records and CSV, and what each run rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hedge_tasks.io import tables
from hedge_tasks.paper.cells import CellResult
from hedge_tasks.paper.published import DATASETS, Key, filter_name
from hedge_tasks.runs.run_files import Run

SMALL = 0.02
"""Differences up to here the paper calls "small and potentially within sampling noise" (§5)."""


def as_rows(results: Iterable[CellResult]) -> list[dict[str, Any]]:
    """One flat record a cell."""
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
    """One line a cell; an empty field where there is nothing."""
    rows = as_rows(results)
    return tables.as_csv([list(rows[0]), *(list(row.values()) for row in rows)])


def describe(key: Key, run: Run) -> dict[str, Any]:
    """What the numbers of a run rest on, beside what the paper's rest on."""
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
