"""The tables of an evaluation's paper, filled from the runs of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.errors import HedgeError
from hedge_tasks.evaluation import installed_tables
from hedge_tasks.numbers import Table
from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class PaperSection:
    """The tables of one evaluation.

    Attributes:
        name: of the evaluation, as `hedge paper` takes it.
        tables: with what each says below it among its notes.
        failed: why there are none; "" where there are.
    """

    name: str
    tables: Sequence[Table]
    failed: str = ""


def paper_sections(runs: Sequence[Run]) -> Iterator[PaperSection]:
    """The papers' tables of all evaluations that the runs are of; none of HEDGE's own, which has another layout."""
    for name in dict.fromkeys(filter(None, map(_evaluation, runs))):
        lay_out = installed_tables(name)
        if lay_out is None:
            continue
        try:
            tables = lay_out(runs)
        except HedgeError as error:
            yield PaperSection(name, (), str(error))
            continue
        if tables:
            yield PaperSection(name, [replace(table, notes=[*table.notes, *table.reasons()]) for table in tables])


def _evaluation(run: Run) -> str | None:
    documents = run.settings.get("documents")
    name = documents.get("evaluation") if isinstance(documents, Mapping) else None
    return name if isinstance(name, str) else None
