"""The headline of a run: its rate, its lead, and whether sampling adds anything. All that say a verdict ask here.

The family of comparisons is the run's: its main detectors that sample, under all clusterings, doubles once, against the
best of what is free. Their p-values are adjusted together (max-T); any other comparison of the run is exploratory, and
its p-value that of one test. With an audit every number is the experts'.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import (
    Scores,
    detection_auroc,
    detectors_of,
    main_detectors,
    name_of,
    prices_of,
    score_clustered,
)
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import labelled
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.judging.outcomes import REQUEST_FAILED
from hedge_tasks.judging.reliability import MISSING, Coverage, coverage_of
from hedge_tasks.measures.audited import auroc_by_experts, compare_by_experts, rate_by_experts
from hedge_tasks.measures.blind import LENGTH, TITLES, beats, lengths
from hedge_tasks.measures.comparisons import compare_two_scores
from hedge_tasks.measures.curves import hallucination_rate
from hedge_tasks.measures.run_measures import numbers_of_run
from hedge_tasks.measures.trust_state import TrustState, trust_of
from hedge_tasks.numbers import THREE_DIGITS, WHOLE_PERCENT, Number, count_of, format_interval, format_number, format_p
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_or_exact
from hedge_tasks.statistics import Comparison, max_t
from hedge_tasks.statistics.base import midranks

FREE = ("msp", "baseline_nll")
"""Log-probabilities of the answer; of a run the first that it has: the best would be a choice."""

_FREE_NAMES = {**dict.fromkeys(FREE, "the model's own log-probability"), LENGTH: f"the {TITLES[LENGTH]}"}
_VERSION = re.compile(r"^(?P<judge>[\w.-]+) (?P<version>\d+)$")

Key = tuple[str, str]
"""A detector and its clustering; no clustering where none has a say."""


@dataclass(frozen=True)
class Lead:
    """A detector of the run's family.

    Attributes:
        detector, clustering: their names.
        number: its ROC-AUC.
        draws: samples a question that it needs.
        bounds: of the ROC-AUC whatever the missing labels are; None where there are few.
    """

    detector: str
    clustering: str
    number: Number
    draws: float = 0.0
    bounds: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """Its name for people, as in the middle of a sentence."""
        if not self.clustering:
            return _FREE_NAMES[self.detector]
        return f"{name_of(self.detector)} ({self.clustering})"

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
        labels: whose labels the numbers rest on, in words.
        rate: share of wrong answers, by the experts' labels where there is an audit; None without labels.
        bounds: of the rate whatever the missing labels are; None where there are few, or an audit.
        lead: the best detector that is free, or that samples and adds to it; None where none has a ROC-AUC.
        why_none: why there is no `lead`.
        free, sampling: the best detector that costs nothing, and the best that samples.
        adds: whether any that samples is better than `free` beyond chance.
        gain: ROC-AUC of `sampling` less that of `free`, and its p-value adjusted over the family.
        n_family: comparisons in the family.
        suite: the leading number of the evaluation's own, with its title; nothing for a task of none.
        estimates: ROC-AUC of all main detectors, by detector and clustering; undefined ones have a reason.
    """

    run: Run
    trust: TrustState
    coverage: Coverage
    labels: str
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
    estimates: Mapping[Key, Number] = field(default_factory=dict)

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
        """What the sentences rest on: labels and coverage, and the family of comparisons."""
        labels = f"Labels: {self.labels}; {self.coverage}."
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
            "coverage": asdict(self.coverage),
            "lead": self.lead and {**vars(self.lead), "number": self.lead.number.to_dict()},
            "sampling_adds": self.adds,
        }

    def _rate(self) -> str:
        if self.rate is None or self.rate.value is None:
            return "No answer has a label, so nobody knows how many of them are wrong."
        value, c = self.rate.value, self.coverage
        declined = f"; {c.declined} more were declined" if c.declined else ""
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
        return f"{_share_of(value)} wrong {format_interval(self.rate.interval, WHOLE_PERCENT, missing='')}{declined}."

    def _lead(self) -> str:
        lead, sampling = self.lead, self.sampling
        if lead is None:
            one_class = self.rate is None or self.rate.value in (None, 0.0, 1.0)
            return "" if one_class else f"There is no ROC-AUC of a detector: {self.why_none}."
        if lead.number.low is None or lead.number.low <= 0.5:
            return f"No detector of them can be told from chance: the best is {lead.name} ({lead.share})."
        start = f"{lead.name[0].upper()}{lead.name[1:]} finds them ({lead.share})"
        if sampling is None or self.free is None:
            return f"{start}."
        if lead is self.free:
            return f"{start}; sampling adds nothing here."
        adds = "which adds to" if self.adds else "but cannot be told apart from"
        price = count_of(round(lead.draws), "sample")
        return f"{start} at {price} a question, {adds} {self.free.name} ({self.free.share})."


