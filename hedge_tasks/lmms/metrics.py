"""The rows of lmms-eval's table: from one record a document to a number, or to the reason why there is none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from hedge_tasks.adjudication.outcomes import (
    DECLINED,
    OUTCOME_HALLUCINATED,
    OUTCOME_SUPPORTED,
    SOFTLY_READ,
    outcome_of,
)
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores, auroc_of_pairs, shared_groups, within_strata_auroc
from hedge_tasks.errors import ConfigError
from hedge_tasks.evaluation import brought_metrics
from hedge_tasks.numbers import Number
from hedge_tasks.replies.reading import MODEL
from hedge_tasks.statistics import StratifiedAuroc, estimate_of_sums, estimate_rate, ratio
from hedge_tasks.statistics.base import FloatArray

Record = Mapping[str, Any]

NO_SAMPLES = "they look at sampled answers, and there are none (n: 0)"
"""Why rows are left out of a table."""

NOT_AVAILABLE = "N/A"
"""What lmms-eval shows in a cell that has no number."""


class Metric(Protocol):
    """A row of the table. A task's YAML may bring its own: `{metric: NAME, aggregation: !function utils.MyMetric}`."""

    __name__: str
    higher_is_better: bool

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        """What the aggregation needs of one document, fit for JSON.

        Args:
            scores: of its answers, with label, group and question_type.
            verdict: of the judge: `judge`, `reason` and whatever else it says.
            document: its row of the data set.
        """

    def __call__(self, records: Sequence[Record]) -> float | str:
        """The number, or `"undefined: ..."` with the reason."""

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Its standard error, or `NOT_AVAILABLE`."""


class ScoredCase(NamedTuple):
    """What a ROC-AUC is made of: a document, or a part of one.

    Attributes:
        score: higher = more likely hallucinated; None where there is none.
        label: 1 = hallucinated, 0 = supported; None where it counts for nothing.
        group: what several cases share, such as an image; they vary together.
        question_type: kind of question.
    """

    score: float | None
    label: int | None
    group: str | None
    question_type: str | None = None


class AurocMetric:
    """ROC-AUC of one score against the hallucination labels.

    It is over the documents that have a label and that no threshold was chosen on (those not held out). An evaluation
    with scores, labels or units of its own overrides `record` and `cases`.

    The standard error is DeLong's, by image where questions share images (Obuchowski 1997).

    Args:
        score: name of the detector, its key in `Scores`.
        within: whether only questions of the same kind (the task's `question_type` column) are compared.
    """

    higher_is_better = True
    unit = "document"

    def __init__(self, score: str, *, within: bool = False) -> None:
        self.score, self.within = score, within
        self.__name__ = f"{score}_auroc" + ("_within" if within else "")  # lmms-eval names aggregations in its logs

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        kind = {"question_type": scores.question_type} if self.within else {}
        why = {"left_out": scores.left_out[self.score]} if self.score in scores.left_out else {}
        error = scores.choice_errors.get(self.score)
        extra = {"choice_error": error} if error else {}
        about = {"label": scores.reported_label, "group": scores.group, **kind, **extra, **why}
        return {self.score: scores[self.score], **about}

    @property
    def detectors(self) -> tuple[str, ...]:
        """What has to be scored for this row."""
        return (self.score,)

    def cases(self, record: Record) -> Sequence[ScoredCase]:
        """What a record contributes."""
        return [ScoredCase(record[self.score], record["label"], record["group"], record.get("question_type"))]

    def __call__(self, records: Sequence[Record]) -> float | str:
        estimate = self._estimate(records)
        if estimate.value is not None:
            return estimate.value
        told = sorted({str(record["left_out"]) for record in records if record.get("left_out")})
        why = f" ({'; '.join(told)})" if told else ""
        return f"undefined: {estimate.reason}".replace("document", self.unit) + why

    def stderr(self, records: Sequence[Record]) -> float | str:
        stderr = self._estimate(records).stderr
        return NOT_AVAILABLE if stderr is None else stderr

    def _estimate(self, records: Sequence[Record]) -> Number | StratifiedAuroc:
        cases = [(c, c.label) for record in records for c in self.cases(record) if c.label is not None]
        if self.within:
            return within_strata_auroc([(c.score, label, c.question_type, c.group) for c, label in cases])
        extra = max((record.get("choice_error", 0.0) for record in records), default=0.0)
        return auroc_of_pairs([(c.score, label, c.group) for c, label in cases], extra_stderr=extra)


class OfSums:
    """A row that is a function of sums over documents, such as an F1 or a share of all objects.

    Its standard error and interval are `estimate_of_sums`'s, between groups: those of reports, comparisons and
    leaderboards, to the digit. A subclass says what each document adds, and what these sums make.
    """

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """What each document adds to the sums, shape (n, ...); zeros where it does not count."""
        raise TypeError(f"{type(self).__name__} is abstract")

    def statistic(self, sums: FloatArray) -> FloatArray:
        """Sums, shape (m, ...) -> the number, shape (m,); nan where it is undefined."""
        return ratio(sums)

    def group_of(self, record: Record) -> Hashable:
        """What a document shares with others."""
        group: Hashable = record["group"]
        return group

    def measured(self, records: Sequence[Record]) -> Number:
        """The number with its standard error and 95 % interval."""
        return estimate_of_sums(self.counts(records), [self.group_of(record) for record in records], self.statistic)

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Between groups; `NOT_AVAILABLE` with less than two."""
        stderr = self.measured(records).stderr
        return NOT_AVAILABLE if stderr is None else stderr


class RateMetric:
    """Share of documents with some property; `None` in a record leaves it out."""

    higher_is_better = False

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} is abstract")

    def __call__(self, records: Sequence[Record]) -> float | str:
        values = self._values(records)
        return sum(values) / len(values) if values else "undefined: no document has a label"

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Standard error of a proportion; between images where the records say which questions share one."""
        groups = [r.get("group") for r in records if r["value"] is not None]
        stderr = estimate_rate(self._values(records), groups=shared_groups(groups)).stderr
        return NOT_AVAILABLE if stderr is None else stderr

    def _values(self, records: Sequence[Record]) -> list[int]:
        return [int(r["value"]) for r in records if r["value"] is not None]


class HallucinationRate(RateMetric):
    """Share of hallucinated baseline answers among all labelled ones. The verdict's reason rides along.

    It is about the model, not about a detector: documents that a threshold was chosen on count as well, so that all
    filters of a run have the same rate.
    """

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**verdict, "value": scores.label, "group": scores.group}


class UnlabelledRate(RateMetric):
    """Share of all documents that the judge could not label; no other number knows of them.

    A held-out document has its label and is none of these, although no AUROC counts it.
    """

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(scores.label is None), "group": scores.group}


class OutcomeShare(RateMetric):
    """Share of answers with one outcome, of those that are supported, hallucinated or declined: the three add up to 1.

    `supported_share` is the one to compare models by: it does not grow by declining, while a model that declines has
    less to hallucinate in.
    """

    def __init__(self, name: str, outcome: str) -> None:
        super().__init__(name)
        self.outcome, self.higher_is_better = outcome, outcome == OUTCOME_SUPPORTED

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        known = {OUTCOME_SUPPORTED: 0, OUTCOME_HALLUCINATED: 1}
        came = next((name for name, label in known.items() if scores.label == label), None) or outcome_of(verdict)
        counts = came in (*known, DECLINED)
        return {"value": int(came == self.outcome) if counts else None, "group": scores.group}


class UnconfirmedRate(RateMetric):
    """Share of documents whose reply the rules read only softly, and no second reading confirmed."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(outcome_of(verdict) == SOFTLY_READ), "group": scores.group}


