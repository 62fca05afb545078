"""The headline of a run: its rate, its lead, and whether sampling adds anything. All that say a verdict ask here.

The family of comparisons is the run's: its main detectors under all clusterings, doubles once, against the best
detector that is free and the best classifier of wording. Their p-values are adjusted together (max-T); any other
comparison of the run is exploratory, and its p-value that of one test. With an audit every number is the experts'.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from hedge_tasks.detectors.units import compare_columns, labelled
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.judging.reliability import MISSING, Coverage, coverage_of
from hedge_tasks.measures.audited import auroc_by_experts, compare_by_experts, rate_by_experts
from hedge_tasks.measures.blind import BLIND_QUESTION, BLIND_TEXT, LENGTH, TITLES, beats, blind_scores
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

_FREE_NAMES = {**dict.fromkeys(FREE, "model's own log-probability"), LENGTH: TITLES[LENGTH]}
_VERSION = re.compile(r"^(?P<judge>[\w.-]+) (?P<version>\d+)$")


@dataclass(frozen=True)
class Lead:
    """A detector of the run's family.

    Attributes:
        detector, clustering: their names; no clustering where none has a say.
        number: its ROC-AUC, by the labels that the headline rests on.
        by_judge: the same by the judge's labels.
        draws: samples a question that it needs.
        bounds: of the ROC-AUC whatever the missing labels are; None where there are few.
    """

    detector: str
    clustering: str
    number: Number
    by_judge: Number
    draws: float = 0.0
    bounds: tuple[float, float] | None = None

    @property
    def name(self) -> str:
        """Its name for people, as in the middle of a sentence."""
        if self.detector in (*_FREE_NAMES, *TITLES):
            return f"the {_FREE_NAMES.get(self.detector) or TITLES[self.detector]}"
        return f"{name_of(self.detector)}{f' ({self.clustering})' if self.clustering else ''}"

    @property
    def share(self) -> str:
        """Its ROC-AUC in per cent with its interval."""
        return format_number(self.number, WHOLE_PERCENT, interval=True)


@dataclass(frozen=True)
class Headline:
    """The headline of a run.

    Attributes:
        run: whose it is.
        rate: share of wrong answers, by the experts' labels where there is an audit; None without labels.
        by_judge: the same by the judge's labels.
        by: whose labels the numbers rest on, in words.
        coverage: how many answers have a label of the judge's.
        bounds: of the rate whatever the missing labels are; None where there are few, or an audit.
        lead: the best detector that is free, or that samples and adds to it; None where none has a ROC-AUC.
        why_none: why there is no `lead`.
        free, sampling: the best detector that costs nothing, and the best that samples.
        adds: whether any that samples is better than `free` beyond chance; None where that cannot be said.
        gain: ROC-AUC of `sampling` less that of `free`, and its p-value adjusted over the family.
        wording: the best classifier of wording, which sees neither picture nor samples.
        beats_wording: whether `lead` is better than that beyond chance.
        n_family: comparisons in the family.
        trust: how far the numbers can be trusted.
        suite: the leading number of the evaluation's own, with its title; None for a task of none.
        estimates: ROC-AUC of all main detectors, by detector and clustering; undefined ones have a reason.
    """

    run: Run
    rate: Number | None
    by_judge: Number | None
    by: str
    coverage: Coverage
    trust: TrustState
    bounds: tuple[float, float] | None = None
    lead: Lead | None = None
    why_none: str = ""
    free: Lead | None = None
    sampling: Lead | None = None
    adds: bool | None = None
    gain: tuple[Comparison, float | None] | None = None
    wording: Lead | None = None
    beats_wording: bool = False
    n_family: int = 0
    suite: tuple[str, Number] | None = None
    estimates: Mapping[tuple[str, str], Number] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The suite's number, how many answers are wrong, and what finds them."""
        suite = ""
        if self.suite is not None:
            title, number = self.suite
            suite = f"{title[0].upper()}{title[1:]}: {format_number(number, THREE_DIGITS, interval=True)}."
        return tuple(filter(None, (suite, self._rate(), self._lead())))

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)

    @property
    def details(self) -> tuple[str, ...]:
        """What the sentences rest on: labels and coverage, the family of comparisons, the wording."""
        return tuple(filter(None, (f"Labels: {self.by}; {self.coverage}.", self._family(), self._wording())))

    def lines(self) -> list[str]:
        """Return the sentences and the state of trust, for the terminal."""
        return [f"Finding: {self.text}", f"Trust: {self.trust.short}."]

    def to_dict(self) -> dict[str, Any]:
        """Return the headline for JSON."""
        lead = self.lead and {"detector": self.lead.detector, "clustering": self.lead.clustering} | {
            "roc_auc": self.lead.number.to_dict(),
            "bounds": self.lead.bounds,
        }
        return {
            "finding": self.text,
            "details": self.details,
            "trust": self.trust.to_dict(),
            "hallucination_rate": self.rate and self.rate.to_dict(),
            "bounds": self.bounds,
            "labels": self.by,
            "coverage": vars(self.coverage),
            "lead": lead,
            "sampling_adds": self.adds,
            "p": self.gain and self.gain[1],
        }

    def _rate(self) -> str:
        if self.rate is None or self.rate.value is None:
            return "No answer has a label, so nobody knows how many of them are wrong."
        value, c = self.rate.value, self.coverage
        declined = f"; {c.declined} more were declined" if c.declined else ""
        if self.bounds is not None:
            n = c.labelled + c.missing
            wrong = round(value * c.labelled)
            return (
                f"Of {n} answers {wrong} are wrong, {c.labelled - wrong} right and {c.missing} undecided: "
                f"{_between(self.bounds)} are wrong{declined}. A model as judge decides more (`hedge judge --judge "
                "llm:model=...`), as do experts (`hedge audit plan`)."
            )
        if value in (0.0, 1.0):
            share = "None" if value == 0 else "All"
            return f"{share} of {self.rate.n} answers are wrong, so detectors have nothing to tell apart{declined}."
        interval = format_interval(self.rate.interval, WHOLE_PERCENT, missing="")
        return f"{_share_of(value)} wrong {interval}{declined}."

    def _lead(self) -> str:
        lead, sampling = self.lead, self.sampling
        if lead is None:
            one_class = self.rate is None or self.rate.value in (None, 0.0, 1.0)
            return "" if one_class else f"There is no ROC-AUC of a detector: {self.why_none}."
        bounded = f"; with the missing labels {_between(lead.bounds)}" if lead.bounds else ""
        start = f"{lead.name[0].upper()}{lead.name[1:]} finds them ({lead.share}{bounded})"
        if lead.number.low is None or lead.number.low <= 0.5:
            return f"No detector of them can be told from chance: the best is {lead.name} ({lead.share}{bounded})."
        if sampling is None:
            return f"{start}; nothing was sampled."
        if lead is self.free:
            return f"{start}; sampling adds nothing here."
        free = f"{self.free.name} ({self.free.share})" if self.free is not None else "what is free"
        price = f"at {count_of(round(lead.draws), 'sample')} a question"
        adds = "which adds to" if self.adds else "but cannot be told apart from"
        return f"{start} {price}, {adds} {free}."

    def _family(self) -> str:
        if self.gain is None or self.sampling is None or self.free is None:
            return ""
        pair, p = self.gain
        points = f"{WHOLE_PERCENT.bare(pair.difference or 0.0)} points {format_interval(pair.interval, WHOLE_PERCENT)}"
        return (
            f"{self.sampling.name} less {self.free.name}: {points}, p {format_p(p)}, adjusted over the run's family of "
            f"{self.n_family} comparisons (max-T). All others are exploratory, their p unadjusted."
        )

    def _wording(self) -> str:
        if self.lead is None or self.wording is None:
            return ""
        verb = "beats" if self.beats_wording else "does not beat"
        return f"{self.lead.name} {verb} {self.wording.name} ({self.wording.share}), which sees no picture."


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


