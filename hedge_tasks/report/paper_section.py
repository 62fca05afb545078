"""The tables of an evaluation's paper, filled from the runs of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.errors import HedgeError
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.measures.run_measures import evaluation_of
from hedge_tasks.numbers import Table
from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class PaperSection:
    """The tables of one evaluation.

    Attributes:
        name: of the evaluation, as `hedge paper` takes it.
        tables: with the reasons of undefined numbers among their notes.
        failed: why there are none; "" where there are.
    """

    name: str
    tables: Sequence[Table]
    failed: str = ""


def paper_sections(runs: Sequence[Run]) -> Iterator[PaperSection]:
    """Yield the tables of the papers of all evaluations of the runs; not one that clusters anew."""
    papers = dict(from_evaluations("papers")())
    for name in dict.fromkeys(filter(None, (evaluation_of(run.settings) for run in runs))):
        if name not in papers:
            continue
        paper = papers[name].load()
        try:
            tables = paper.tables(paper.rows_of(runs))
        except HedgeError as error:
            yield PaperSection(name, (), str(error))
            continue
        if tables:
            yield PaperSection(name, [replace(table, notes=[*table.notes, *table.reasons()]) for table in tables])
