"""`hedge paper`: finished runs of any model laid out as a paper's tables, beside its own values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import TrustChoice
from hedge_tasks.cli.printing import Details
from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registration


def _paper(registration: Registration) -> Callable[..., dict[str, Any]]:
    def lay_out(
        runs: list[Path],
        trust: TrustChoice,
        *,
        name: tuple[str, ...] = (),
        out: Path | None = None,
    ) -> dict[str, Any]:
        """Lay runs of any model out as the paper's tables, beside its values.

        Args:
            runs: Output folders of lmms-eval, or run files.
            name: MODEL=TEXT: the runs with TEXT in their model's name are the paper's MODEL.
            out: A line for each number, with its interval (CSV).
        """
        from hedge_tasks.io.files import write_whole
        from hedge_tasks.runs.run_files import load_runs

        paper = registration.load()
        finished = [run for path in runs for run in load_runs(path, trust=trust.trust_run)]
        rows = paper.rows_of(finished, paper.names_given(name))
        records, tables = paper.records(rows), paper.tables(rows)
        if out:
            write_whole(out, records.to_csv())
        return {"tables": tables, "numbers": Details(records)}

    return lay_out


COMMANDS = {name: _paper(registration) for name, registration in sorted(from_evaluations("papers")())}
"""The commands of papers, by name."""
