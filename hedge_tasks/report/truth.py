"""Whose labels a run's numbers rest on, what experts say, and what blind baselines do: lines of a report's head."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import labelled
from hedge_tasks.errors import DataError
from hedge_tasks.measures.audited import audited_numbers, whose_labels
from hedge_tasks.measures.blind import against_blind
from hedge_tasks.numbers import format_number
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.audit_files import audit_of

_MOST = 2000


def truth_of(analysis: Analysis) -> list[tuple[str, str]]:
    """Return terms and what they are on this run."""
    try:
        audit = audit_of(analysis.run)
    except DataError as error:
        return [("labels", clean(str(error), _MOST))]
    rows = [("labels", whose_labels(analysis.run, audit).removeprefix("Labels: "))]
    for clustering, scores in analysis.scores.items():
        if audit is not None:
            numbers = audited_numbers(analysis.run, scores, _scored(analysis, clustering), audit)
            rows += [
                (
                    f"{each.name}, {clustering}" if each.name.endswith("_auroc") else each.name,
                    f"{format_number(each.experts, interval=True)} against experts, "
                    f"{format_number(each.judge, interval=True)} against the judge",
                )
                for each in numbers
                if each.experts.defined
            ]
        if sentence := _blind(analysis, clustering, scores):
            rows.append((f"blind baselines, {clustering}", sentence))
    return [(clean(term, _MOST), clean(text, _MOST)) for term, text in dict(rows).items()]


def _scored(analysis: Analysis, clustering: str) -> list[str]:
    estimates = analysis.estimates.get(clustering, {})
    return [name for name in analysis.shown if (found := estimates.get(name)) is not None and found.value is not None]


def _blind(analysis: Analysis, clustering: str, scores: Sequence[Scores]) -> str:
    columns = {name: labelled(scores, name) for name in _scored(analysis, clustering)}
    return against_blind(analysis.run.answer_sets, columns, scores).sentence if columns else ""