Key = tuple[str, str]
"""A detector and its clustering."""


@dataclass(frozen=True)
class _Family:
    """Scores of detectors, with the labels that count: the judge's, or experts'.

    Attributes:
        scores: of every document, by detector and clustering.
        audit: experts' labels, where there are any.
        missing: documents whose label is missing, where these are many.
    """

    scores: Mapping[Key, Sequence[Scores]]
    audit: ExpertAudit | None
    missing: frozenset[str]

    def auroc(self, key: Key) -> Number:
        if self.audit is not None:
            return auroc_by_experts(self.scores[key], key[0], self.audit)
        return detection_auroc(self.scores[key], key[0])

    def compare(self, a: Key, b: Key) -> Comparison | None:
        if self.audit is not None:
            return compare_by_experts(self.scores[a], a[0], self.scores[b], b[0], self.audit)
        return compare_columns(*(labelled(self.scores[key], key[0]) for key in (a, b)))

    def lead(self, key: Key, number: Number, draws: float = 0.0) -> Lead:
        counted = [s for s in self.scores[key] if s.reported_label is not None or s.id in self.missing]
        scored = [(value, s.reported_label) for s in counted if (value := s[key[0]]) is not None]
        known = self.missing and len(scored) == len(counted)
        bounds = auroc_bounds(*zip(*scored, strict=True)) if known else None
        return Lead(*key, number, detection_auroc(self.scores[key], key[0]), draws, bounds)

    def best(self, numbers: Mapping[Key, Number], prices: Mapping[Key, float]) -> Lead | None:
        """Return the detector with the highest ROC-AUC, the cheapest of equal ones; None without any."""
        if not numbers:
            return None
        key = min(numbers, key=lambda key: (-(numbers[key].value or 0.0), prices.get(key, 0.0)))
        return self.lead(key, numbers[key], prices.get(key, 0.0))


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
    audit, unreadable = _audit(run)
    verdicts = {a.id: {**(run.verdicts.get(a.id) or {}), "label": a.label} for a in run.answer_sets}
    coverage = Coverage.of(verdicts.values())
    coverage = replace(coverage, failed=coverage.failed + len(run.settings.get("failed") or ()))
    by_judge = hallucination_rate(run.answer_sets)
    bounded = coverage.partial and audit is None
    missing = frozenset(id for id, v in verdicts.items() if coverage_of(v) in MISSING) if bounded else frozenset()
    clustered = {(name, c): s for c, s in scores.items() for name in main_detectors(detectors_of(s))}
    family = _Family({**_free_scores(run.answer_sets), **clustered}, audit, missing)
    numbers = {key: family.auroc(key) for key in family.scores}
    fields = _leads(family, numbers, {(d, c): p.mean for c, s in scores.items() for d, p in prices_of(s).items()})
    estimates = {key: numbers[key] for key in clustered}
    suite = next(((m.title, n) for m, n in numbers_of_run(run) if m.leads and n.defined), None)
    rate = by_judge if audit is None else rate_by_experts(run.answer_sets, audit)
    trust = trust_of(
        run,
        scores,
        scorers=scorers,
        left_out={**(left_out or {}), **unreadable},
        audit=audit,
        lead=(family.scores[key], key[0]) if (key := fields.pop("key")) else None,
        both=[(rate, by_judge), *([(lead.number, lead.by_judge)] if (lead := fields["lead"]) else [])],
    )
    positive = sum(a.label or 0 for a in run.answer_sets)
    return Headline(
        run,
        rate,
        by_judge,
        _whose(run, audit),
        coverage,
        trust,
        bounds=coverage.bounds(positive) if bounded else None,
        suite=suite,
        estimates=estimates,
        **fields,
    )


