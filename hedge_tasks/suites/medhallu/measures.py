"""The rows of MedHallu's tables. Positive class: hallucinated.

Documents without a verdict 0 or 1 are in none but the rates and the rows `..._unread_wrong`.

As in the reference code (scikit-learn with `zero_division=0`), precision, recall and F1 are 0 where nothing is called
hallucinated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import Unit
from hedge_tasks.measures.measure import Auroc, Measure, Record, SumsMeasure
from hedge_tasks.measures.standard_measures import DetectorAuroc
from hedge_tasks.replies.parsing import OFFICIAL
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.suites.medhallu.documents import CATEGORIES, verdict_columns
from hedge_tasks.suites.medhallu.judge import FACTUAL, HALLUCINATED, NOT_SURE, VERDICTS
from hedge_tasks.suites.medhallu.mesh import MESH
from hedge_tasks.suites.readings import readings_differ, vote_of
from hedge_tasks.suites.shares import MeanOf

FORMULAS: Mapping[str, tuple[Sequence[float], Sequence[float]]] = {
    "f1": ((0, 0, 0, 2), (0, 1, 1, 2)),
    "precision": ((0, 0, 0, 1), (0, 0, 1, 1)),
    "recall": ((0, 0, 0, 1), (0, 1, 0, 1)),
    "accuracy": ((1, 0, 0, 1), (1, 1, 1, 1)),
}
"""How often true negatives, false negatives, false positives and true positives count in its numerator and below."""


def of_confusion(name: str, counts: FloatArray) -> FloatArray:
    """Return a number of confusion matrices: 0 where its denominator is, nan of an empty matrix.

    Args:
        name: one of `FORMULAS`.
        counts: true negatives, false negatives, false positives, true positives; shape (..., 4).

    Returns:
        Shape (...).
    """
    part, whole = (counts @ np.array(weights, dtype=np.float64) for weights in FORMULAS[name])
    return np.where(counts.sum(axis=-1) > 0, part / np.where(whole > 0, whole, np.inf), np.nan)


_STATED = {name: VERDICTS[name] for name in (FACTUAL, HALLUCINATED)}

_READ = ("truth", "row")
"""Columns of the documents that every verdict is compared with."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Detection(SumsMeasure):
    """A number of the confusion matrix of verdicts and truth, over all answered documents or some of them.

    Attributes:
        formula: one of `FORMULAS`.
        among: columns of the documents, with the value that each must have.
        parsing: whose reading of the replies counts; None for the one that decides in this task.
        unread_wrong: an unreadable reply counts as the wrong verdict, and is not left out. "Not sure" still is.
    """

    formula: str
    among: Mapping[str, str] = field(default_factory=dict)
    parsing: str | None = None
    unread_wrong: bool = False
    columns: tuple[str, ...] = _READ
    beyond_experts: str = "of a part of the documents, or of another reading of the replies"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        counts = all(document[column] == value for column, value in self.among.items())
        called = self._called(verdict, document) if counts else None
        return {"said": called, "truth": int(document["truth"]), "row": document["row"]}

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Return the cell of the confusion matrix that each document is in; zeros where no verdict counts."""
        counts = np.zeros((len(records), 4))
        for row, record in zip(counts, records, strict=True):
            if record["said"] is not None:
                row[2 * int(record["said"]) + int(record["truth"])] = 1
        return counts

    def statistic(self, sums: FloatArray) -> FloatArray:
        return of_confusion(self.formula, sums)

    def group_of(self, record: Record) -> Hashable:
        """Return the row of the data set: both of its answers stay together."""
        return str(record["row"])

    def why_undefined(self, records: Sequence[Record]) -> str:
        where = ", ".join(f"{column} {value}" for column, value in self.among.items())
        return f"no document{f' with {where}' if where else ''} has a verdict"

    def with_label(self, record: Record, label: int | None) -> Record:
        """Return the record under another label, where a wrong verdict is the other one.

        Where experts find no verdict, the document counts for nothing, or as wrong.
        """
        if self.among or self.parsing is not None:
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
        missing: why a document has none.
        score: document -> score; None where it has none.
    """

    missing: str
    score: Callable[[Record], float | None]
    columns: tuple[str, ...] = _READ
    kept: bool = True

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        value = self.score(document)
        # Not "score": lmms-eval would average a field of that name.
        record = {"verdict_score": value, "truth": int(document["truth"]), "row": document["row"]}
        return record if value is not None else {**record, "truth": None, "left_out": self.missing}

    def cases(self, record: Record) -> Sequence[Unit]:
        return [Unit("", record["truth"], record["row"], numbers={self.name: record["verdict_score"]})]

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


LEVELS = ("easy", "medium", "hard")
"""How hard a row's hallucinated answer is to tell from the true one."""


def _detection(formula: str, suffix: str = "", title: str = "", **declared: Any) -> Detection:
    names_it = {"name": "_".join(filter(None, (formula, suffix))), "title": title, "formula": formula}
    return Detection(**{**names_it, **declared})


