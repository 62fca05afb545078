"""`hedge compare`: is the difference between two runs, or between detectors of one run, more than chance?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice, chosen_detectors
from hedge_tasks.cli.printing import Details
from hedge_tasks.errors import ConfigError, check_names

if TYPE_CHECKING:
    from hedge_tasks.report.analysis import Analysis


def compare(
    run: RunChoice,
    clustering: ClusteringChoice,
    other: Path | None = None,
    *,
    detectors: str | None = None,
    metric: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Compare two runs on the same questions, or the detectors of one run.

    Args:
        other: The run to compare with; none: the detectors and clusterings of RUN.
        detectors: Which ones, such as se,kle,msp, in place of those of each run.
        metric: Of two runs a number of their suite besides those that lead, such as f1; may be given again.
    """
    from hedge_tasks.measures.comparisons import check_same_documents
    from hedge_tasks.measures.headline import headline
    from hedge_tasks.numbers import reason_lines
    from hedge_tasks.report.analysis import analyse, compare_two, compare_within, one_family, table_of
    from hedge_tasks.runs.run_files import load_run

    runs = [run.load(), *([] if other is None else [load_run(other, run.task, trust=run.trust_run)])]
    if other is None and metric:
        raise ConfigError(f"{metric[0]} is the same for all detectors of a run; compare it between two runs")
    if other is not None:
        check_same_documents(*runs)
    analyses = analyse(runs, detectors=chosen_detectors(detectors, ()) or None, scorers=clustering.scorers)
    check_names("metric", metric, [measure.name for measure, _ in analyses[0].suite])
    pairs = compare_within(analyses[0]) if other is None else one_family(compare_two(*analyses, also=metric))
    left_out = {name: reason for analysis in analyses for name, reason in analysis.left_out.items()}
    if not pairs and any(answers.label is not None for answers in runs[0].answer_sets):
        raise ConfigError("; ".join(["there is nothing to compare", *reason_lines("left out", left_out.items())]))
    _warn_of_differences(analyses)
    findings = [headline(r) for r in runs]
    lines = [line for finding in findings for line in (*finding.lines(), finding.labels)]
    return {
        **{side: r.title for side, r in zip("ab", runs, strict=False)},
        "comparisons": table_of(pairs),
        "finding": Details(findings[0].to_dict() if other is None else None),
        "notes": [*lines, *reason_lines("left out", left_out.items())],
    }


def _warn_of_differences(analyses: Sequence[Analysis]) -> None:
    """Warn where two runs differ in more than the model: then the difference is not only about that."""
    from loguru import logger

    runs = [analysis.run for analysis in analyses]
    clusterings = [
        {
            f"{name} {key}": value
            for name, scorer in analysis.scorers.items()
            for key, value in scorer.settings().items()
        }
        for analysis in analyses
    ]
    sampling = [dict(run.settings.get("sampling") or {}) for run in runs]
    judges = [{"judges": sorted({str(v.get("judge")) for v in run.verdicts.values()})} for run in runs]
    for about, sides in {"clustering": clusterings, "sampling": sampling, "labels": judges}.items():
        for key in dict.fromkeys(key for side in sides for key in side):
            a, *others = (side.get(key) for side in sides)
            if others and others[0] != a:
                logger.warning("{}: {} is {!r} in a and {!r} in b", about, key, a, others[0])
