"""The rows of MedHallu's tables. Positive class: hallucinated.

Documents without a verdict 0 or 1 are in none but the rates and the rows `..._unread_wrong`.

As in the reference code (scikit-learn with `zero_division=0`), precision, recall and F1 are 0 where nothing is called
hallucinated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import Unit
from hedge_tasks.measures.measure import Auroc, Mean, Measure, Record, SumsMeasure
from hedge_tasks.measures.standard_measures import DetectorAuroc
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.suites.medhallu.documents import CATEGORIES, verdict_columns
from hedge_tasks.suites.medhallu.judge import FACTUAL, HALLUCINATED, NOT_SURE, VERDICTS
from hedge_tasks.suites.medhallu.mesh import MESH
from hedge_tasks.suites.readings import readings_differ, vote_of

Counts = np.ndarray
"""True negatives, false negatives, false positives, true positives; shape (..., 4)."""

Formula = Callable[[Counts], np.ndarray]
"""Counts of shape (..., 4) -> a number of each confusion matrix, shape (...)."""


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


_STATED = {name: VERDICTS[name] for name in (FACTUAL, HALLUCINATED)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Detection(SumsMeasure):
    """A number of the confusion matrix of verdicts and truth, over all answered documents or those of one kind.

    Attributes:
        formula: `f1`, `precision`, `recall` or `accuracy`.
        column: of the documents, to keep only those with `value` in it; None keeps all.
        parsing: whose reading of the replies counts; None for the one that decides in this task.
        unread_wrong: an unreadable reply counts as the wrong verdict, and is not left out. "Not sure" still is.
    """

    formula: Formula
    column: str | None = None
    value: str = ""
    parsing: str | None = None
    unread_wrong: bool = False
    beyond_experts: str = "of a part of the documents, or of another reading of the replies"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        counts = self.column is None or document[self.column] == self.value
        called = self._called(verdict, document) if counts else None
        return {"said": called, "truth": int(document["truth"]), "row": document["row"]}

    def counts(self, records: Sequence[Record]) -> Counts:
        """Return the cell of the confusion matrix that each document is in; zeros where no verdict counts."""
        counts = np.zeros((len(records), 4))
        for row, record in zip(counts, records, strict=True):
            if record["said"] is not None:
                row[2 * int(record["said"]) + int(record["truth"])] = 1
        return counts

    def statistic(self, sums: FloatArray) -> FloatArray:
        return np.where(sums.sum(axis=-1) > 0, self.formula(sums), np.nan)

    def group_of(self, record: Record) -> Hashable:
        """Return the row of the data set: both of its answers stay together."""
        return str(record["row"])

    def why_undefined(self, records: Sequence[Record]) -> str:
        return f"no document{f' with {self.column} {self.value}' if self.column else ''} has a verdict"

    def with_label(self, record: Record, label: int | None) -> Record:
        """Return the record under another label, where a wrong verdict is the other one.

        Where experts find no verdict, the document counts for nothing, or as wrong.
        """
        if self.column is not None or self.parsing is not None:
            raise LookupError(self.name)  # of some documents, of another reading, or of other replies
        wrong = label == 1 or (label is None and self.unread_wrong)
        called = None if label is None and not wrong else record["truth"] ^ wrong
        return {**record, "said": called}

    def _called(self, verdict: Record, document: Record) -> int | None:
        """Return what a verdict calls the shown answer: 1 hallucinated, 0 factual; None where it says neither."""
        if self.parsing is not None:
            verdict = vote_of(verdict, self.parsing)
        category = verdict.get("category")
        if category is None and self.unread_wrong:
            return 1 - int(document["truth"])
        return _STATED.get(str(category))


@dataclass(frozen=True, eq=False, kw_only=True)
class CategoryRecall(Detection):
    """Recall over the rows of one category: of their hallucinated answers alone, so that n counts these."""

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        of_detection = super().record(scores, verdict, document)
        return of_detection if of_detection["truth"] == 1 else {**of_detection, "said": None}

    def why_undefined(self, records: Sequence[Record]) -> str:
        return f"no hallucinated answer of {self.column} {self.value} has a verdict"


def hallucinated_share(sampled: Sequence[str]) -> float | None:
    """Share of the sampled verdicts 0 and 1 that say hallucinated; None where there is no such verdict.

    Example:
        >>> hallucinated_share(["factual", "hallucinated", "not_sure", "unreadable"])
        0.5
    """
    verdicts = [VERDICTS[name] for name in sampled if name in (FACTUAL, HALLUCINATED)]
    return sum(verdicts) / len(verdicts) if verdicts else None


@dataclass(frozen=True, eq=False, kw_only=True)
class VerdictScoreAuroc(Auroc):
    """ROC-AUC of a score of the verdicts against the truth of the shown answer.

    It needs no baseline verdict, and no perturbed prompts.

    Attributes:
        key: of the score in a record.
        score: document -> score; None where it has none.
        missing: why a document has none.
    """

    key: str
    missing: str = "it has no score"
    score: Callable[[Record], float | None]

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        value = self.score(document)
        truth = int(document["truth"]) if value is not None else None
        why = {"left_out": self.missing} if value is None else {}
        return {self.key: value, "truth": truth, "row": document["row"], **why}

    def cases(self, record: Record) -> Sequence[Unit]:
        return [Unit("", record["truth"], record["row"], numbers={self.name: record[self.key]})]

    def facts(self, answers: AnswerSet) -> Record:
        return verdict_columns(answers)


def hallucinated_probability(digits: Mapping[str, float]) -> float | None:
    r"""Return the model's own p(1) / (p(0) + p(1)), with each digit as the whole reply.

    .. math:: p = \frac{e^{\ell_1}}{e^{\ell_0} + e^{\ell_1}}

    Both digits are forced after the same prompt, end of the reply included: nothing is drawn, and nothing is guessed
    about what was not drawn.

    Args:
        digits: digit -> log-probability as the whole reply, in nats.

    Returns:
        A probability; None where one of the two is not known, or the model never says either.

    Example:
        >>> round(hallucinated_probability({"0": -1.5, "1": -0.5}), 3)
        0.731
    """
    if not {"0", "1"} <= digits.keys() or max(digits["0"], digits["1"]) == -math.inf:
        return None
    return 1 / (1 + math.exp(min(digits["0"] - digits["1"], _LARGEST_EXPONENT)))


_LARGEST_EXPONENT = 700.0
"""Beyond, a probability is 0 to the last digit, and exp would overflow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReplyRate(Mean):
    """Share of documents whose replies have some property; both answers of a row of the data set stay together.

    Attributes:
        has: verdict and document -> whether a document has it; None where it does not count.
    """

    has: Callable[[Record, Record], bool | None]
    higher_is_better: bool = False
    nothing: str = "no document has a label"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        has = self.has(verdict, document)
        return {"value": None if has is None else int(has), "group": document["row"]}


