"""The value of "not sure": the risk at its coverage, beside that of a model that must answer and says how sure it is.

A model that may say "not sure" answers a share of the documents (coverage) and errs on a share of these (risk). The
same model without the option answers all; leaving out those of which a score is least sure gives the same coverage at
another risk. Where that is no higher, the option is not worth a prompt of its own.

The risk where the option is offered is a share, with a share's interval. The risk at a coverage is no function of sums
over documents (who is left out follows from all of them): its error, and that of its difference from the former, is the
jackknife's over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import evidence_of, get
from hedge_tasks.measures.measure import Record, by_name
from hedge_tasks.measures.run_measures import documents_of
from hedge_tasks.numbers import Column, Format, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.statistics import estimate_of_sums, jackknife, ratio
from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray
from hedge_tasks.suites.medhallu.measures import MEASURES
from hedge_tasks.suites.medhallu.tables import ReadRun, paired

_LEAST = 1e-9

SCORES = ("radflag", "baseline_nll")
"""Detectors that say how unsure a model is of its verdict: by its other verdicts, and by the log-probability."""


@dataclass(frozen=True)
class Abstention:
    """A run with "not sure" beside the same without.

    Attributes:
        model, asked, given: as in `tables.Difference`.
        documents: in both runs.
        coverage: share of them with a verdict where "not sure" is offered.
        risk: share of wrong verdicts among these.
        at_coverage: score -> risk at that coverage without the offer, and that risk less `risk`.
        answering_all: risk without the offer over all that can be read.
    """

    model: str
    asked: str
    given: str
    documents: int
    coverage: float
    risk: Number
    at_coverage: Mapping[str, tuple[Number, Number]]
    answering_all: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        numbers = {name: [number.to_dict() for number in pair] for name, pair in self.at_coverage.items()}
        return {**asdict(self), "risk": self.risk.to_dict(), "at_coverage": numbers}


def abstentions(runs: Sequence[ReadRun]) -> list[Abstention]:
    """Return the comparison of every run with "not sure" that has a run without it, all else alike."""
    by_place = {(a.run.model, a.variant): a for a in runs}
    pairs = [(a, by_place.get((a.run.model, a.variant._replace(not_sure=False)))) for a in runs if a.variant.not_sure]
    return [
        abstention for offered, forced in pairs if forced is not None and (abstention := _abstention(offered, forced))
    ]


def abstention_table(rows: Sequence[Abstention], runs: Sequence[ReadRun]) -> Table:
    """Return a line for each score, which leaves out as many documents as "not sure" does."""
    short = short_names([a.run.model for a in runs])
    signed = Format(signed=True)
    columns = [Column("model"), Column("asked"), Column("shown"), Column("n"), Column("answered")]
    columns += [Column("wrong", stderr=True), Column("score"), Column("by_score", "wrong by score", stderr=True)]
    columns += [
        Column("difference", format=signed),
        Column("interval", "95 % interval", signed, show="interval", of="difference"),
    ]
    lines: list[dict[str, Cell]] = []
    for row in rows:
        labels: dict[str, Cell] = {"model": short[row.model], "asked": row.asked, "shown": row.given or "plain"}
        labels |= {"n": row.documents, "answered": row.coverage, "wrong": row.risk}
        lines += [
            {**labels, "score": name, "by_score": risk, "difference": difference}
            for name, (risk, difference) in row.at_coverage.items()
        ] or [labels]
    title = (
        'Risk (share of wrong verdicts) where "not sure" is offered, beside the same coverage without the offer: the '
        "documents are left out that a score is least sure of"
    )
    return Table(columns, lines, title=title)


_ACCURACY = by_name(MEASURES)["accuracy"]


def _abstention(offered: ReadRun, forced: ReadRun) -> Abstention | None:
    """Compare a run with "not sure" with the same without; None where the former answers nothing."""
    places = paired(offered, forced)
    with_option = _records(offered, [i for i, _ in places])
    without = _records(forced, [j for _, j in places])
    answered, readable = _has_verdict(with_option), _has_verdict(without)
    if not answered.any():
        return None
    wrong, forced_wrong = _wrong(with_option), _wrong(without)
    rows = [str(record["row"]) for record in with_option]
    once = np.ones(len(places))
    at_coverage: dict[str, tuple[Number, Number]] = {}
    evidence = [evidence_of(_by_verdict(forced.run.answer_sets[j])) for _, j in places]
    for name in SCORES:
        scores = [get(name).score(draws) for draws in evidence]
        if any(value is None for value in scores):
            continue
        # What cannot be read is left out first: it is no verdict.
        levels = _levels(np.where(readable, np.array(scores, dtype=float), np.inf))

        def by_score(weights: FloatArray, levels: IntArray = levels) -> float | None:
            return _defined(risk_at(levels, forced_wrong, weights, float(weights @ answered)))

        def difference(weights: FloatArray, by_score: Callable[[FloatArray], float | None] = by_score) -> float | None:
            risk = by_score(weights)
            return None if risk is None else risk - _share(weights, answered, wrong)

        at_coverage[name] = (jackknife(by_score, rows, bounds=(0.0, 1.0)), jackknife(difference, rows))
    return Abstention(
        model=offered.run.model,
        asked=offered.variant.asked,
        given="knowledge" if offered.variant.knowledge else "",
        documents=len(places),
        coverage=float(answered.mean()),
        risk=estimate_of_sums(np.stack([answered * wrong, answered], axis=1), rows, ratio),
        at_coverage=at_coverage,
        answering_all=_share(once, readable, forced_wrong) if readable.any() else None,
    )


def _records(run: ReadRun, rows: Sequence[int]) -> list[Record]:
    documents = documents_of(run.run, _ACCURACY)
    return [documents[row].record for row in rows]


def _has_verdict(records: Sequence[Record]) -> BoolArray:
    return np.array([record["said"] is not None for record in records], dtype=bool)


def _by_verdict(answers: AnswerSet) -> AnswerSet:
    """Answers whose clusters are their verdicts."""
    numbers: dict[str, int] = {}
    return answers.with_clusters([numbers.setdefault(text, len(numbers)) for text in answers.texts])


def risk_at(levels: IntArray, wrong: FloatArray, weights: FloatArray, covered: float) -> float:
    """Risk among the surest documents, `covered` of them by weight; of equally sure ones each has an equal part.

    Args:
        levels: rank of each document's score, 0 = surest, equal for equal scores, shape (n,).
        wrong: 1 where the verdict is wrong, shape (n,).
        weights: how often each document counts, shape (n,).
        covered: sum of weights to take.

    Example:
        >>> risk_at(np.array([0, 1, 1]), np.array([0.0, 1.0, 0.0]), np.ones(3), 2.0)
        0.25
    """
    if covered < _LEAST:
        return float("nan")
    mass, errors = np.bincount(levels, weights), np.bincount(levels, weights * wrong)
    before = np.concatenate([[0.0], np.cumsum(mass)[:-1]])
    part = np.clip((covered - before) / np.maximum(mass, _LEAST), 0.0, 1.0)
    return float((part * errors).sum() / covered)


def _wrong(records: Sequence[Record]) -> FloatArray:
    """Return 1 where the verdict is wrong or there is none, shape (n,)."""
    return np.array([float(record["said"] != record["truth"]) for record in records])


def _share(weights: FloatArray, among: FloatArray | np.ndarray, wrong: FloatArray) -> float:
    """Return the share of wrong verdicts among some documents, by weight; nan where there are none."""
    whole = float(weights @ among)
    return float(weights @ (among * wrong)) / whole if whole > _LEAST else float("nan")


def _levels(scores: FloatArray) -> IntArray:
    """Return the rank of each score, equal for equal scores, shape (n,)."""
    return np.unique(scores, return_inverse=True)[1].reshape(-1)


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else value