def _among(formula: str, suffix: str, title: str, among: Mapping[str, str], **declared: Any) -> Detection:
    columns = tuple(dict.fromkeys((*_READ, *among)))
    return _detection(formula, suffix, title, among=among, columns=columns, **declared)


def _by_level(formula: str, title: str, **declared: Any) -> list[Detection]:
    about = f"{title} over the hallucinations that the paper calls {{}} to detect."
    return [
        _among(formula, level, f"{title}, {level}", {"difficulty": level}, about=about.format(level), **declared)
        for level in LEVELS
    ]


def _rate(name: str, has: Callable[[Record, Record], bool | None], **declared: Any) -> MeanOf:
    """Declare a share of replies with some property; None where a document does not count."""
    defaults = {"higher_is_better": False, "nothing": "no document has a label", "group_by": "row"}
    return MeanOf(name=name, value_of=has, **{**defaults, **declared})


def _not_sure(level: str = "") -> MeanOf:
    def has(verdict: Record, document: Record) -> bool | None:
        return verdict.get("category") == NOT_SURE if level in ("", document["difficulty"]) else None

    declared = {"nothing": f"no document with difficulty {level}", "title": f"not sure, {level}"}
    return _rate(
        "_".join(filter(None, ("not_sure_rate", level))),
        has,
        about='Share of the replies that are "not sure", where that is offered.',
        columns=("row", "difficulty"),
        kept=not level,
        **(declared if level else {"title": "not sure"}),
    )


MEASURES: tuple[Measure, ...] = (
    _detection(
        "f1",
        title="F1",
        about="Of the answers called hallucinated and those that are: twice what both share, over their sum.",
        kept=True,
        leads=True,
    ),
    _detection(
        "accuracy",
        about="Share of shown answers that are called what they are: true, or hallucinated.",
        kept=True,
        leads=True,
    ),
    _detection("precision", about="Of the answers called hallucinated, the share that is.", kept=True),
    _detection("recall", about="Of the hallucinated answers, the share that is called so.", kept=True),
    *(
        _detection(
            formula,
            "unread_wrong",
            f"{title}, unreadable is wrong",
            about=f"{title} where a reply that states no verdict counts as a wrong one.",
            unread_wrong=True,
            kept=True,
        )
        for formula, title in (("f1", "F1"), ("accuracy", "accuracy"))
    ),
    *_by_level("f1", "F1", kept=True),
    _not_sure(),
    VerdictScoreAuroc(
        name="hallucinated_share_auroc",
        about="ROC-AUC of the share of sampled verdicts that say hallucinated.",
        missing="no sampled reply states a verdict",
        score=lambda document: hallucinated_share(document["sampled"]),
        of_samples=True,
    ),
    VerdictScoreAuroc(
        name="hallucinated_probability_auroc",
        about="ROC-AUC of the model's own p(1) against p(0), by forced passes over both digits.",
        missing="the model does not tell how likely 0 and 1 are as whole replies",
        score=lambda document: hallucinated_probability(document["digits"]),
        passes=("forced_options",),
    ),
    *(measure for formula in ("precision", "recall", "accuracy") for measure in _by_level(formula, formula)),
    *(_among("accuracy", kind, kind, {"kind": kind}) for kind in CATEGORIES),
    # Of the hallucinated answers alone, so that n counts these.
    *(_among("recall", kind, kind, {"kind": kind, "truth": "1"}) for kind in CATEGORIES),
    *(_among("accuracy", f"mesh_{name}", name, {"mesh": letter}) for letter, name in MESH.items()),
    *(_detection(formula, "official", parsing=OFFICIAL) for formula in FORMULAS),
    # Against "the model's verdict is wrong", which is not whether the shown answer is.
    *(DetectorAuroc(name=f"verdict_wrong_{d}_auroc", detector=d) for d in names("verdict")),
    _rate(
        "response_rate",
        lambda verdict, document: verdict.get("category") in _STATED,
        title="answered",
        about="Share of documents with a verdict 0 or 1 (the paper's response rate).",
        higher_is_better=True,
    ),
    *map(_not_sure, LEVELS),
    _rate(
        "unreadable_rate",
        lambda verdict, document: verdict.get("category") is None,
        about='Share of documents whose reply states no verdict, not even "not sure". No other number knows of them.',
    ),
    _rate(
        "sampled_unreadable_rate",
        lambda verdict, document: UNREADABLE in document["sampled"],
        about="Share of documents of which a sampled reply cannot be read. Together these replies are one meaning.",
        of_samples=True,
    ),
    _rate(
        "parsers_differ",
        lambda verdict, document: readings_differ(verdict),
        about="Share of replies that our reading and the reference code's read differently.",
    ),
)
"""Every measure of this benchmark; F1 leads, as in the paper's tables."""
