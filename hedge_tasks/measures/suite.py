"""A suite's own numbers (F1, MediHall Score, Hal-D ...) out of a finished run: values, intervals, paired differences.

An evaluation names its metrics in `Evaluation.suite`. Each is a row of lmms-eval's table, computed here by the same
code from what the run file has, so that the value is the table's to every digit, and what each document adds to the
sums that it follows from, for intervals and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.evaluation import brought_suite
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, compare_runs, compare_sums, estimate_of_sums, ratio
from hedge_tasks.statistics.base import FloatArray, Interval
from hedge_tasks.statistics.sums import Statistic, of_values

Record = Mapping[str, Any]

METRICS = "metrics"
"""Setting of a run: the rows of its table."""

_SAME = 1e-9


class Row(Protocol):
    """A row of lmms-eval's table, as `hedge_tasks.lmms.metrics.Metric`."""

    __name__: str
    higher_is_better: bool

    def record(self, scores: Any, verdict: Record, document: Record) -> dict[str, Any]:
        """What the number needs of one document; it may look at `id`, `label`, `group`, `question_type` of scores."""

    def __call__(self, records: Sequence[Record]) -> float | str:
        """The number, or `"undefined: ..."` with the reason."""


class ScoredRow(Row, Protocol):
    """A row that is a ROC-AUC, as `hedge_tasks.lmms.metrics.AurocMetric`."""

    def cases(self, record: Record) -> Sequence[Any]:
        """Of a record: `score`, `label` and `group` of each."""


def value_counts(records: Sequence[Record]) -> FloatArray:
    """Of records with a number, or None, under `value`: what they add to sum and size, shape (n, 2)."""
    return of_values([record["value"] for record in records])


@dataclass(frozen=True)
class SuiteMetric:
    """A number that a suite is about.

    Attributes:
        row: of the table: its name, its direction, and from documents to the number.
        title: for people.
        about: in one sentence, for readers who do not know the suite.
        counts: records of all documents -> what each adds to the sums, shape (n, ...); zeros where it does not count.
        statistic: sums, shape (m, ...) -> the number, shape (m,); nan where it is undefined.
        columns: of a document (or of `HedgeTask.facts`) that the row looks at; kept in the run file. `baseline_answer`
            and `reference` are always there.
        group: record -> what it shares with others, where that is not the document's group.
        bounds: least and greatest possible value.
        fault: record and document of a submission -> what of the record contradicts the document, or None.
        follows_label: `fault` leaves one record for each label and kind of verdict, so that verified ones verify the
            number.
        again: a submission's document with texts, and the settings of the judge -> the record, from the texts alone;
            None where they do not tell. A `DataError` says what in them contradicts the rest.
        also: other names that it may be asked for by.
        leads: whether it stands at the head of reports, and among what is compared without being asked for.
    """

    row: Row
    title: str
    about: str = ""
    counts: Callable[[Sequence[Record]], FloatArray] = value_counts
    statistic: Statistic = ratio
    columns: tuple[str, ...] = ()
    group: Callable[[Record], Hashable] | None = None
    bounds: Interval = (0.0, 1.0)
    fault: Callable[[Record, Record], str | None] | None = None
    follows_label: bool = False
    again: Callable[[Record, Record], Record | None] | None = None
    also: tuple[str, ...] = ()
    leads: bool = False

    @property
    def name(self) -> str:
        """That of its row."""
        return self.row.__name__

    @property
    def higher_is_better(self) -> bool:
        return self.row.higher_is_better


@dataclass(frozen=True)
class SuiteScore:
    """A score of documents that a suite is about besides the detectors, such as the share of samples with one verdict.

    It is no sum over documents: two runs are compared by its ROC-AUC, as detectors are.

    Attributes:
        row: of the table; `cases(record)` are its scores with labels.
        columns, also: as of `SuiteMetric`.
        facts: what the row looks at that follows from the answers.
    """

    row: ScoredRow
    columns: tuple[str, ...] = ()
    facts: Callable[[AnswerSet], Record] = lambda answers: {}
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """That of its row."""
        return self.row.__name__


@dataclass(frozen=True)
class Document:
    """What a suite's number is made of: one document's record, with what it belongs to.

    Attributes:
        id: of the document.
        group: of the document; its id where it is alone.
        record: as the row of the table has it.
    """

    id: str
    group: Hashable
    record: Record


def suite_of(settings: Mapping[str, Any]) -> list[SuiteMetric]:
    """The suite's own metrics that a run with these settings has in its table, the leading one first.

    None where the task is of no suite, or of one that is not installed.
    """
    return [metric for metric in _of_table(settings) if isinstance(metric, SuiteMetric)]


def scores_of_suite(settings: Mapping[str, Any]) -> list[SuiteScore]:
    """The suite's own scores that a run with these settings has in its table."""
    return [metric for metric in _of_table(settings) if isinstance(metric, SuiteScore)]


def _of_table(settings: Mapping[str, Any]) -> list[Any]:
    documents = settings.get("documents")
    name = documents.get("evaluation") if isinstance(documents, Mapping) else None
    rows = settings.get(METRICS)
    brought = brought_suite(name) if isinstance(name, str) else []
    return [metric for metric in brought if rows is None or metric.name in rows]


