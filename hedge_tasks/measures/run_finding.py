"""The finding of a run, in a few sentences made from its numbers and their errors, with its state of trust.

The report, the terminal, `hedge detectors` and `hedge_tasks.load` say the same sentences, because all ask here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import (
    FREE,
    Scores,
    detection_auroc,
    detectors_of,
    free_detector,
    main_detectors,
    name_of,
    prices_of,
    score_clustered,
)
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import Labelled, labelled
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.judging.outcomes import declined_in
from hedge_tasks.judging.reliability import LIMIT
from hedge_tasks.measures.blind import SIGNIFICANT, BlindRow, against_blind
from hedge_tasks.measures.curves import hallucination_rate
from hedge_tasks.measures.detector_table import differences
from hedge_tasks.measures.run_measures import numbers_of_run
from hedge_tasks.measures.trust_state import TrustState, trust_of
from hedge_tasks.numbers import THREE_DIGITS, WHOLE_PERCENT, Number, count_of, format_interval, format_number
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_or_exact
from hedge_tasks.statistics import Comparison

_VERSION = re.compile(r"^(?P<judge>[\w.-]+) (?P<version>\d+)$")


@dataclass(frozen=True)
class LeadingDetector:
    """The detector with the highest ROC-AUC of a run.

    Attributes:
        detector, clustering: their names.
        number: its ROC-AUC.
        draws: samples per question that it needs.
        n_compared: how many ROC-AUCs it is the highest of.
    """

    detector: str
    clustering: str
    number: Number
    draws: float
    n_compared: int


@dataclass(frozen=True)
class RunFinding:
    """The finding of a run.

    Attributes:
        run: whose finding it is.
        trust: how far its numbers can be trusted.
        rate: share of the judged answers that are wrong; None without labels.
        declined: answers that the model declined.
        undecided: answers that were not declined and have no label.
        lead: the best detector; None where none has a ROC-AUC.
        why_none: why there is no `lead`.
        free: detector that needs no sample, and its ROC-AUC; None where the run has none.
        gain: ROC-AUC of the best detector that samples less that of `free`, and the adjusted p-value.
        sampling: that detector; None where none samples.
        beaten: how many detectors that sample are better than `free` beyond chance, and how many are worse.
        blind: the best baseline that sees neither picture nor samples; None where there is none.
        beats_blind: whether `lead` is better than `blind` beyond chance.
        suite: the leading number of the evaluation's own, with its title; None for a task of none.
        audit: labels of experts, where there are any.
        estimates: ROC-AUC of every detector that is shown, by detector and clustering; undefined ones have a reason.
    """

    run: Run
    trust: TrustState
    rate: Number | None
    declined: int
    undecided: int
    lead: LeadingDetector | None
    why_none: str = ""
    free: tuple[str, Number] | None = None
    gain: tuple[Comparison, float | None] | None = None
    sampling: LeadingDetector | None = None
    beaten: tuple[int, int] = (0, 0)
    blind: BlindRow | None = None
    beats_blind: bool = False
    suite: tuple[str, Number] | None = None
    audit: ExpertAudit | None = None
    estimates: Mapping[tuple[str, str], Number] = field(default_factory=dict)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The finding, one thought a sentence."""
        parts = [self._suite(), self._rate(), self._lead(), self._price(), self._blind(), self._labels()]
        return tuple(sentence for sentence in parts if sentence)

    @property
    def text(self) -> str:
        """The finding as one paragraph."""
        return " ".join(self.sentences)

    def lines(self) -> list[str]:
        """Return the finding and the state of trust for the end of a terminal's output."""
        return [f"Finding: {self.text}", f"Trust: {self.trust.short}."]

    def to_dict(self) -> dict[str, Any]:
        return {"finding": self.text, "trust": self.trust.to_dict()}

    def _suite(self) -> str:
        if self.suite is None:
            return ""
        title, number = self.suite
        return f"{title[0].upper()}{title[1:]}: {format_number(number, THREE_DIGITS, interval=True)}."

    def _rate(self) -> str:
        declined = f" The model declined {count_of(self.declined, 'question')}." if self.declined else ""
        if self.rate is None or self.rate.value is None:
            return f"No answer has a label, so nobody knows how many of them are wrong.{declined}"
        if self.undecided > LIMIT * (self.rate.n + self.undecided):
            return f"{self._bounds(self.rate)}{declined}"
        if self.rate.value in (0.0, 1.0):
            share = "None" if self.rate.value == 0 else "All"
            wrong = f"{share} of the {self.rate.n} judged answers are wrong"
            return f"{wrong}, so detectors have nothing to tell apart.{declined}"
        share = f"{WHOLE_PERCENT(self.rate.value)} of {self.rate.n} judged answers are wrong"
        return f"{share}{interval_text(self.rate.interval)}.{declined}"

    def _bounds(self, rate: Number) -> str:
        """Counts, and the share that is wrong with all that is undecided right, and wrong: it is not like the rest."""
        wrong, total = round((rate.value or 0.0) * rate.n), rate.n + self.undecided
        low, high = WHOLE_PERCENT.bare(wrong / total), WHOLE_PERCENT((wrong + self.undecided) / total)
        return (
            f"Of {total} answers {wrong} are wrong, {rate.n - wrong} right and {self.undecided} undecided: between "
            f"{low} and {high} are wrong. A model as judge decides more (`hedge judge --judge llm:model=...`), as do "
            "experts (`hedge audit plan`)."
        )

    def _lead(self) -> str:
        if self.lead is None:
            one_class = self.rate is not None and self.rate.value in (0.0, 1.0)
            if one_class or not self.why_none:
                return ""
            return f"There is no ROC-AUC of a detector: {self.why_none}."
        several = self.lead.n_compared > 1
        return lead_sentence(
            f"{name_of(self.lead.detector)} ({self.lead.clustering})",
            self.lead.number,
            subject="The best detector" if several else "The detector",
            wrong="a wrong answer",
            right="a right one",
            note=f"the highest of {self.lead.n_compared} ROC-AUCs, one seed" if several else "one seed",
        )

    def _price(self) -> str:
        if self.lead is None or self.sampling is None:
            return ""
        if self.free is None:
            return "There is no log-probability that the detectors which sample could be compared with."
        name, free = self.free
        value = f"{WHOLE_PERCENT(free.value or 0.0)}"
        better, worse = self.beaten
        if not better:
            what = f"the free log-probability of the answer ({name_of(name)}, {value})"
            if worse == self.sampling.n_compared:
                return f"Every detector that samples is worse than {what}."
            return f"No detector that samples beats {what}."
        gained = self.gain[0] if self.gain is not None else None
        by = ""
        if gained is not None and gained.difference:
            by = f" by {WHOLE_PERCENT.bare(gained.difference)} points{interval_text(gained.interval)}"
        who = f"{name_of(self.sampling.detector)} ({self.sampling.clustering})"
        draws = count_of(round(self.sampling.draws), "sample")
        return f"{who} beats the free log-probability of the answer ({value}){by}, at {draws} per question."

    def _blind(self) -> str:
        if self.lead is None or self.blind is None:
            return ""
        share = WHOLE_PERCENT(self.blind.estimate.value or 0.0)
        verb = "beats" if self.beats_blind else "does not beat"
        return (
            f"{name_of(self.lead.detector)} {verb} the {self.blind.title} ({share}), which sees neither picture nor "
            "samples."
        )

    def _labels(self) -> str:
        names = dict.fromkeys(str(verdict.get("judge") or "") for verdict in self.run.verdicts.values())
        whose = " and ".join([judge_in_words(name) for name in names if name][:2])
        if self.audit is not None:
            return f"Experts have checked {self.audit.n_labels} of the labels by {whose or 'those who gave them'}."
        return f"The labels are by {whose}, unaudited." if whose else ""


