"""The rows of MedHallu's tables. Positive class: hallucinated.

Documents without a verdict 0 or 1 are in none but the rates and the rows `..._unread_wrong`.

As in the reference code (scikit-learn with `zero_division=0`), precision, recall and F1 are 0 where nothing is called
hallucinated.
"""

from __future__ import annotations

import math
import statistics as stdlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores
from hedge_tasks.evaluations.medhallu.documents import CATEGORIES
from hedge_tasks.evaluations.medhallu.judge import FACTUAL, HALLUCINATED, NOT_SURE, VERDICTS
from hedge_tasks.evaluations.medhallu.mesh import MESH
from hedge_tasks.lmms.metrics import AurocMetric, Metric, OfSums, RateMetric, Record, ScoredCase
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.statistics.sums import of_values

Counts = np.ndarray
"""True negatives, false negatives, false positives, true positives; shape (..., 4)."""


def precision(counts: Counts) -> np.ndarray:
    _, _, fp, tp = np.moveaxis(counts, -1, 0)
    return _ratio(tp, tp + fp)


def recall(counts: Counts) -> np.ndarray:
    _, fn, _, tp = np.moveaxis(counts, -1, 0)
    return _ratio(tp, tp + fn)


def f1(counts: Counts) -> np.ndarray:
    _, fn, fp, tp = np.moveaxis(counts, -1, 0)
    return _ratio(2 * tp, 2 * tp + fp + fn)


def accuracy(counts: Counts) -> np.ndarray:
    tn, fn, fp, tp = np.moveaxis(counts, -1, 0)
    return _ratio(tp + tn, tp + fp + fn + tn)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


