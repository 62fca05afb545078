"""`hedge compare`: is the difference between two runs, or between detectors of one run, more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice
from hedge_tasks.cli.printing import Details
from hedge_tasks.errors import ConfigError

if TYPE_CHECKING:
    from hedge_tasks.report.analysis import Analysis, Pair


def compare(run: RunChoice, clustering: ClusteringChoice, other: Path | None = None) -> dict[str, Any]:
    """Compare two runs on the same questions, or the detectors of one run.

    Args:
        other: The run to compare with; none: the detectors and clusterings of RUN.
    """
    from hedge_tasks.measures.comparisons import check_same_documents
    from hedge_tasks.numbers import reason_lines
    from hedge_tasks.report.analysis import analyse, compare_within, table_of
    from hedge_tasks.report.run_names import differences
    from hedge_tasks.runs.run_files import load_run

    runs = [run.load(), *([] if other is None else [load_run(other, run.task, trust=run.trust_run)])]
    if other is not None:
        check_same_documents(*runs)
    analyses = analyse(runs, detectors=clustering.names or None, scorers=clustering.scorers)
    pairs = _between(analyses) if other else compare_within(analyses[0])
    left_out = reason_lines("left out", (item for analysis in analyses for item in analysis.left_out.items()))
    if not pairs and any(answers.label is not None for answers in runs[0].answer_sets):
        raise ConfigError("; ".join(["there is nothing to compare", *left_out]))
    findings = [*map(clustering.headline, runs)]
    lines = [f"{'ab'[i]}: {line}" for i, x in enumerate(findings) for line in (*x.lines(), x.labels)]
    facts = {"a": runs[0].title, "comparisons": table_of(pairs), "notes": [*lines, *left_out]}
    if other is None:
        return {**facts, "finding": Details(findings[0])}
    settings = [row for table in differences(runs, "ab") if table for row in table.rows]
    return {**facts, "b": runs[1].title, "settings": settings, "finding": None}


def _between(analyses: Sequence[Analysis]) -> list[Pair]:
    """Compare two runs, and warn where they differ in more than the model: the difference is then not of it alone."""
    from loguru import logger

    from hedge_tasks.report.analysis import compare_two, one_family

    first, second = analyses
    shared = [name for name in first.scorers if name in second.scorers]
    if not shared:
        logger.warning("the runs have no clustering in common, and detectors are not compared: say --clustering exact")
    for name in shared:
        a, b = (analysis.scorers[name].settings() for analysis in analyses)
        if a != b:
            logger.warning("clustering: {} is {!r} in a and {!r} in b", name, a, b)
    return one_family(compare_two(first, second, "a", "b"))