LEVELS = ("easy", "medium", "hard")
"""How hard a row's hallucinated answer is to tell from the true one."""

_READ = ("truth", "row")
"""Columns of the documents that every verdict is compared with."""


def _detection(formula: Formula, suffix: str = "", **declared: Any) -> Detection:
    name = "_".join(filter(None, (formula.__name__, suffix)))
    columns = (*_READ, *filter(None, (declared.get("column"),)))
    return Detection(name=name, formula=formula, columns=columns, **declared)


def _by_level(formula: Formula, title: str) -> list[Detection]:
    return [
        _detection(
            formula,
            level,
            title=f"{title}, {level}",
            about=f"{title} over the hallucinations that the paper calls {level} to detect.",
            column="difficulty",
            value=level,
            kept=formula is f1,
        )
        for level in LEVELS
    ]


def _not_sure(level: str = "") -> ReplyRate:
    def has(verdict: Record, document: Record) -> bool | None:
        return verdict.get("category") == NOT_SURE if level in ("", document["difficulty"]) else None

    return ReplyRate(
        name="_".join(filter(None, ("not_sure_rate", level))),
        title=f"not sure{f', {level}' if level else ''}",
        about='Share of the replies that are "not sure", where that is offered.',
        has=has,
        nothing=f"no document with difficulty {level}" if level else ReplyRate.nothing,
        columns=("row", "difficulty"),
        kept=not level,
    )