def _share_of(value: float) -> str:
    """Return a share as the start of a sentence: 1 in so many where that is within half a per cent.

    Example:
        >>> _share_of(0.25), _share_of(0.36)
        ('1 in 4 answers is', '36 % of answers are')
    """
    n = round(1 / value)
    return f"1 in {n} answers is" if n > 1 and abs(1 / n - value) < 0.005 else f"{WHOLE_PERCENT(value)} of answers are"


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
    reasons, audit = dict(left_out or {}), None
    try:
        audit = audit_of(run)
    except DataError as error:
        reasons["the audit"] = str(error)
    parts = {a.id: coverage_of({**(run.verdicts.get(a.id) or {}), "label": a.label}) for a in run.answer_sets}
    coverage = Coverage.of_parts((*parts.values(), *(REQUEST_FAILED for _ in run.settings.get("failed") or ())))
    partial = coverage.partial and audit is None
    missing = {id for id, part in parts.items() if partial and part in MISSING}
    main = {(name, c): s for c, s in scores.items() for name in main_detectors(detectors_of(s))}
    columns = {**_free_scores(run.answer_sets), **main}
    numbers = {key: auroc_by(column, key[0], audit) for key, column in columns.items()}
    fields = _leads(columns, numbers, audit, missing)
    judged = hallucination_rate(run.answer_sets)
    rate = judged if audit is None else rate_by_experts(run.answer_sets, audit)
    both = [(rate, judged)]
    lead_scores: tuple[Sequence[Scores], str] = ((), "")
    if lead := fields.get("lead"):
        lead_scores = columns[lead.detector, lead.clustering], lead.detector
        both.append((lead.number, detection_auroc(*lead_scores)))
    return Headline(
        run,
        trust_of(run, scorers or {}, reasons, audit, lead_scores, both),
        coverage,
        _whose(run, audit),
        rate,
        bounds=coverage.bounds(sum(a.label or 0 for a in run.answer_sets)) if partial else None,
        suite=tuple((m.title, n) for m, n in numbers_of_run(run) if m.leads and n.defined)[:1],
        estimates={key: numbers[key] for key in main},
        **fields,
    )


def _leads(
    columns: Mapping[Key, Sequence[Scores]],
    numbers: Mapping[Key, Number],
    audit: ExpertAudit | None,
    missing: Collection[str],
) -> dict[str, Any]:
    """Return the lead, its rival and the tests between them, as `Headline` has them."""
    distinct: dict[tuple[Any, ...], Lead] = {}
    for (name, clustering), column in columns.items():
        values = labelled(column, name)
        draws = prices_of(column)[name].mean if clustering else 0.0
        lead = Lead(name, clustering, numbers[name, clustering], draws, _bounds(column, name, missing))
        if lead.number.defined:
            distinct.setdefault((values.ids, values.values.tobytes()), lead)
    ranked = sorted(distinct.values(), key=lambda lead: (-(lead.number.value or 0.0), lead.draws))
    if not ranked:
        return {"why_none": "; ".join(sorted({str(number.reason) for number in numbers.values()})[:2])}
    free = [lead for lead in ranked if not lead.draws]
    sampling = [lead for lead in ranked if lead.draws]
    gains = [_gain(columns, lead, free[0], audit) for lead in sampling] if free else []
    adjusted = max_t(gains)
    adding = [lead for lead, gain, p in zip(sampling, gains, adjusted, strict=False) if beats(gain, p)]
    above_chance = [lead for lead in free[:1] if (lead.number.low or 0.0) > 0.5]
    return {
        "lead": [*adding, *above_chance, *ranked][0],
        "free": free[0] if free else None,
        "sampling": sampling[0] if sampling else None,
        "adds": bool(adding),
        "gain": (gains[0], adjusted[0]) if gains and gains[0] is not None else None,
        "n_family": len(gains),
    }


def _gain(columns: Mapping[Key, Sequence[Scores]], a: Lead, b: Lead, audit: ExpertAudit | None) -> Comparison | None:
    sides = columns[a.detector, a.clustering], a.detector, columns[b.detector, b.clustering], b.detector
    return compare_two_scores(*sides) if audit is None else compare_by_experts(*sides, audit)


def _bounds(column: Sequence[Scores], name: str, missing: Collection[str]) -> tuple[float, float] | None:
    scored = [(s[name], s.reported_label) for s in column if s.reported_label is not None or s.id in missing]
    values, labels = [v for v, _ in scored if v is not None], [label for _, label in scored]
    return auroc_bounds(values, labels) if missing and len(values) == len(labels) and {0, 1} <= {*labels} else None


def _free_scores(answer_sets: Sequence[AnswerSet]) -> dict[Key, Sequence[Scores]]:
    """Return the scores of what costs nothing, whatever the clustering: log-probability and length of the answer."""
    plain = [score_clustered(a.with_clusters((0,) * len(a.answers)), detectors=FREE) for a in answer_sets]
    name = next((name for name in FREE if detection_auroc(plain, name).defined), FREE[0])
    longer, shorter = (
        [replace(s, numbers={LENGTH: sign * n}) for s, n in zip(plain, lengths(answer_sets), strict=True)]
        for sign in (1, -1)
    )
    turned = (detection_auroc(longer, LENGTH).value or 0.5) < 0.5  # as anyone with labels would
    return {(name, ""): plain, (LENGTH, ""): shorter if turned else longer}


def _whose(run: Run, audit: ExpertAudit | None) -> str:
    names = dict.fromkeys(str(verdict.get("judge") or "") for verdict in run.verdicts.values())
    judge = " and ".join([judge_in_words(name) for name in names if name][:2]) or "those who gave them with the answers"
    if audit is None:
        return f"by {judge}, unaudited"
    return f"{audit.n_labels} by experts{f' ({audit.by})' if audit.by else ''}, who correct those by {judge}"


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
