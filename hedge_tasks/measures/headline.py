"""The headline of a run: its rate, its lead, and whether sampling adds anything. All that say a verdict ask here.

The family of comparisons is the run's: its main detectors that sample, under all clusterings, doubles once, against the
best of what is free. Their p-values are adjusted together (max-T); any other comparison of the run is exploratory, and
its p-value that of one test. With an audit every number is the experts'.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import FREE, Scores, main_detectors, name_of, prices_of, score_clustered
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import Labelled, detection_auroc, labelled
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.measures.audited import auroc_by_experts, rate_by, scores_by, whose_labels
from hedge_tasks.measures.blind import LENGTH, TITLES, beats, lengths
from hedge_tasks.measures.comparisons import compare_two_scores
from hedge_tasks.measures.coverage import MISSING, Coverage, coverage_of, parts_of
from hedge_tasks.measures.run_measures import numbers_of_run
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.measures.trust_state import TrustState, trust_of
from hedge_tasks.numbers import THREE_DIGITS, WHOLE_PERCENT, Number, count_of, format_interval, format_number, format_p
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_or_exact
from hedge_tasks.statistics import Comparison, max_t
from hedge_tasks.statistics.base import midranks

_FREE_NAMES = {**{name: f"the model's own log-probability ({name})" for name in FREE}, LENGTH: f"the {TITLES[LENGTH]}"}
_VERSION = re.compile(r"^(?P<judge>[\w.-]+) (?P<version>\d+)$")


@dataclass(frozen=True)
class Lead:
    """A detector of the run's family.

    Attributes:
        detector, clustering: their names; no clustering where none has a say.
        number: its ROC-AUC.
        draws: samples a question that it needs.
        bounds: of the ROC-AUC whatever the missing labels are; None where there are few.
        scores: of every document.
    """

    detector: str
    clustering: str
    number: Number
    draws: float
    bounds: tuple[float, float] | None
    scores: Sequence[Scores] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """Its name for people, as in the middle of a sentence."""
        if not self.clustering:
            return _FREE_NAMES[self.detector]
        return f"{name_of(self.detector)} ({self.clustering})"

    @property
    def column(self) -> Labelled:
        """Its scores of the documents with a label."""
        return labelled(self.scores, self.detector)

    @property
    def share(self) -> str:
        """Its ROC-AUC in per cent with its interval."""
        bounded = f"; with the missing labels {_between(self.bounds)}" if self.bounds else ""
        return format_number(self.number, WHOLE_PERCENT, interval=True) + bounded


@dataclass(frozen=True)
class Headline:
    """The headline of a run.

    Attributes:
        run: whose it is.
        trust: how far the numbers can be trusted.
        coverage: how many answers have a label of the judge's.
        audit: labels of experts, which then are those of all numbers; None where there are none.
        rate: share of wrong answers, by the experts' labels where there is an audit; None without labels.
        bounds: of the rate whatever the missing labels are; None where there are few, or an audit.
        lead: the best detector that is free, or that samples and adds to it; None where none has a ROC-AUC.
        why_none: why there is no `lead`.
        free, sampling: the best detector that costs nothing, and the best that samples.
        adds: whether any that samples is better than `free` beyond chance.
        gain: ROC-AUC of `sampling` less that of `free`, and its p-value adjusted over the family.
        n_family: comparisons in the family.
        suite: the leading number of the evaluation's own, with its title; nothing for a task of none.
        estimates: all main detectors, by detector and clustering; an undefined ROC-AUC has a reason.
    """

    run: Run
    trust: TrustState
    coverage: Coverage
    audit: ExpertAudit | None
    rate: Number | None
    bounds: tuple[float, float] | None = None
    lead: Lead | None = None
    why_none: str = ""
    free: Lead | None = None
    sampling: Lead | None = None
    adds: bool = False
    gain: tuple[Comparison, float | None] | None = None
    n_family: int = 0
    suite: tuple[tuple[str, Number], ...] = ()
    estimates: Mapping[tuple[str, str], Lead] = field(default_factory=dict)

    @property
    def labels(self) -> str:
        """Whose labels the numbers rest on, in words."""
        return whose_labels(self.run, self.audit)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The suite's number, how many answers are wrong, and what finds them."""
        suites = [f"{t[0].upper()}{t[1:]}: {format_number(n, THREE_DIGITS, interval=True)}." for t, n in self.suite]
        return tuple(filter(None, (*suites, self._rate(), self._lead())))

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)

    @property
    def details(self) -> tuple[str, ...]:
        """Sentences about what these rest on: labels and coverage, and the family of comparisons."""
        labels = f"{self.labels} {self.coverage}." if self.audit is None else self.labels
        if self.gain is None or self.sampling is None or self.free is None:
            return (labels,)
        pair, p = self.gain
        points = f"{WHOLE_PERCENT.bare(pair.difference or 0.0)} points {format_interval(pair.interval, WHOLE_PERCENT)}"
        family = (
            f"{self.sampling.name} less {self.free.name}: {points}, p {format_p(p)}, adjusted over the run's family of "
            f"{self.n_family} comparisons (max-T). All others are exploratory, their p unadjusted."
        )
        return labels, family

    def lines(self) -> list[str]:
        """Return the sentences and the state of trust, for the terminal."""
        return [f"Finding: {self.text}", f"Trust: {self.trust.short}."]

    def to_dict(self) -> dict[str, Any]:
        """Return the headline for JSON."""
        return {
            "finding": self.text,
            "details": self.details,
            "trust": self.trust.to_dict(),
            "hallucination_rate": self.rate and {**self.rate.to_dict(), "bounds": self.bounds},
            "coverage": self.coverage.model_dump() if self.audit is None else None,
            "lead": self.lead and {"name": self.lead.name, "bounds": self.lead.bounds, **self.lead.number.to_dict()},
            "sampling_adds": self.adds,
        }

    def _rate(self) -> str:
        if self.rate is None or self.rate.value is None:
            return "No answer has a label, so nobody knows how many of them are wrong."
        value, c = self.rate.value, self.coverage
        declined = f"; {c.declined} more were declined" if c.declined and self.audit is None else ""
        if self.bounds is not None:
            wrong = round(value * c.labelled)
            return (
                f"Of {c.labelled + c.missing} answers {wrong} are wrong, {c.labelled - wrong} right and {c.missing} "
                f"undecided: {_between(self.bounds)} are wrong{declined}. A model as judge decides more (`hedge judge "
                "--judge llm:model=...`), as do experts (`hedge audit plan`)."
            )
        if value in (0.0, 1.0):
            share = "None" if value == 0 else "All"
            return f"{share} of {self.rate.n} answers are wrong, so detectors have nothing to tell apart{declined}."
        interval = format_interval(self.rate.interval, WHOLE_PERCENT, missing="")
        return f"{WHOLE_PERCENT(value)} of answers are wrong {interval}{declined}."

    def _lead(self) -> str:
        lead, sampling = self.lead, self.sampling
        if lead is None:
            one_class = self.rate is None or self.rate.value in (None, 0.0, 1.0)
            return "" if one_class else f"There is no ROC-AUC of a detector: {self.why_none}."
        if lead.number.low is None or lead.number.low <= 0.5:
            return f"No main detector is better than chance for certain: the best is {lead.name} ({lead.share})."
        start = f"{lead.name[0].upper()}{lead.name[1:]} finds them (ROC-AUC {lead.share})"
        if sampling is None or self.free is None:
            return f"{start}."
        if lead is self.free:
            return f"{start}; that sampling finds more is not shown."
        adds = "which adds to" if self.adds else "but cannot be told apart from"
        price = count_of(round(lead.draws), "sample")
        return f"{start} at {price} a question, {adds} {self.free.name} ({self.free.share})."