MEASURES: tuple[Measure, ...] = (
    _detection(
        f1,
        title="F1",
        about="Of the answers called hallucinated and those that are: twice what both share, over their sum.",
        kept=True,
        leads=True,
    ),
    _detection(
        accuracy,
        title="accuracy",
        about="Share of shown answers that are called what they are: true, or hallucinated.",
        kept=True,
        leads=True,
    ),
    _detection(precision, about="Of the answers called hallucinated, the share that is.", kept=True),
    _detection(recall, about="Of the hallucinated answers, the share that is called so.", kept=True),
    _detection(
        f1,
        "unread_wrong",
        title="F1, unreadable is wrong",
        about="F1 where a reply that states no verdict counts as a wrong one.",
        unread_wrong=True,
        kept=True,
    ),
    _detection(
        accuracy,
        "unread_wrong",
        title="accuracy, unreadable is wrong",
        about="Where a reply that states no verdict is a wrong one.",
        unread_wrong=True,
        kept=True,
    ),
    *_by_level(f1, "F1"),
    _not_sure(),
    VerdictScoreAuroc(
        name="hallucinated_share_auroc",
        about="ROC-AUC of the share of sampled verdicts that say hallucinated.",
        key="share",
        missing="no sampled reply states a verdict",
        score=lambda document: hallucinated_share(document["sampled"]),
        columns=_READ,
        also=("hallucinated_share",),
        of_samples=True,
        kept=True,
    ),
    VerdictScoreAuroc(
        name="hallucinated_probability_auroc",
        about="ROC-AUC of the model's own p(1) against p(0), by forced passes over both digits.",
        key="probability",
        missing="the model does not tell how likely 0 and 1 are as whole replies",
        score=lambda document: hallucinated_probability(document["digits"]),
        columns=_READ,
        also=("hallucinated_probability",),
        passes=("forced_options",),
        kept=True,
    ),
    *(measure for formula in (precision, recall, accuracy) for measure in _by_level(formula, formula.__name__)),
    *(_detection(accuracy, kind, title=kind, column="kind", value=kind) for kind in CATEGORIES),
    *(
        CategoryRecall(
            name=f"recall_{kind}", formula=recall, title=kind, column="kind", value=kind, columns=(*_READ, "kind")
        )
        for kind in CATEGORIES
    ),
    *(_detection(accuracy, f"mesh_{n}", title=n, column="mesh", value=letter) for letter, n in MESH.items()),
    *(_detection(formula, "official", parsing=OFFICIAL) for formula in (f1, precision, recall, accuracy)),
    # Against "the model's verdict is wrong", which is not whether the shown answer is.
    *(DetectorAuroc(name=f"verdict_wrong_{d}_auroc", detector=d) for d in names("verdict")),
    ReplyRate(
        name="response_rate",
        title="answered",
        about="Share of documents with a verdict 0 or 1 (the paper's response rate).",
        has=lambda verdict, document: verdict.get("category") in _STATED,
        higher_is_better=True,
    ),
    *map(_not_sure, LEVELS),
    ReplyRate(
        name="unreadable_rate",
        about='Share of documents whose reply states no verdict, not even "not sure". No other number knows of them.',
        has=lambda verdict, document: verdict.get("category") is None,
    ),
    ReplyRate(
        name="sampled_unreadable_rate",
        about="Share of documents of which a sampled reply cannot be read. Together these replies are one meaning.",
        has=lambda verdict, document: UNREADABLE in document["sampled"],
        of_samples=True,
    ),
    ReplyRate(
        name="parsers_differ",
        about="Share of replies that our reading and the reference code's read differently.",
        has=lambda verdict, document: readings_differ(verdict),
    ),
)
"""Every measure of this benchmark; F1 leads, as in the paper's tables."""