class ReadByModelRate(RateMetric):
    """Share of documents whose reply a judge model read, because the rules could not (`fallback` of the judge)."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("basis") == MODEL), "group": scores.group}


FAILED_RATE = "failed_rate"


class FailedRate(RateMetric):
    """Share of documents that are left out because a draw of theirs failed for good; `HedgeTask` makes its records."""


class CountedDocuments:
    """Number of documents that the AUROCs of this filter rest on: labelled, and not held out by its threshold."""

    __name__ = "auroc_documents"
    higher_is_better = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(scores.reported_label is not None)}

    def __call__(self, records: Sequence[Record]) -> float | str:
        return float(sum(record["value"] for record in records))

    def stderr(self, records: Sequence[Record]) -> float | str:
        return NOT_AVAILABLE


class OfQuestionType:
    """Another metric, over the documents of one kind only (the task's `question_type` column).

    Example, in the `utils.py` beside a YAML with `{metric: se_auroc_closed, aggregation: !function utils.se_closed}`:
        >>> se_closed = OfQuestionType(AurocMetric("se"), "closed")
        >>> se_closed.__name__
        'se_auroc_closed'
    """

    def __init__(self, metric: Metric, question_type: str) -> None:
        self.metric = metric
        self.question_type = question_type
        self.higher_is_better = metric.higher_is_better
        self.detectors = tuple(getattr(metric, "detectors", ()))
        self.claim_detectors = tuple(getattr(metric, "claim_detectors", ()))
        self.__name__ = f"{metric.__name__}_{question_type}"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {**self.metric.record(scores, verdict, document), "question_type": scores.question_type}

    def __call__(self, records: Sequence[Record]) -> float | str:
        mine = self._mine(records)
        return self.metric(mine) if mine else f"undefined: no document is of the kind {self.question_type!r}"

    def stderr(self, records: Sequence[Record]) -> float | str:
        mine = self._mine(records)
        return self.metric.stderr(mine) if mine else NOT_AVAILABLE

    def _mine(self, records: Sequence[Record]) -> list[Record]:
        return [record for record in records if record["question_type"] == self.question_type]


def looks_at_samples(metric: Any) -> bool:
    """Whether a row is about sampled answers: all its detectors cost draws, or it says `of_samples` itself."""
    known = {*registry.names(), *registry.names("claim")}
    detectors = [registry.get(name) for name in getattr(metric, "detectors", ()) if name in known]
    return bool(getattr(metric, "of_samples", False)) or (
        bool(detectors) and all(detector.draws(1, 1) > 0 for detector in detectors)
    )


def known_metrics() -> dict[str, Metric]:
    """Every metric that a task's YAML may list: two for every detector, and what is not about detectors."""
    names = registry.names()
    return {
        **{f"{name}_auroc": AurocMetric(name) for name in names},
        **{f"{name}_auroc_within": AurocMetric(name, within=True) for name in names},
        "hallucination_rate": HallucinationRate("hallucination_rate"),
        "unlabelled_rate": UnlabelledRate("unlabelled_rate"),
        "auroc_documents": CountedDocuments(),
        "supported_share": OutcomeShare("supported_share", OUTCOME_SUPPORTED),
        "hallucinated_share": OutcomeShare("hallucinated_share", OUTCOME_HALLUCINATED),
        "declined_share": OutcomeShare("declined_share", DECLINED),
        "unconfirmed_rate": UnconfirmedRate("unconfirmed_rate"),
        "read_by_model_rate": ReadByModelRate("read_by_model_rate"),
    }


def own_metrics(evaluation: str | None, task: str) -> dict[str, Any]:
    """The metrics that an evaluation brings; none where a task names none.

    Raises:
        ConfigError: there is no such evaluation; names the task.
    """
    if evaluation is None:
        return {}
    try:
        return brought_metrics(evaluation)
    except ConfigError as error:
        raise ConfigError(f"{task}: {error}") from None