def _between(bounds: tuple[float, float]) -> str:
    return f"between {WHOLE_PERCENT.bare(bounds[0])} and {WHOLE_PERCENT(bounds[1])}"


def judge_in_words(name: str) -> str:
    """Return a judge's name for people.

    Example:
        >>> judge_in_words("rule 7"), judge_in_words("llm:model=x")
        ('the rule judge (version 7)', 'llm:model=x')
    """
    match = _VERSION.match(name)
    return f"the {match['judge']} judge (version {match['version']})" if match else name


def auroc_bounds(values: Sequence[float], labels: Sequence[int | None]) -> tuple[float, float]:
    """Return the least and the greatest ROC-AUC, whatever the labels are that are None.

    With as many positive ones among them the greatest is where these score highest, the least where they score lowest.

    Args:
        values, labels: of one length; both classes occur.
    """
    ranks, known = midranks(values), np.array([-1 if label is None else label for label in labels])
    unknown, n_positive = np.sort(ranks[known < 0]), int((known == 1).sum()) + np.arange((known < 0).sum() + 1)
    pairs = n_positive * (len(ranks) - n_positive)
    areas = [
        (ranks[known == 1].sum() + np.append(0.0, np.cumsum(order)) - n_positive * (n_positive + 1) / 2) / pairs
        for order in (unknown, unknown[::-1])
    ]
    return float(areas[0].min()), float(areas[1].max())