class Detection(OfSums):
    """A measure of the confusion matrix of verdicts and truth, over all answered documents or those of one kind.

    Args:
        measure: `f1`, `precision`, `recall` or `accuracy`.
        column: of the documents, to keep only those with `value` in it; None keeps all.
        suffix: what the name ends with, where that is not the value.
        parsing: whose reading of the replies counts; None for the one that decides in this task.
        unread_wrong: an unreadable reply counts as the wrong verdict, and is not left out. "Not sure" still is.
    """

    higher_is_better = True

    def __init__(
        self,
        measure: Callable[[Counts], np.ndarray],
        column: str | None = None,
        value: str = "",
        suffix: str = "",
        *,
        parsing: str | None = None,
        unread_wrong: bool = False,
    ) -> None:
        self.measure, self.column, self.value = measure, column, value
        self.parsing, self.unread_wrong = parsing, unread_wrong
        self.__name__ = "_".join(filter(None, (measure.__name__, suffix or value)))

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        kept = self.column is None or document[self.column] == self.value
        said = self._said(verdict, document) if kept else None
        return {"said": said, "truth": int(document["truth"]), "row": document["row"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        sums = self.counts(records).sum(axis=0)
        if not sums.any():
            return (
                "undefined: no document"
                + (f" with {self.column} {self.value}" if self.column else "")
                + " has a verdict"
            )
        return float(self.measure(sums))

    def counts(self, records: Sequence[Record]) -> Counts:
        """The cell of the confusion matrix that each document is in; zeros where no verdict counts."""
        counts = np.zeros((len(records), 4))
        for row, record, said in zip(counts, records, self._verdicts(records), strict=True):
            if said is not None:
                row[2 * int(said) + int(record["truth"])] = 1
        return counts

    def statistic(self, sums: FloatArray) -> FloatArray:
        """The measure; nan where there is no verdict at all."""
        return np.where(sums.sum(axis=-1) > 0, self.measure(sums), np.nan)

    def group_of(self, record: Record) -> Hashable:
        """Both answers of a row of the data set stay together."""
        return str(record["row"])

    def _said(self, verdict: Record, document: Record) -> int | None:
        if self.parsing is not None:
            verdict = next(vote for vote in verdict["votes"] if str(vote["judge"]).endswith(f":{self.parsing}"))
        category = verdict.get("category")
        if category is None and self.unread_wrong:
            return 1 - int(document["truth"])
        return VERDICTS[category] if category in (FACTUAL, HALLUCINATED) else None

    def _verdicts(self, records: Sequence[Record]) -> list[int | None]:
        return [record["said"] for record in records]


class MajorityVote(Detection):
    """The same measure of what most of the sampled verdicts say; where they are even, of the baseline's."""

    of_samples = True

    def __init__(self, measure: Callable[[Counts], np.ndarray]) -> None:
        super().__init__(measure, suffix="majority")

    def _said(self, verdict: Record, document: Record) -> int | None:
        if not document["sampled"]:
            return None
        share = hallucinated_share(document["sampled"])
        if share is None or share == 0.5:
            return super()._said(verdict, document)
        return int(share > 0.5)


def hallucinated_share(sampled: Sequence[str]) -> float | None:
    """Share of the sampled verdicts 0 and 1 that say hallucinated; None where there is no such verdict.

    Example:
        >>> hallucinated_share(["factual", "hallucinated", "not_sure", "unreadable"])
        0.5
    """
    said = [VERDICTS[name] for name in sampled if name in (FACTUAL, HALLUCINATED)]
    return sum(said) / len(said) if said else None


class HallucinatedShareAuroc(AurocMetric):
    """ROC-AUC of the share of sampled verdicts that say hallucinated, against the truth of the shown answer.

    The natural detector of this benchmark. It needs no baseline verdict, and no perturbed prompts.
    """

    of_samples = True

    def __init__(self) -> None:
        super().__init__("hallucinated_share")

    @property
    def detectors(self) -> tuple[str, ...]:
        return ()

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        share = hallucinated_share(document["sampled"])
        truth = int(document["truth"]) if share is not None else None
        return {"share": share, "truth": truth, "row": document["row"]}

    def cases(self, record: Record) -> Sequence[ScoredCase]:
        return [ScoredCase(record["share"], record["truth"], record["row"])]


def hallucinated_probability(one_token: Sequence[tuple[str, float]]) -> float | None:
    r"""The model's own p(1) / (p(0) + p(1)), from verdicts of a single token.

    .. math:: p = \frac{e^{\ell_1}}{e^{\ell_0} + e^{\ell_1}}

    The log-probabilities are of the raw distribution, the same for every draw of a prompt. Where only one of the two
    verdicts was ever drawn, all that its token leaves is taken for the other one, which is the least that can be said
    for the first. Replies of several tokens count for nothing: their mean says little of the verdict.

    Args:
        one_token: verdict ("factual", "hallucinated") and log-probability of answers to the same prompt.

    Returns:
        A probability; None where no verdict is of one token.

    Example:
        >>> round(hallucinated_probability([("hallucinated", -0.5), ("factual", -1.5), ("factual", -1.5)]), 3)
        0.731
    """
    known: dict[str, list[float]] = {FACTUAL: [], HALLUCINATED: []}
    for said, logprob in one_token:
        if said in known:
            known[said].append(math.exp(logprob))
    means = {said: math.fsum(values) / len(values) for said, values in known.items() if values}
    if not means:
        return None
    factual = means.get(FACTUAL, 1.0 - means.get(HALLUCINATED, 0.0))
    hallucinated = means.get(HALLUCINATED, 1.0 - factual)
    return hallucinated / (factual + hallucinated) if factual + hallucinated else None


class HallucinatedProbabilityAuroc(AurocMetric):
    """ROC-AUC of p(1) against p(0) against the truth of the shown answer; see `hallucinated_probability`."""

    def __init__(self) -> None:
        super().__init__("hallucinated_probability")

    @property
    def detectors(self) -> tuple[str, ...]:
        return ()

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        probability = hallucinated_probability(document["one_token"])
        truth = int(document["truth"]) if probability is not None else None
        return {"probability": probability, "truth": truth, "row": document["row"]}

    def cases(self, record: Record) -> Sequence[ScoredCase]:
        return [ScoredCase(record["probability"], record["truth"], record["row"])]


class VerdictWrongAuroc(AurocMetric):
    """ROC-AUC of a detector against "the model's verdict is wrong", which is not whether the shown answer is."""

    def __init__(self, score: str) -> None:
        super().__init__(score)
        self.__name__ = f"verdict_wrong_{score}_auroc"


class AlwaysHallucinated(Detection):
    """What the same measure is for a model that calls everything hallucinated."""

    def __init__(self, measure: Callable[[Counts], np.ndarray]) -> None:
        super().__init__(measure, suffix="constant")

    def _said(self, verdict: Record, document: Record) -> int | None:
        return 1


class ShorterIsHallucinated(Detection):
    """What the same measure is where an answer shorter than the median of the shown answers is called hallucinated.

    Hallucinated answers are shorter on average (204 against 268 characters in pqa_labeled), and a model that gets no
    further than this guess has learnt nothing about medicine. Its standard error takes the median as given.
    """

    def __init__(self, measure: Callable[[Counts], np.ndarray]) -> None:
        super().__init__(measure, suffix="length")

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"length": document["length"], "truth": int(document["truth"]), "row": document["row"]}

    def _verdicts(self, records: Sequence[Record]) -> list[int | None]:
        if not records:
            return []
        median = stdlib.median(record["length"] for record in records)
        return [int(record["length"] < median) for record in records]


class LengthAuroc(AurocMetric):
    """ROC-AUC of the shown answers' shortness against the truth: the length alone, without a threshold."""

    higher_is_better = False

    def __init__(self) -> None:
        super().__init__("length")

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"shortness": -float(document["length"]), "truth": int(document["truth"]), "row": document["row"]}

    def cases(self, record: Record) -> Sequence[ScoredCase]:
        return [ScoredCase(record["shortness"], record["truth"], record["row"])]