def judge_in_words(name: str) -> str:
    """Return a judge's name for people.

    Example:
        >>> judge_in_words("rule 7"), judge_in_words("llm:model=x")
        ('the rule judge (version 7)', 'llm:model=x')
    """
    match = _VERSION.match(name)
    return f"the {match['judge']} judge (version {match['version']})" if match else name


def finding_of(
    run: Run,
    scores: Mapping[str, Sequence[Scores]] | None = None,
    *,
    scorers: Mapping[str, Scorer] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> RunFinding:
    """Return what a run found.

    Args:
        run: finished.
        scores: of every document, by clustering; made again by what the run records, without a model, if not given.
        scorers: what the scores were made with.
        left_out: clustering -> why there are no scores.
    """
    if scores is None:
        scores, scorers, left_out = _scored(run)
    audit, unreadable = _audit(run)
    trust = trust_of(run, scores, scorers=scorers, left_out={**(left_out or {}), **unreadable}, audit=audit)
    suite = next(((m.title, n) for m, n in numbers_of_run(run) if m.leads and n.defined), None)
    estimates = {
        (detector, clustering): detection_auroc(by_document, detector)
        for clustering, by_document in scores.items()
        for detector in main_detectors(detectors_of(by_document))
    }
    fields: dict[str, Any] = {
        "rate": hallucination_rate(run.answer_sets),
        "declined": (declined := declined_in(run.verdicts.values())),
        "undecided": sum(a.label is None for a in run.answer_sets) - declined,
        "suite": suite,
        "audit": audit,
        "estimates": estimates,
    }
    defined = {key: number for key, number in estimates.items() if number.value is not None}
    if not defined:
        reasons = sorted({str(number.reason) for number in estimates.values()})
        return RunFinding(run, trust, lead=None, why_none="; ".join(reasons[:2]) or "nothing was scored", **fields)
    prices = {(d, c): price.mean for c, by_document in scores.items() for d, price in prices_of(by_document).items()}
    ranked = sorted(defined, key=lambda key: -(defined[key].value or 0.0))

    def leading(key: tuple[str, str]) -> LeadingDetector:
        return LeadingDetector(*key, defined[key], prices[key], len(defined))

    free_scores = _free_scores(run.answer_sets)
    free_numbers = {name: detection_auroc(free_scores, name) for name in FREE}
    free = free_detector([name for name, number in free_numbers.items() if number.defined])
    columns = {_key(*key): labelled(scores[key[1]], key[0]) for key in ranked}
    sampling = [key for key in ranked if prices[key] > 0]
    fields |= _against_free(columns, [_key(*key) for key in sampling], free, free_scores, free_numbers)
    if sampling:
        best = min(sampling, key=lambda key: (-(defined[key].value or 0.0), prices[key]))
        fields["sampling"] = leading(best)
    lead = leading(ranked[0])
    blind = against_blind(run.answer_sets, columns, scores[lead.clustering])
    if blind.rows:
        fields |= {"blind": blind.rows[0], "beats_blind": _key(lead.detector, lead.clustering) not in blind.not_better}
    return RunFinding(run, trust, lead=lead, **fields)


def trust_of_run(run: Run) -> TrustState:
    """Return how far a run's numbers can be trusted, by scores made again without a model; see `finding_of`."""
    scores, scorers, left_out = _scored(run)
    audit, unreadable = _audit(run)
    return trust_of(run, scores, scorers=scorers, left_out={**left_out, **unreadable}, audit=audit)


def _free_scores(answer_sets: Sequence[AnswerSet]) -> list[Scores]:
    """Return the scores of the detectors that need nothing but the judged answer, whatever the clustering."""
    return [score_clustered(a.with_clusters((0,) * len(a.answers)), detectors=FREE) for a in answer_sets]


def _against_free(
    columns: Mapping[str, Labelled],
    sampling: Sequence[str],
    free: str | None,
    free_scores: Sequence[Scores],
    free_numbers: Mapping[str, Number],
) -> dict[str, Any]:
    if free is None:
        return {}
    fields: dict[str, Any] = {"free": (free, free_numbers[free])}
    if not sampling:
        return fields
    reference = labelled(free_scores, free)
    pairs = differences({**{key: columns[key] for key in sampling}, free: reference}, sampling, free)
    gains = {key: pair for key, (pair, p) in pairs.items() if pair is not None and pair.difference is not None}
    significant = [pair for key, pair in gains.items() if (p := pairs[key][1]) is not None and p < SIGNIFICANT]
    better = sum((pair.difference or 0.0) > 0 for pair in significant)
    worse = sum((pair.difference or 0.0) < 0 for pair in significant)
    first = sampling[0]
    if first in gains:
        fields["gain"] = (gains[first], pairs[first][1])
    return {**fields, "beaten": (better, worse)}


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


def _key(detector: str, clustering: str) -> str:
    return f"{detector}, {clustering}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return an interval in whole percent behind a number; empty where there is none."""
    return "" if interval is None else f" {format_interval(interval, WHOLE_PERCENT)}"


def lead_sentence(name: str, number: Number, *, subject: str, wrong: str, right: str, note: str) -> str:
    """Return a sentence on how often a detector ranks a wrong unit above a right one, and whether that is chance.

    Args:
        name: of the detector, for people.
        number: its ROC-AUC.
        subject: "The detector", or "The best detector" of several.
        wrong, right: the units that are compared, such as "a wrong answer" and "a right one".
        note: behind a ROC-AUC that is above chance, in parentheses; may be empty.
    """
    share = f"{WHOLE_PERCENT(number.value or 0.0)} of the time{interval_text(number.interval)}"
    compared = f"{wrong} has a higher {name} than {right} {share}"
    if number.low is not None and number.low <= 0.5:
        return f"{subject} cannot be told from chance: {compared}."
    return f"{compared[0].upper()}{compared[1:]}{f' ({note})' if note else ''}."
