"""`hedge paper`: finished runs of any model laid out as a paper's tables, beside its own values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import RunsChoice
from hedge_tasks.cli.printing import Details


def paper(
    paper: str, runs: RunsChoice, *, name: tuple[str, ...] = (), scores: Path | None = None, out: Path | None = None
) -> dict[str, Any]:
    """Lay finished runs out as a paper's tables, beside its own values.

    Args:
        paper: Such as hedge, medhallu, medhallmark, shale or vope.
        name: MODEL=TEXT: the runs with TEXT in their model's name are the paper's MODEL.
        scores: The same models on other benchmarks (CSV: model, one a benchmark), to correlate with.
        out: A line for each number, with its interval (CSV).
    """
    from hedge_tasks.errors import ConfigError, lookup
    from hedge_tasks.evaluation import from_evaluations
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.suites.correlation import correlation_table, read_scores

    laid_out = lookup("paper", paper, dict(from_evaluations("papers")())).load()
    if scores and not laid_out.leads:
        raise ConfigError(f"--scores: the {laid_out.name} paper correlates nothing with other benchmarks")
    rows = laid_out.rows_of(runs.load(), laid_out.names_given(name))
    records, tables = laid_out.records(rows), laid_out.tables(rows)
    if scores:
        setting, measure = laid_out.leads
        numbers = {row.model: row.numbers[measure].value for row, _ in rows if row.setting == setting}
        ours = {model: value for model, value in numbers.items() if value is not None}
        tables.append(correlation_table(laid_out.name, ours, read_scores(scores)))
    if out:
        write_whole(out, records.to_csv())
    return {"tables": tables, "numbers": Details(records), "notes": ["By the judge's labels."]}
