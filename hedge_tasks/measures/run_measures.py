"""Measures of finished runs: what a run file gives of each, and paired differences between runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import DataError
from hedge_tasks.evaluation import installed_measures
from hedge_tasks.judging.designed import ExpertAudit, ExpertLabels
from hedge_tasks.measures.measure import Measure, Record, SumsMeasure
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison

METRICS = "metrics"
"""Setting of a run: the rows of its table."""


class Document(NamedTuple):
    """A document as a measure sees it.

    Attributes:
        id: of the document.
        group: what it shares with others; its own where it is alone.
        record: as in the row of the table.
    """

    id: str
    group: Hashable
    record: Record


def evaluation_of(settings: Mapping[str, Any]) -> str | None:
    """Return the name of the evaluation that a run with these settings is of; None where it is of none."""
    documents = settings.get("documents")
    name = documents.get("evaluation") if isinstance(documents, Mapping) else None
    return name if isinstance(name, str) else None


def measures_of(settings: Mapping[str, Any]) -> list[Measure]:
    """Return the evaluation's kept measures that a run with these settings has in its table, the leading one first.

    None where the task is of no evaluation, or of one that is not installed.
    """
    name, rows = evaluation_of(settings), settings.get(METRICS)
    installed: list[Measure] = installed_measures(name) if name is not None else []
    return [measure for measure in installed if measure.kept and (rows is None or measure.name in rows)]


def sums_of(settings: Mapping[str, Any]) -> list[SumsMeasure]:
    """Return those of `measures_of` that reports and submissions have: functions of sums over documents."""
    return [measure for measure in measures_of(settings) if isinstance(measure, SumsMeasure)]


def documents_of(run: Run, measure: Measure) -> list[Document]:
    """Return the documents of a run as a measure sees them.

    Raises:
        DataError: the run does not record what the measure needs, as where another judge has judged it again.
    """
    return [_document(run, answers, measure) for answers in run.answer_sets]


def document_of(id: str, group: str | None, record: Record) -> Document:
    """Return a record with what it belongs to."""
    return Document(id, ("document", id) if group is None else ("group", group), record)


def answer_columns(answers: AnswerSet) -> dict[str, str]:
    """Return what measures may read of every document, besides its own columns."""
    return {"baseline_answer": answers.baseline.text, "reference": answers.reference or ""}


def scored_documents(scores: Sequence[Scores], measure: Measure) -> list[Document]:
    """Return scored documents as the measure of a detector sees them."""
    return [Document(s.id, s.group, measure.record(s, {}, {})) for s in scores]


def estimate_of(measure: Measure, documents: Sequence[Document], experts: ExpertLabels | None = None) -> Number:
    """Return the number of the table, with its standard error and interval between groups.

    Args:
        experts: labels of the documents, in their order; the number is then against experts, else against the judge.
    """
    return measure.estimate([d.record for d in documents], [d.group for d in documents], experts)


def numbers_of_run(
    run: Run, audit: ExpertAudit | None = None, measures: Sequence[Measure] = ()
) -> list[tuple[Measure, Number]]:
    """Return all of a run's own numbers, or those of some measures, by experts where there is an audit.

    One that the run does not record, or experts do not correct, is undefined with the reason.
    """
    experts = None if audit is None else audit.on([answers.id for answers in run.answer_sets])
    numbers: list[tuple[Measure, Number]] = []
    for measure in measures or sums_of(run.settings):
        try:
            numbers.append((measure, estimate_of(measure, documents_of(run, measure), experts)))
        except DataError as error:
            numbers.append((measure, Number.undefined(str(error), unit=measure.unit)))
    return numbers


def compare_documents(measure: Measure, a: Sequence[Document], b: Sequence[Document]) -> Comparison | None:
    """Return the difference between two runs, on the documents that both have; None where there are none."""
    by_id = {document.id: document for document in b}
    pairs = [(document, by_id[document.id]) for document in a if document.id in by_id]
    if not pairs:
        return None
    sides = [x.record for x, _ in pairs], [y.record for _, y in pairs]
    comparison = measure.compare(*sides, [x.group for x, _ in pairs])
    return None if comparison is None else comparison.of(x.id for x, _ in pairs)


def _document(run: Run, answers: AnswerSet, measure: Measure) -> Document:
    identity = (answers.id, answers.label, answers.group, answers.question_type)
    scores = Scores(*identity)
    verdict = {"label": answers.label, **(run.verdicts.get(answers.id) or {})}
    kept_columns = run.columns.get(answers.id, {})
    columns = {**answer_columns(answers), **kept_columns, **measure.facts(answers)}
    if lacking := [name for name in measure.columns if name not in columns]:
        raise DataError(f"the run does not keep {', '.join(lacking)}, which {measure.name} is made of")
    try:
        return document_of(answers.id, answers.group, measure.record(scores, verdict, columns))
    except Exception as error:  # of an evaluation's own code, given a file from anywhere
        missing = f"{type(error).__name__}: {str(error)[:100]}"
        raise DataError(f"the run does not record what {measure.name} is made of ({missing})") from error
