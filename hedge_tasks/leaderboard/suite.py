"""A suite's own numbers in a submission: a record a document, what follows from them, and whether it does.

A record holds what the row of the table is made of (a verdict and the truth, two counts), no texts. Values and
intervals are computed again from the records, always; a record is compared with the label, the reference, the group and
the texts of its document, as far as the measure can (`Measure.fault`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.stated import MOST_FAULTS, differences, has_texts, is_equal, number_fields
from hedge_tasks.measures.measure import SumsMeasure
from hedge_tasks.measures.run_measures import Document, document_of, documents_of, estimate_of, sums_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class SuiteOfRun:
    """Numbers of a run's own measures, as a submission has them.

    Attributes:
        numbers: by metric, see `suite_fields`.
        records: id of the document -> metric -> record; none of a metric that the run does not record.
    """

    numbers: Mapping[str, Mapping[str, Any]]
    records: Mapping[str, Mapping[str, Any]]


def suite_of_run(run: Run) -> SuiteOfRun:
    """Return the suite's own numbers of a run, and the records that they are made of."""
    numbers: dict[str, Mapping[str, Any]] = {}
    records: dict[str, dict[str, Any]] = {answers.id: {} for answers in run.answer_sets}
    for metric in sums_of(run.settings):
        try:
            documents = documents_of(run, metric)
        except DataError as error:
            numbers[metric.name] = suite_fields(metric, Number.undefined(str(error)[:500]))
            continue
        for document in documents:
            records[document.id][metric.name] = dict(document.record)
        numbers[metric.name] = suite_fields(metric, estimate_of(metric, documents))
    return SuiteOfRun(numbers, records)


def suite_fields(metric: SumsMeasure, number: Number) -> dict[str, Any]:
    """A number as a submission has it."""
    kind = {"title": metric.title, "higher_is_better": metric.higher_is_better}
    return {**kind, **number_fields(number), "n": number.n, "n_groups": number.n_groups, "reason": number.reason}


def check_suite(
    submission: Mapping[str, Any], labels: PartStatus, *, known_task: bool
) -> tuple[dict[str, PartStatus], list[str]]:
    """Compute the suite's own numbers again from the records, and compare the records with their documents.

    Args:
        labels: whether the labels are verified; what follows from them alone then is as well.
        known_task: the task has an edition here, and so all its numbers: others are refused, as they would stand
            before those of everybody else. Of other tasks they are self-reported.

    Returns:
        Whether each number is verified, and what is wrong.
    """
    metrics = {metric.name: metric for metric in sums_of(submission["settings"])}
    parts: dict[str, PartStatus] = {}
    wrong: list[str] = []
    for name in submission["suite"]:
        if name not in metrics:
            parts[name] = PartStatus(False, "no metric of this name is installed here for the task's suite")
            wrong += [f"suite.{name[:80]}: {parts[name].reason}"] if known_task else []
        elif faults := list(islice(_faults(submission, metrics[name]), MOST_FAULTS)):
            parts[name], wrong = PartStatus(False, "its records contradict the documents"), wrong + faults
        else:
            parts[name], faults = _part(submission, metrics[name], labels)
            wrong += faults
    wrong += islice(_strays(submission), MOST_FAULTS)
    return parts, wrong[:MOST_FAULTS]


def documents_in(submission: Mapping[str, Any], metric: SumsMeasure) -> list[Document]:
    """The documents of a submission as a metric sees them; none where it has no records of it."""
    return [
        document_of(document["id"], document["group"], document["suite"][metric.name])
        for document in submission["documents"]
        if metric.name in document.get("suite", {})
    ]


def metrics_of(submission: Mapping[str, Any]) -> list[SumsMeasure]:
    """Return the metrics of the submission's own numbers that are installed here."""
    return [metric for metric in sums_of(submission["settings"]) if metric.name in submission["suite"]]


def _part(submission: Mapping[str, Any], metric: SumsMeasure, labels: PartStatus) -> tuple[PartStatus, list[str]]:
    """Whether the number is verified, and the records that are others where the texts are read again."""
    if submission["suite"][metric.name]["value"] is None:
        return PartStatus(False, "no number is claimed"), []
    if has_texts(submission):
        complete, faults = _texts_against_records(submission, metric)
        if complete or faults:
            return PartStatus(complete and not faults, "computed again from the texts"), faults
    if metric.follows_label and labels.verified:
        return PartStatus(True, f"computed again from the labels ({labels.reason})"), []
    reason = "computed again from the records, which are the judge's reading of the answers"
    return PartStatus(False, f"{reason} ({labels.reason})" if metric.follows_label else reason), []


def _texts_against_records(submission: Mapping[str, Any], metric: SumsMeasure) -> tuple[bool, list[str]]:
    """Whether the texts of all documents tell the record, and where it is another."""
    judge = submission["labels"]["judge"]
    complete, faults = True, []
    for i, document in enumerate(submission["documents"]):
        place, stated_record = f"documents[{i}].suite.{metric.name}", document["suite"][metric.name]
        try:
            record = metric.recomputed(document, judge if isinstance(judge, Mapping) else {})
        except DataError as error:
            faults.append(f"{place}: {error}"[:300])
            continue
        except Exception as error:  # of a suite's code, given a stranger's texts
            return False, [f"{place}: cannot be computed from the texts ({type(error).__name__})"]
        complete = complete and record is not None
        if record is not None and not _is_same_record(record, stated_record):
            faults.append(f"{place}: stated {stated_record}, the texts say {dict(record)}"[:300])
    return complete, faults[:MOST_FAULTS]


def _is_same_record(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether two records agree, apart from rounding."""
    return ours.keys() == theirs.keys() and all(is_equal(ours[key], theirs[key]) for key in ours)


def _faults(submission: Mapping[str, Any], metric: SumsMeasure) -> Iterator[str]:
    documents, number = submission["documents"], submission["suite"][metric.name]
    has = sum(metric.name in document.get("suite", {}) for document in documents)
    if not has and number["value"] is None:
        return  # nothing is said, and nothing is claimed
    if has < len(documents):
        yield f"suite.{metric.name}: records of {has} of {len(documents)} documents"
        return
    try:
        yield from _record_faults(documents, metric)
        ours = suite_fields(metric, estimate_of(metric, documents_in(submission, metric)))
    except Exception as error:  # of a suite's code, given a stranger's records
        yield f"documents[].suite.{metric.name}: no records of this metric ({type(error).__name__})"
        return
    yield from differences(f"suite.{metric.name}", ours, number)


def _record_faults(documents: Sequence[Mapping[str, Any]], metric: SumsMeasure) -> Iterator[str]:
    for i, document in enumerate(documents):
        fault = metric.fault(document["suite"][metric.name], document)
        if fault:
            yield f"documents[{i}].suite.{metric.name}: {fault[:200]}"


def _strays(submission: Mapping[str, Any]) -> Iterator[str]:
    for i, document in enumerate(submission["documents"]):
        if others := document.get("suite", {}).keys() - submission["suite"].keys():
            yield f"documents[{i}].suite: {min(others)[:80]!r} is none of the submission's"