def _leads(family: _Family, numbers: Mapping[Key, Number], prices: Mapping[Key, float]) -> dict[str, Any]:
    """Return the lead, its rivals and the tests between them, as `Headline` has them."""
    columns: dict[tuple[Any, ...], Key] = {}
    for key, number in numbers.items():
        column = labelled(family.scores[key], key[0])
        if number.defined:
            columns.setdefault((column.ids, column.values.tobytes()), key)
    defined = {key: numbers[key] for key in columns.values()}
    wordings = {key: number for key, number in defined.items() if key[0] in (BLIND_TEXT, BLIND_QUESTION)}
    detectors = {key: number for key, number in defined.items() if key not in wordings}
    sampling = {key: number for key, number in detectors.items() if prices.get(key, 0.0) > 0}
    free = family.best({key: number for key, number in detectors.items() if key not in sampling}, prices)
    wording = family.best(wordings, prices)
    best = family.best(sampling, prices)
    rivals = [(rival.detector, rival.clustering) for rival in (free, wording) if rival is not None]
    pairs = {(key, rival): family.compare(key, rival) for rival in rivals for key in detectors if key != rival}
    tests = dict(zip(pairs, zip(pairs.values(), max_t(list(pairs.values())), strict=True), strict=True))
    adding = {key: n for key, n in sampling.items() if free and beats(*tests[key, rivals[0]])}
    lead = family.best(adding, prices) or free
    if not adding and best is not None and (free is None or (free.number.low or 0.0) <= 0.5):
        lead = family.best(detectors, prices)
    lead_key = (lead.detector, lead.clustering) if lead is not None else ("", "")
    first = (best.detector, best.clustering) if best is not None else None
    return {
        "key": lead_key if lead is not None else None,
        "lead": lead,
        "why_none": "; ".join(sorted({str(n.reason) for n in numbers.values()})[:2]) if lead is None else "",
        "free": free,
        "sampling": best,
        "adds": bool(adding) if free and best else None,
        "gain": tests[first, rivals[0]] if free and first else None,
        "wording": wording,
        "beats_wording": wording is not None and beats(*tests.get((lead_key, rivals[-1]), (None, None))),
        "n_family": sum(pair is not None and pair.p_value is not None for pair in pairs.values()),
    }


