"""Detectors side by side: on the same answers, with their price, and at one price where a budget is given."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.detectors.base import NEEDS, Detector
from hedge_tasks.detectors.pipeline import REFERENCE, Scores, auroc_within, detection_auroc
from hedge_tasks.detectors.probes.base import FittedDetector
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import Labelled, compare_columns, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.measures.audited import auroc_by_experts, auroc_if_independent
from hedge_tasks.measures.blind import AgainstBlind, against_blind
from hedge_tasks.measures.priced_scores import PricedScores, priced_columns
from hedge_tasks.measures.probe_table import LOOKED_AT, SEMANTIC_ENTROPY, ProbeData, fitted_scores
from hedge_tasks.measures.unit_numbers import Flagged, Top
from hedge_tasks.numbers import Number
from hedge_tasks.runs.audit_files import audit_of, check_of
from hedge_tasks.runs.evidence import incomplete_sources
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, StratifiedAuroc, max_t
from hedge_tasks.statistics.base import midranks
from hedge_tasks.statistics.resampling import group_totals, percentile_interval, unit_counts

_RESAMPLES = 2000
_FEWEST_RUNS = 3


@dataclass(frozen=True)
class DetectorNumbers:
    """One detector on the units of one run: whole answers, or parts of them.

    Attributes:
        detector, title: its name, and what it is called.
        draws: answers a question that it costs besides the baseline answer.
        estimate: ROC-AUC.
        within: the same within question types; of parts of answers within the answer.
        difference: its ROC-AUC less that of the detector it is compared with; None for that one itself.
        p_adjusted: of the difference, adjusted for all rows that are compared.
        difference_within, p_adjusted_within: the same of ROC-AUCs within answers; of parts only.
        seconds: that evidence and score took here, for all questions; what was kept with the run is looked up. None
            where they are not counted.
        blind: whether it sees neither image nor draws.
        reversed: whether a blind baseline's sign is turned because its ROC-AUC is below 0.5.
        top, flagged: of parts only; None where they are undefined.
        passes: prompts that the model read once more for it.
        labels: documents it was fitted on, the mean over folds; 0 where it is not fitted to labels.
        fitted: whether it is fitted on this run, every document by others' images.
    """

    detector: str
    title: str
    draws: int
    estimate: Number
    within: StratifiedAuroc
    difference: Comparison | None = None
    p_adjusted: float | None = None
    difference_within: Comparison | None = None
    p_adjusted_within: float | None = None
    seconds: float | None = None
    blind: bool = False
    reversed: bool = False
    top: Top | None = None
    flagged: Flagged | None = None
    passes: int = 0
    labels: int = 0
    fitted: bool = False


@dataclass(frozen=True)
class DetectorTable:
    """All detectors on one run.

    Attributes:
        run, scorer: what was scored, and what the answers were clustered with.
        against: name of the detector that the others are compared with.
        rows: those with a ROC-AUC, the highest first, by experts where there is an audit.
        left_out: detector -> why it has none.
        scores: of all questions by the detectors with a row.
        blind: baselines that see neither picture nor draws, beside the detectors; None where they were not measured.
        experts: detector -> its ROC-AUC against experts, where an audit stands beside the run.
        independent: detector -> its ROC-AUC without the judge's errors, if these are independent of the score; where a
            check of the judge stands beside the run, and no audit.
    """

    run: Run
    scorer: Scorer
    against: str
    rows: tuple[DetectorNumbers, ...]
    left_out: Mapping[str, str]
    scores: Sequence[Scores] = ()
    blind: AgainstBlind | None = None
    experts: Mapping[str, Number] = field(default_factory=dict)
    independent: Mapping[str, Number] = field(default_factory=dict)


@dataclass(frozen=True)
class Rank:
    """Where a detector stands among those that all runs have, 1 being the best.

    Attributes:
        detector: its name.
        mean: of its ranks; equal ROC-AUCs share the mean of their places.
        interval: 95 %, by resampling runs; None with fewer than three.
    """

    detector: str
    mean: float
    interval: tuple[float, float] | None


_NOT_WITHIN = StratifiedAuroc.undefined("cross-fitted scores are not compared within kinds of questions")
"""The more errors of a kind there are to fit on, the fewer are in the fold: useless features are worth less than .5."""


def detector_table(
    run: Run,
    scorer: Scorer,
    names: Sequence[str],
    *,
    against: str = REFERENCE,
    budget: int | None = None,
    only_kept: bool = False,
    blind: bool = True,
    fitted: Sequence[FittedDetector] = (),
) -> DetectorTable:
    """Score a run with every detector and compare each with one of them.

    Args:
        names: of the detectors.
        against: what they are compared with, on the documents that both have, by DeLong's paired test.
        budget: most draws a question. Every detector then gets as many of the first answers as it can pay, clean and
            noisy alike where it looks at both: of 20 draws semantic entropy gets 20 clean ones and VASE 10 + 10. What
            it does not pay for it does not see, in the clustering neither.
        only_kept: whether detectors are left out that need a model's outputs for all pairs of answers,
            because the run keeps evidence, but not this.
        blind: whether blind baselines are measured, too.
        fitted: detectors that are fitted, cross-fitted by image on what was kept from inside the model.

    Raises:
        ConfigError: there is no such detector (names the nearest one), or the budget is negative.
        DataError: there are no answers.
    """
    if not run.answer_sets:
        raise DataError(f"{run.title}: there are no answers")
    detectors = {name: get(name) for name in dict.fromkeys((*names, against))}
    not_kept = _not_kept(run, scorer, detectors) if only_kept else {}
    scorable = {name: detector for name, detector in detectors.items() if name not in not_kept}
    columns, left_out = priced_columns(run.answer_sets, scorer, scorable, budget)
    left_out |= not_kept
    of_fitted, not_fitted = _fitted_columns(run, columns, fitted)
    columns |= of_fitted
    left_out |= not_fitted
    titles = {name: detector.title for name, detector in detectors.items()}
    titles |= {probe.name: probe.title for probe in fitted}
    n = min(len(a.clean) for a in run.answer_sets)
    scores = {
        name: replace(labelled(column.scores, name), inflation=column.inflation) for name, column in columns.items()
    }
    estimates = {
        name: scores[name].auroc() if name in of_fitted else detection_auroc(column.scores, name)
        for name, column in columns.items()
    }
    left_out |= {name: str(e.reason) for name, e in estimates.items() if e.value is None}
    audit = audit_of(run)
    experts: dict[str, Number] = {}
    if audit is not None:
        experts = {n: auroc_by_experts(columns[n].scores, n, audit) for n in columns if n not in left_out}
    values = {n: e.value or 0.0 for n, e in {**estimates, **experts}.items()}
    ranked = sorted((n for n in titles if n not in left_out), key=lambda n: (-values[n], n))
    scores = {name: scores[name] for name in ranked}
    compared = differences(scores, ranked, against)
    rows = tuple(
        DetectorNumbers(
            detector=name,
            title=titles[name],
            draws=columns[name].draws,
            passes=detectors[name].passes(n) if name in detectors else 1,
            labels=columns[name].labels,
            fitted=name in of_fitted,
            seconds=columns[name].seconds,
            estimate=estimates[name],
            within=_NOT_WITHIN if name in of_fitted else auroc_within(columns[name].scores, name),
            difference=compared[name][0],
            p_adjusted=compared[name][1],
        )
        for name in ranked
    )
    # Scores that are fitted to the labels are nothing that a fusion may be fitted on.
    plain = [name for name in ranked if name not in of_fitted]
    joined = [
        replace(first, numbers={name: columns[name].scores[i][name] for name in plain})
        for i, first in enumerate(columns[plain[0]].scores if plain else ())
    ]
    check = check_of(run) if audit is None else None
    return DetectorTable(
        run,
        scorer,
        against,
        rows,
        left_out,
        joined,
        against_blind(run.answer_sets, scores, joined) if blind and joined else None,
        experts,
        {} if check is None else {name: auroc_if_independent(columns[name].scores, name, check) for name in ranked},
    )


def differences(
    columns: Mapping[str, Labelled], names: Sequence[str], against: str | None, *, within: bool = False
) -> dict[str, tuple[Comparison | None, float | None]]:
    """Return the paired difference of each detector to one of them, with p-values adjusted for all of these.

    By a step-down max-T test.

    Args:
        columns: scores by detector.
        names: of those that are compared.
        against: what they are compared with; None for nothing.
        within: whether only units of one stratum are compared.
    """
    reference = None if against is None else columns.get(against)
    pairs = {
        name: None if reference is None or name == against else compare_columns(columns[name], reference, within=within)
        for name in names
    }
    adjusted = dict(zip(pairs, max_t(list(pairs.values())), strict=True))
    return {name: (pair, adjusted[name]) for name, pair in pairs.items()}


def _fitted_columns(
    run: Run, columns: Mapping[str, PricedScores], fitted: Sequence[FittedDetector]
) -> tuple[dict[str, PricedScores], dict[str, str]]:
    """Return the scores of fitted detectors, and why others have none."""
    if not fitted or not columns:
        return {}, {}
    scores = columns.get(SEMANTIC_ENTROPY, next(iter(columns.values()))).scores
    try:
        data = ProbeData.of(run.answer_sets, scores, inside_source(run)(LOOKED_AT))
    except DataError as error:
        return {}, {probe.name: str(error) for probe in fitted}
    priced: dict[str, PricedScores] = {}
    left_out: dict[str, str] = {}
    for probe in fitted:
        start = time.perf_counter()
        try:
            scored = fitted_scores(data, probe)
        except DataError as error:
            left_out[probe.name] = str(error)
            continue
        seconds = time.perf_counter() - start
        priced[probe.name] = PricedScores(scored.scores, 0, seconds, scored.labels, scored.inflation)
    return priced, left_out


def _not_kept(run: Run, scorer: Scorer, detectors: Mapping[str, Detector]) -> dict[str, str]:
    """Return, by detector, the evidence that the run does not keep and a model would have to be asked for."""
    if not run.evidence or not isinstance(scorer.backend, ReusesOutputs):
        return {}
    missing = incomplete_sources(run.outputs, scorer.backend.sources(), run.answer_sets)
    return {
        name: f"the run does not keep {NEEDS[need]}: --keep asks {source.model} for them, once"
        for name, detector in detectors.items()
        for need, source in missing.items()
        if need in detector.needs
    }


def mean_ranks(tables: Sequence[DetectorTable], *, seed: int = 0) -> list[Rank]:
    """Return the mean rank over runs of every detector that all of them have, the best first; see `ranks_of`."""
    values = [{row.detector: row.estimate.value or 0.0 for row in table.rows} for table in tables]
    return ranks_of(values, range(len(values)), seed=seed)


def ranks_of(values: Sequence[Mapping[str, float]], groups: Sequence[Hashable], *, seed: int = 0) -> list[Rank]:
    """Return the mean rank over runs of every detector that all of them have, the best first.

    The interval is by resampling runs, or groups of them: it shows how far other runs like these would have
    another order, and is rough with few of them.

    Args:
        values: by run, the ROC-AUC of each detector.
        groups: what runs share that are drawn together, such as a model on several tasks, length as `values`.
    """
    names = [name for name in values[0] if all(name in by_detector for by_detector in values)] if values else []
    if not names:
        return []
    ranks = np.array([midranks([-by_detector[name] for name in names]) for by_detector in values])
    # Sums and counts by group, so that resampled means are ratios of what was drawn.
    totals = group_totals(groups, np.column_stack([ranks, np.ones(len(ranks))]))
    sums = np.concatenate([times @ totals for times in unit_counts(len(totals), _RESAMPLES, 1, seed)])
    resampled = sums[:, :-1] / sums[:, -1:]
    mean_by_detector = [
        Rank(
            name,
            float(ranks[:, i].mean()),
            percentile_interval(resampled[:, i], 0.95) if len(totals) >= _FEWEST_RUNS else None,
        )
        for i, name in enumerate(names)
    ]
    return sorted(mean_by_detector, key=lambda rank: (rank.mean, rank.detector))
