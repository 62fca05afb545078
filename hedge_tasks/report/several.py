"""Several runs side by side: everything that differs, their numbers, and comparisons of what is paired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import PERCENT, Cell, Column, Table
from hedge_tasks.report.analysis import Analysis, compare_between, table_of
from hedge_tasks.report.lead import labelled_by
from hedge_tasks.report.run_names import differences
from hedge_tasks.runs.health import health_of

_MOST_COMPARED = 6
"""Runs of a task beyond these are not compared in pairs: fifteen pairs a score are too many to read."""


@dataclass(frozen=True)
class SideBySide:
    """The head of a page about several runs.

    Attributes:
        differs: the settings in which they differ: those with a name, and the others; None where they differ in none.
        numbers: a row a run.
        pairs: paired differences of runs of a task; None where no two are of one task, or too many are.
        notes: what a reader must know before comparing.
    """

    differs: tuple[Table | None, Table | None]
    numbers: Table
    pairs: Table | None
    notes: Sequence[str]


def side_by_side(analyses: Sequence[Analysis], names: Sequence[str]) -> SideBySide:
    """Return what the page shows of several runs together.

    Args:
        names: of the runs, no two the same.
    """
    by_task: dict[str, list[int]] = {}
    for i, analysis in enumerate(analyses):
        by_task.setdefault(analysis.run.task, []).append(i)
    notes = [
        f"The numbers of {name} are unreliable: {reason}."
        for name, analysis in zip(names, analyses, strict=True)
        if (reason := health_of(analysis.run).unreliable)
    ]
    notes += [f"{name}: {who}." for name, a in zip(names, analyses, strict=True) if (who := labelled_by(a))]
    notes += [note for places in by_task.values() if (note := _shared_questions(analyses, names, places))]
    if len(by_task) > 1:
        notes.append("Runs of different tasks were asked different questions: nothing of theirs is paired.")
    few = max(map(len, by_task.values())) <= _MOST_COMPARED
    pairs = compare_between(analyses, dict(enumerate(names))) if few else []
    if not few:
        notes.append(f"More than {_MOST_COMPARED} runs of a task are not compared in pairs; `hedge compare` does.")
    table = table_of(pairs) if pairs else None
    return SideBySide(differences([a.run for a in analyses], names), _numbers(analyses, names), table, notes)


def _shared_questions(analyses: Sequence[Analysis], names: Sequence[str], places: Sequence[int]) -> str:
    """Return how many questions runs of a task have in common; "" where all have the same."""
    asked = [{a.id for a in analyses[i].run.answer_sets} for i in places]
    shared = len(set.intersection(*asked))
    if all(len(ids) == shared for ids in asked):
        return ""
    counts = ", ".join(f"{names[i]} has {len(ids)}" for i, ids in zip(places, asked, strict=True))
    return f"Of these questions {shared} are in every run of the task: {counts}. Only what both have is paired."


def _numbers(analyses: Sequence[Analysis], names: Sequence[str]) -> Table:
    """Return a row a run: the leading numbers of its suite, hallucination rate, ROC-AUC under a clustering of all."""
    titles = dict.fromkeys(measure.title for a in analyses for measure, _ in a.suite if measure.leads)
    clustering = next((name for name in analyses[0].scores if all(name in a.scores for a in analyses)), None)
    detectors = dict.fromkeys(name for a in analyses for name in a.drawn(clustering)) if clustering else {}
    columns = [
        *(Column("run"), Column("trust"), Column("questions")),
        *(Column(title, interval=True) for title in titles),
        Column("rate", HALLUCINATION_RATE.title, format=PERCENT, interval=True),
        *(Column(detector, name_of(detector), interval=True) for detector in detectors),
    ]
    rows = [{"run": name, **_row(analysis, clustering)} for name, analysis in zip(names, analyses, strict=True)]
    return Table(columns, rows, notes=[f"ROC-AUC is under the clustering {clustering}."] if clustering else [])


def _row(analysis: Analysis, clustering: str | None) -> Mapping[str, Cell]:
    finding = analysis.finding
    suite = {measure.title: number for measure, number in analysis.suite if measure.leads}
    aurocs = analysis.estimates[clustering] if clustering else {}
    about = {"trust": finding.trust.level, "questions": len(analysis.run.answer_sets), "rate": finding.rate}
    return {**aurocs, **suite, **about}
