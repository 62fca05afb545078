"""Shared by the evaluations: parts of paper tables out of finished runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.measures.measure import Measure, by_name
from hedge_tasks.measures.paper_tables import ModelNumbers
from hedge_tasks.measures.published import Published
from hedge_tasks.runs.run_files import Run


def judge_settings(run: Run) -> Mapping[str, Any]:
    """Return the settings of a run's judge, as its file has them; empty where it has none."""
    documents = run.settings.get("documents")
    judge = documents.get("judge") if isinstance(documents, Mapping) else None
    return judge if isinstance(judge, Mapping) else {}


def select(measures: Iterable[Measure], names: Iterable[str]) -> list[Measure]:
    """Return the measures of these names, in this order."""
    known = by_name(measures)
    return [known[name] for name in names]


def with_published(
    numbers: ModelNumbers, published: Sequence[Published], model: str | None, setting: str
) -> ModelNumbers:
    """Return numbers with the paper's of one model in one setting. Where two of its tables have one, the first counts.

    Args:
        model: the paper's; None for none.
    """
    of_paper: dict[str, Published] = {}
    for entry in published:
        if (entry.model, entry.setting) == (model, setting):
            of_paper.setdefault(entry.measure, entry)
    return replace(numbers, published=of_paper)