def _free_scores(answer_sets: Sequence[AnswerSet]) -> dict[Key, Sequence[Scores]]:
    """Return the scores of what costs nothing, whatever the clustering: log-probability, length, wording."""
    plain = [score_clustered(a.with_clusters((0,) * len(a.answers)), detectors=FREE) for a in answer_sets]
    name = next((name for name in FREE if detection_auroc(plain, name).defined), None)
    scores: dict[Key, Sequence[Scores]] = {} if name is None else {(name, ""): plain}
    for blind, values in blind_scores(answer_sets, [a.label for a in answer_sets])[0].items():
        scored = [replace(s, numbers={blind: v}) for s, v in zip(plain, values, strict=True)]
        if blind == LENGTH and (detection_auroc(scored, blind).value or 0.5) < 0.5:  # as anyone with labels would
            scored = [replace(s, numbers={blind: None if v is None else -v}) for s in scored for v in (s[blind],)]
        scores[blind, ""] = scored
    return scores


def _whose(run: Run, audit: ExpertAudit | None) -> str:
    names = dict.fromkeys(str(verdict.get("judge") or "") for verdict in run.verdicts.values())
    judge = " and ".join([judge_in_words(name) for name in names if name][:2]) or "those who gave them with the answers"
    if audit is None:
        return f"by {judge}, unaudited"
    return f"{audit.n_labels} by experts{f' ({audit.by})' if audit.by else ''}, who correct those by {judge}"


def _scored(run: Run) -> tuple[dict[str, Sequence[Scores]], dict[str, Scorer], dict[str, str]]:
    """Scores by clustering, as the run's settings have it; no model is loaded for them."""
    left_out: dict[str, str] = {}
    try:
        scorers = scorers_or_exact(run)
    except HedgeError as error:
        return {}, {}, {"all": str(error)}
    scores: dict[str, Sequence[Scores]] = {}
    for name, scorer in scorers.items():
        try:
            if not run.evidence and isinstance(scorer.backend, ReusesOutputs) and (sources := scorer.backend.sources()):
                left_out[name] = f"the run does not keep what {sources[0].model} says of its answers"
                continue
            scores[name] = scorer.score(run.answer_sets)
        except HedgeError as error:
            left_out[name] = str(error)
    return scores, {name: scorers[name] for name in scores}, left_out


def _audit(run: Run) -> tuple[ExpertAudit | None, dict[str, str]]:
    try:
        return audit_of(run), {}
    except DataError as error:
        return None, {"the audit": str(error)}