class RowRate(OfSums, RateMetric):
    """Share of documents, where both answers of a row of the data set stay together."""

    def counts(self, records: Sequence[Record]) -> FloatArray:
        return of_values([record["value"] for record in records])


class ResponseRate(RowRate):
    """Share of documents with a verdict 0 or 1 (the paper's response rate)."""

    higher_is_better = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("category") in (FACTUAL, HALLUCINATED)), "group": document["row"]}


class NotSureRate(RowRate):
    """Share of documents whose reply is "not sure", over all or those of one difficulty.

    Args:
        level: of difficulty; "" for all.
    """

    def __init__(self, level: str = "") -> None:
        super().__init__("_".join(filter(None, ("not_sure_rate", level))))
        self.level = level

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        counts = self.level in ("", document["difficulty"])
        return {"value": int(verdict.get("category") == NOT_SURE) if counts else None, "group": document["row"]}

    def __call__(self, records: Sequence[Record]) -> float | str:
        if not self._values(records):
            return f"undefined: no document with difficulty {self.level}"
        return super().__call__(records)


class UnreadableRate(RowRate):
    """Share of documents whose reply states no verdict, not even "not sure". None of the other rows knows of them."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(verdict.get("category") is None), "group": document["row"]}


class SampledUnreadableRate(RowRate):
    """Share of documents of which a sampled reply cannot be read. Together these replies are one meaning."""

    of_samples = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        return {"value": int(UNREADABLE in document["sampled"]), "group": document["row"]}


class ParsersDiffer(RowRate):
    """Share of replies that our reading and the reference code's read differently."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        readings = {vote.get("category") for vote in verdict["votes"]}
        return {"value": int(len(readings) > 1), "group": document["row"]}


LEVELS = ("easy", "medium", "hard")
"""How hard a row's hallucinated answer is to tell from the true one."""


def _by_name(metrics: Sequence[Metric]) -> dict[str, Metric]:
    return {metric.__name__: metric for metric in metrics}


METRICS: Mapping[str, Metric] = _by_name(
    [
        *(Detection(measure) for measure in (f1, precision, recall, accuracy)),
        *(Detection(m, "difficulty", level) for m in (f1, precision, recall, accuracy) for level in LEVELS),
        *(Detection(accuracy, "kind", kind) for kind in CATEGORIES),
        *(Detection(accuracy, "mesh", letter, f"mesh_{name}") for letter, name in MESH.items()),
        *(Detection(measure, suffix="official", parsing=OFFICIAL) for measure in (f1, precision, recall, accuracy)),
        *(Detection(measure, suffix="unread_wrong", unread_wrong=True) for measure in (f1, accuracy)),
        *(MajorityVote(measure) for measure in (f1, accuracy)),
        *(VerdictWrongAuroc(score) for score in (*SCORE_NAMES, "baseline_nll")),
        HallucinatedShareAuroc(),
        HallucinatedProbabilityAuroc(),
        AlwaysHallucinated(f1),
        ShorterIsHallucinated(f1),
        ShorterIsHallucinated(accuracy),
        LengthAuroc(),
        ResponseRate("response_rate"),
        *(NotSureRate(level) for level in ("", *LEVELS)),
        UnreadableRate("unreadable_rate"),
        SampledUnreadableRate("sampled_unreadable_rate"),
        ParsersDiffer("parsers_differ"),
    ]
)
"""Every metric of this benchmark, by the name that its row has."""
