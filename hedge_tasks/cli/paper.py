"""`hedge paper`: finished runs of any model laid out as a paper's tables, beside its own values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import RunsChoice
from hedge_tasks.cli.printing import Details
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registration


def _paper(registration: Registration) -> Callable[..., dict[str, Any]]:
    def lay_out(
        runs: RunsChoice,
        *,
        name: tuple[str, ...] = (),
        scores: Path | None = None,
        out: Path | None = None,
    ) -> dict[str, Any]:
        """Lay runs of any model out as the paper's tables, beside its values.

        Args:
            name: MODEL=TEXT: the runs with TEXT in their model's name are the paper's MODEL.
            scores: The same models on other benchmarks (CSV: model, one a benchmark), to correlate with.
            out: A line for each number, with its interval (CSV).
        """
        from hedge_tasks.errors import ConfigError
        from hedge_tasks.io.files import write_whole
        from hedge_tasks.suites.correlation import correlation_table, read_scores

        paper = registration.load()
        if scores and not paper.leads:
            raise ConfigError(f"--scores: the {paper.name} paper correlates nothing with other benchmarks")
        names = paper.names_given(name)
        rows = paper.rows_of(runs.load(), names)
        records, tables = paper.records(rows), paper.tables(rows)
        if scores:
            setting, measure = paper.leads
            numbers = {row.model: row.numbers[measure].value for row, _ in rows if row.setting == setting}
            ours = {model: value for model, value in numbers.items() if value is not None}
            tables.append(correlation_table(paper.name, ours, read_scores(scores)))
        if out:
            write_whole(out, records.to_csv())
        return {"tables": tables, "numbers": Details(records)}

    return lay_out


COMMANDS = {name: _paper(registration) for name, registration in sorted(from_evaluations("papers")())}
"""The commands of papers, by name."""
