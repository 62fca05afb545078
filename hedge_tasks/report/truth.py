"""Numbers that experts give of a run's numbers, and what its intervals cover: lines of a report's head."""

from __future__ import annotations

from dataclasses import replace

from hedge_tasks.errors import DataError
from hedge_tasks.measures.audited import audited_numbers
from hedge_tasks.measures.seed_spread import COVERED, by_seed, spreads
from hedge_tasks.numbers import THREE_DIGITS, format_number
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.run_files import read_run, run_paths
from hedge_tasks.runs.scorers import scorer_of

_MOST = 2000


def truth_of(analysis: Analysis) -> list[tuple[str, str]]:
    """Return terms and what they are on this run."""
    try:
        audit = audit_of(analysis.run)
    except DataError as error:
        return [("labels", clean(str(error), _MOST))]
    rows: list[tuple[str, str]] = []
    for clustering, scores in analysis.scores.items():
        if audit is not None:
            numbers = audited_numbers(analysis.run, scores, _scored(analysis, clustering), audit)
            rows += [
                (
                    f"{number.name}, {clustering}" if number.name.endswith("_auroc") else number.name,
                    f"{format_number(number.experts, interval=True)} against experts, "
                    f"{format_number(number.judge, interval=True)} against the judge",
                )
                for number in numbers
                if number.experts.defined
            ]
    rows += _seed_spreads(analysis)
    return [(clean(term, _MOST), clean(text, _MOST)) for term, text in dict(rows).items()]


def _seed_spreads(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the spread over runs that differ in the seed alone, or what intervals cover where there are none."""
    run = analysis.run
    beside = run.path is not None and run.path.exists() and any(run.path.parent.glob("run-*.jsonl"))
    try:
        files = run_paths(run.path.parent) if run.path is not None and beside else []
        runs = by_seed(run, (replace(read_run(file), trusted=run.trusted) for file in files))
    except DataError as error:  # a run beside this one, which nobody asked to see
        return [("intervals", COVERED), ("other seeds", f"not looked for: {error}")]
    if len(runs) < 2:
        return [("intervals", COVERED)]
    rows = []
    for clustering in analysis.scores:
        detectors = _scored(analysis, clustering)
        scores = {
            seed: {clustering: scorer_of(seed_run, clustering).with_detectors(detectors).score(seed_run.answer_sets)}
            for seed, seed_run in runs.items()
        }
        texts = [
            f"{spread.name.removeprefix(clustering).strip()} {THREE_DIGITS(spread.mean)}"
            f" (sd {THREE_DIGITS(spread.deviation)})"
            for spread in spreads(scores, detectors)
            if spread.deviation is not None
        ]
        rows.append((f"over seeds {', '.join(map(str, runs))}, {clustering}", "; ".join(texts)))
    return [("intervals", COVERED), *rows]


def _scored(analysis: Analysis, clustering: str) -> list[str]:
    estimates = analysis.estimates.get(clustering, {})
    return [name for name in analysis.shown if (number := estimates.get(name)) is not None and number.defined]