def auroc_by(scores: Sequence[Scores], detector: str, audit: ExpertAudit | None) -> Number:
    """Return a detector's ROC-AUC by experts where there is an audit, else by the judge."""
    return detection_auroc(scores, detector) if audit is None else auroc_by_experts(scores, detector, audit)


def compare_by(
    scores: Sequence[Scores], a: str, others: Sequence[Scores], b: str, audit: ExpertAudit | None
) -> Comparison | None:
    """Return the difference of two ROC-AUCs on the same answers, by experts where there is an audit, else the judge."""
    return compare_two_scores(scores_by(scores, audit), a, scores_by(others, audit), b)


def readable_audit(run: Run) -> tuple[ExpertAudit | None, dict[str, str]]:
    """Return the audit beside a run, if there is one, and why it cannot be read."""
    try:
        return audit_of(run), {}
    except DataError as error:
        return None, {"the audit": str(error)}


def headline(
    run: Run,
    scores: Mapping[str, Sequence[Scores]] | None = None,
    *,
    scorers: Mapping[str, Scorer] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> Headline:
    """Return the headline of a run.

    Args:
        run: finished.
        scores: of every document, by clustering; made again by what the run records, without a model, if not given.
        scorers: what the scores were made with.
        left_out: clustering -> why there are no scores.
    """
    if scores is None:
        scores, scorers, left_out = _scored(run)
    audit, unreadable = readable_audit(run)
    coverage = coverage_of(run)
    partial = coverage.partial and audit is None
    leads = list(_candidates(run, scores, audit, partial=partial))
    fields = _chosen(leads, audit)
    lead = fields["lead"]
    rate = rate_by(run, audit)
    both = [(HALLUCINATION_RATE.title, rate, rate_by(run))]
    if lead:
        both.append((f"ROC-AUC of {lead.name}", lead.number, detection_auroc(lead.scores, lead.detector)))
    return Headline(
        run,
        trust_of(run, scorers or {}, {**(left_out or {}), **unreadable}, audit, lead and lead.column, both),
        coverage,
        audit,
        rate if rate.defined else None,
        bounds=coverage.bounds(sum(a.label or 0 for a in run.answer_sets)) if partial else None,
        why_none="; ".join(sorted({str(lead.number.reason) for lead in leads})[:2]),
        suite=tuple((m.title, n) for m, n in numbers_of_run(run, audit) if m.leads and n.defined)[:1],
        estimates={(lead.detector, lead.clustering): lead for lead in leads if lead.clustering},
        **fields,
    )


def _candidates(
    run: Run, scores: Mapping[str, Sequence[Scores]], audit: ExpertAudit | None, *, partial: bool
) -> Iterator[Lead]:
    """Yield what is free, then the main detectors of all clusterings; with bounds where many labels are missing."""
    missing = {id for id, part in parts_of(run).items() if part in MISSING} if partial else set()
    for name, column in _free_scores(run.answer_sets, audit).items():
        yield Lead(name, "", auroc_by(column, name, audit), 0.0, _bounds(column, name, missing), column)
    for clustering, column in scores.items():
        prices = prices_of(column)
        for name in main_detectors(prices):
            number = auroc_by(column, name, audit)
            yield Lead(name, clustering, number, prices[name].mean, _bounds(column, name, missing), column)


def _chosen(leads: Sequence[Lead], audit: ExpertAudit | None) -> dict[str, Any]:
    """Return the lead, its rival and the tests between them, as `Headline` has them."""
    ranked = sorted(
        (lead for lead in leads if lead.number.defined), key=lambda lead: (-(lead.number.value or 0.0), lead.draws)
    )
    distinct: dict[tuple[Any, ...], Lead] = {}
    for lead in ranked:
        distinct.setdefault((lead.column.ids, lead.column.values.tobytes()), lead)
    free = next((lead for lead in ranked if not lead.draws), None)
    sampling = [lead for lead in distinct.values() if lead.draws]
    gains = [compare_by(s.scores, s.detector, free.scores, free.detector, audit) for s in sampling if free]
    adjusted = max_t(gains)
    adding = [lead for lead, gain, p in zip(sampling, gains, adjusted, strict=False) if beats(gain, p)]
    above_chance = [free] if free and (free.number.low or 0.0) > 0.5 else []
    return {
        "lead": next(iter((*adding, *above_chance, *ranked)), None),
        "free": free,
        "sampling": sampling[0] if sampling else None,
        "adds": bool(adding),
        "gain": (gains[0], adjusted[0]) if gains and gains[0] is not None else None,
        "n_family": len(gains),
    }


def _bounds(column: Sequence[Scores], name: str, missing: Collection[str]) -> tuple[float, float] | None:
    scored = [(s[name], s.reported_label) for s in column if s.reported_label is not None or s.id in missing]
    values, labels = [v for v, _ in scored if v is not None], [label for _, label in scored]
    return auroc_bounds(values, labels) if missing and len(values) == len(labels) and {0, 1} <= {*labels} else None


def _free_scores(answer_sets: Sequence[AnswerSet], audit: ExpertAudit | None) -> dict[str, Sequence[Scores]]:
    """Return the scores of what costs nothing, whatever the clustering: log-probability and length of the answer."""
    plain = [score_clustered(a.with_clusters((0,) * len(a.answers)), detectors=FREE) for a in answer_sets]
    name = next((name for name in FREE if auroc_by(plain, name, audit).defined), FREE[0])
    longer, shorter = (
        [replace(s, numbers={LENGTH: sign * n}) for s, n in zip(plain, lengths(answer_sets), strict=True)]
        for sign in (1, -1)
    )
    turned = (auroc_by(longer, LENGTH, audit).value or 0.5) < 0.5  # as anyone with labels would
    return {name: plain, LENGTH: shorter if turned else longer}


def _scored(run: Run) -> tuple[dict[str, Sequence[Scores]], dict[str, Scorer], dict[str, str]]:
    """Scores by clustering, as the run's settings have it; no model is loaded for them."""
    left_out: dict[str, str] = {}
    scores: dict[str, Sequence[Scores]] = {}
    try:
        scorers = scorers_or_exact(run)
    except HedgeError as error:
        return {}, {}, {"all": str(error)}
    for name, scorer in scorers.items():
        try:
            if not run.evidence and isinstance(scorer.backend, ReusesOutputs) and (sources := scorer.backend.sources()):
                raise DataError(f"the run does not keep what {sources[0].model} says of its answers")
            scores[name] = scorer.score(run.answer_sets)
        except HedgeError as error:
            left_out[name] = str(error)
    return scores, {name: scorers[name] for name in scores}, left_out