def named(metrics: Iterable[SuiteMetric | SuiteScore]) -> dict[str, SuiteMetric | SuiteScore]:
    """By every name that they may be asked for by; where two have one, the first."""
    found: dict[str, SuiteMetric | SuiteScore] = {}
    for metric in metrics:
        for name in (metric.name, *metric.also):
            found.setdefault(name, metric)
    return found


def documents_of(run: Run, metric: SuiteMetric | SuiteScore) -> list[Document]:
    """The documents of a run as a metric sees them.

    Raises:
        DataError: the run does not record what the metric needs, as where another judge has judged it again.
    """
    return [_document(run, answers, metric) for answers in run.answer_sets]


def estimate(metric: SuiteMetric, documents: Sequence[Document]) -> Number:
    """The number of the table, with its standard error and interval between groups.

    Raises:
        ConfigError: the metric's counts do not give the number of its row.
    """
    records = [document.record for document in documents]
    value = metric.row(records)
    groups = [document.group for document in documents]
    found = estimate_of_sums(_counts(metric, documents), groups, metric.statistic, bounds=metric.bounds)
    if isinstance(value, str):
        reason = value.removeprefix("undefined: ")
        return replace(found, value=None, stderr=None, interval=None, reason=reason)
    if found.value is None or abs(found.value - value) > _SAME * max(1.0, abs(value)):
        raise ConfigError(f"suite metric {metric.name!r}: its counts give {found.value}, its row {value}")
    return replace(found, value=value)


def measured(run: Run) -> list[tuple[SuiteMetric, Number]]:
    """All of a run's own numbers; one that it does not record is undefined with the reason."""
    found = []
    for metric in suite_of(run.settings):
        try:
            found.append((metric, estimate(metric, documents_of(run, metric))))
        except DataError as error:
            found.append((metric, Number(None, n=0, n_groups=0, reason=str(error))))
    return found


def compare(metric: SuiteMetric, a: Sequence[Document], b: Sequence[Document]) -> Comparison | None:
    """The difference between two runs, on the documents that both have; None where there are none."""
    by_id = {document.id: document for document in b}
    ours = [document for document in a if document.id in by_id]
    if not ours:
        return None
    theirs = [by_id[document.id] for document in ours]
    groups = [document.group for document in ours]
    first, second = _counts(metric, ours), _counts(metric, theirs)
    return compare_sums(first, second, groups, metric.statistic, bounds=metric.bounds)


def compare_scores(score: SuiteScore, a: Sequence[Document], b: Sequence[Document]) -> Comparison | None:
    """The difference of a score's ROC-AUC between two runs, on the documents that both have; None without any."""
    by_id = {document.id: known for document in b if (known := _case(score, document)) is not None}
    pairs = [
        (mine, by_id[document.id], document.group)
        for document in a
        if document.id in by_id and (mine := _case(score, document)) is not None
    ]
    if not pairs:
        return None
    scores, labels = ([np.array([getattr(pair[side], of) for pair in pairs]) for side in (0, 1)] for of in _OF_CASE)
    return compare_runs(scores[0], labels[0], scores[1], labels[1], groups=[group for *_, group in pairs])


_OF_CASE = ("score", "label")


def _case(score: SuiteScore, document: Document) -> Any:
    """The one case of a document; None where it has no score or label."""
    [case] = score.row.cases(document.record)
    return None if case.score is None or case.label is None else case


def _document(run: Run, answers: AnswerSet, metric: SuiteMetric | SuiteScore) -> Document:
    about = (answers.id, answers.label, answers.group, answers.question_type)
    scores = Scores(*about, numbers={}, weighting="", cluster_ids=())
    verdict = {"label": answers.label, **(run.verdicts.get(answers.id) or {})}
    kept = run.columns.get(answers.id, {})
    columns = {"baseline_answer": answers.baseline.text, "reference": answers.reference or "", **kept}
    columns |= metric.facts(answers) if isinstance(metric, SuiteScore) else {}
    if lacking := [name for name in metric.columns if name not in columns]:
        raise DataError(f"the run does not keep {', '.join(lacking)}, which {metric.name} is made of")
    try:
        record = metric.row.record(scores, verdict, columns)
        return document_of(metric, answers.id, answers.group, record)
    except Exception as error:  # of an evaluation's own code, given a file from anywhere
        missing = f"{type(error).__name__}: {str(error)[:100]}"
        raise DataError(f"the run does not record what {metric.name} is made of ({missing})") from error


def document_of(metric: SuiteMetric | SuiteScore, id: str, group: str | None, record: Record) -> Document:
    """A record with what it belongs to."""
    own_group = metric.group if isinstance(metric, SuiteMetric) else None
    named_group = own_group(record) if own_group is not None else group
    return Document(id, ("document", id) if named_group is None else ("group", named_group), record)


def _counts(metric: SuiteMetric, documents: Sequence[Document]) -> FloatArray:
    return metric.counts([document.record for document in documents])
