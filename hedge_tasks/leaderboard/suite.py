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
from hedge_tasks.measures.measure import SumsMeasure
from hedge_tasks.measures.run_measures import Document, document_of, documents_of, estimate_of, sums_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run

DECIMALS = 6
# Half a unit in the last decimal is rounding; the derivative behind the standard error has a little of its own.
_TOLERANCE = 0.5 * 10**-DECIMALS + 1e-7
_MOST = 20
_NUMBERS = ("value", "stderr", "low", "high")


@dataclass(frozen=True)
class SuiteOfRun:
    """Numbers of a run's own measures, as a submission has them.

    Attributes:
        numbers: by metric, see `stated`.
        records: id of the document -> metric -> record; none of a metric that the run does not record.
    """

    numbers: Mapping[str, Mapping[str, Any]]
    records: Mapping[str, Mapping[str, Any]]


def of_run(run: Run) -> SuiteOfRun:
    """The suite's own numbers of a run, and what they are made of."""
    numbers: dict[str, Mapping[str, Any]] = {}
    records: dict[str, dict[str, Any]] = {answers.id: {} for answers in run.answer_sets}
    for metric in sums_of(run.settings):
        try:
            documents = documents_of(run, metric)
        except DataError as error:
            numbers[metric.name] = stated(metric, Number.undefined(str(error)[:500]))
            continue
        for document in documents:
            records[document.id][metric.name] = dict(document.record)
        numbers[metric.name] = stated(metric, estimate_of(metric, documents))
    return SuiteOfRun(numbers, records)


def stated(metric: SumsMeasure, found: Number) -> dict[str, Any]:
    """A number as a submission has it."""
    low, high = found.interval or (None, None)
    numbers = dict(zip(_NUMBERS, (found.value, found.stderr, low, high), strict=True))
    rounded = {key: None if value is None else round(value, DECIMALS) for key, value in numbers.items()}
    about = {"title": metric.title, "higher_is_better": metric.higher_is_better}
    return {**about, **rounded, "n": found.n, "n_groups": found.n_groups, "reason": found.reason}


def auroc_of(stated: Mapping[str, Any]) -> Number:
    """Return a ROC-AUC as a file has it."""
    interval = None if stated["low"] is None or stated["high"] is None else (stated["low"], stated["high"])
    return Number(stated["auroc"], stated["stderr"], interval, **{k: stated[k] for k in ("n", "n_positive", "reason")})


def measured_of(stated: Mapping[str, Any]) -> Number:
    """A stated number as reports show it."""
    interval = None if stated["low"] is None or stated["high"] is None else (stated["low"], stated["high"])
    counts = {name: stated[name] for name in ("n", "n_groups", "reason")}
    return Number(stated["value"], stated["stderr"], interval, **counts)


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
    known = {metric.name: metric for metric in sums_of(submission["settings"])}
    parts: dict[str, PartStatus] = {}
    wrong: list[str] = []
    for name in submission["suite"]:
        if name not in known:
            parts[name] = PartStatus(False, "no metric of this name is installed here for the task's suite")
            wrong += [f"suite.{name[:80]}: {parts[name].reason}"] if known_task else []
        elif faults := list(islice(_faults(submission, known[name]), _MOST)):
            parts[name], wrong = PartStatus(False, "its records contradict the documents"), wrong + faults
        else:
            parts[name], faults = _part(submission, known[name], labels)
            wrong += faults
    wrong += islice(_strays(submission), _MOST)
    return parts, wrong[:_MOST]


def documents_in(submission: Mapping[str, Any], metric: SumsMeasure) -> list[Document]:
    """The documents of a submission as a metric sees them; none where it has no records of it."""
    return [
        document_of(document["id"], document["group"], document["suite"][metric.name])
        for document in submission["documents"]
        if metric.name in document.get("suite", {})
    ]


def metrics_of(submission: Mapping[str, Any]) -> list[SumsMeasure]:
    """Those of the submission's own numbers that are installed here."""
    return [metric for metric in sums_of(submission["settings"]) if metric.name in submission["suite"]]


def _part(submission: Mapping[str, Any], metric: SumsMeasure, labels: PartStatus) -> tuple[PartStatus, list[str]]:
    """Whether the number is verified, and the records that are others where the texts are read again."""
    if submission["suite"][metric.name]["value"] is None:
        return PartStatus(False, "no number is claimed"), []
    if all("texts" in document for document in submission["documents"]):
        told, faults = _again(submission, metric)
        if told or faults:
            return PartStatus(told and not faults, "computed again from the texts"), faults
    if metric.follows_label and labels.verified:
        return PartStatus(True, f"computed again from the labels ({labels.reason})"), []
    reason = "computed again from the records, which are the judge's reading of the answers"
    return PartStatus(False, f"{reason} ({labels.reason})" if metric.follows_label else reason), []


def _again(submission: Mapping[str, Any], metric: SumsMeasure) -> tuple[bool, list[str]]:
    """Whether the texts of all documents tell the record, and where it is another."""
    judge = submission["labels"]["judge"]
    told, faults = True, []
    for i, document in enumerate(submission["documents"]):
        place, stated = f"documents[{i}].suite.{metric.name}", document["suite"][metric.name]
        try:
            record = metric.recomputed(document, judge if isinstance(judge, Mapping) else {})
        except DataError as error:
            faults.append(f"{place}: {error}"[:300])
            continue
        except Exception as error:  # of a suite's code, given a stranger's texts
            return False, [f"{place}: cannot be computed from the texts ({type(error).__name__})"]
        told = told and record is not None
        if record is not None and not _same(record, stated):
            faults.append(f"{place}: stated {stated}, the texts say {dict(record)}"[:300])
    return told, faults[:_MOST]


def _same(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Equal, numbers but for rounding."""

    def equal(a: object, b: object) -> bool:
        both = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (a, b))
        return abs(a - b) <= _TOLERANCE if both else a == b  # type: ignore[operator]

    return ours.keys() == theirs.keys() and all(equal(ours[key], theirs[key]) for key in ours)


def _faults(submission: Mapping[str, Any], metric: SumsMeasure) -> Iterator[str]:
    documents, told = submission["documents"], submission["suite"][metric.name]
    has = sum(metric.name in document.get("suite", {}) for document in documents)
    if not has and told["value"] is None:
        return  # nothing is said, and nothing is claimed
    if has < len(documents):
        yield f"suite.{metric.name}: records of {has} of {len(documents)} documents"
        return
    try:
        yield from _record_faults(documents, metric)
        ours = stated(metric, estimate_of(metric, documents_in(submission, metric)))
    except Exception as error:  # of a suite's code, given a stranger's records
        yield f"documents[].suite.{metric.name}: no records of this metric ({type(error).__name__})"
        return
    for key, value in ours.items():
        theirs = told[key]
        both = isinstance(value, float) and isinstance(theirs, (int, float))
        if not (abs(value - theirs) <= _TOLERANCE if both else value == theirs):
            yield f"suite.{metric.name}.{key}: stated {theirs}, computed {value}"


def _record_faults(documents: Sequence[Mapping[str, Any]], metric: SumsMeasure) -> Iterator[str]:
    for i, document in enumerate(documents):
        fault = metric.fault(document["suite"][metric.name], document)
        if fault:
            yield f"documents[{i}].suite.{metric.name}: {fault[:200]}"


def _strays(submission: Mapping[str, Any]) -> Iterator[str]:
    for i, document in enumerate(submission["documents"]):
        if others := document.get("suite", {}).keys() - submission["suite"].keys():
            yield f"documents[{i}].suite: {min(others)[:80]!r} is none of the submission's"
