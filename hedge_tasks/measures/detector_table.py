"""Detectors side by side: on the same answers, with their price, and at one price where a budget is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from scipy.stats import rankdata

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.detectors.base import NEEDS, Detector
from hedge_tasks.detectors.pipeline import REFERENCE, Scores, auroc_within, detection_auroc
from hedge_tasks.detectors.probes.base import FittedDetector
from hedge_tasks.detectors.probes.crossfit import INFLATION
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import Labelled, compare_columns, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.measures.audited import auroc_by_experts
from hedge_tasks.measures.blind import AgainstBlind, against_blind
from hedge_tasks.measures.fitted import LOOKED_AT, SEMANTIC_ENTROPY, ProbeData, fitted_scores
from hedge_tasks.measures.priced_scores import PricedScores, priced_columns
from hedge_tasks.measures.unit_numbers import Flagged, Top
from hedge_tasks.numbers import FOUR_DIGITS, SIGNED, SIGNED_FOUR, Cell, Column, Number, Table
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.evidence import incomplete_sources
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, StratifiedAuroc, estimate_mean, max_t

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
        blind: baselines that see neither picture nor draws, beside the detectors; None where they were not measured.
        experts: detector -> its ROC-AUC against experts, where an audit stands beside the run.
    """

    run: Run
    scorer: Scorer
    against: str
    rows: tuple[DetectorNumbers, ...]
    left_out: Mapping[str, str]
    blind: AgainstBlind | None = None
    experts: Mapping[str, Number] = field(default_factory=dict)


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
            estimate=estimates[name],
            within=_NOT_WITHIN if name in of_fitted else auroc_within(columns[name].scores, name),
            difference=compared[name][0],
            p_adjusted=compared[name][1],
        )
        for name in ranked
    )
    counted = next((column.scores for name, column in columns.items() if name not in of_fitted), None)
    return DetectorTable(
        run,
        scorer,
        against,
        rows,
        left_out,
        against_blind(run.answer_sets, scores, counted) if blind and counted is not None else None,
        experts,
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
        data = ProbeData.of(scores, inside_source(run)(LOOKED_AT))
    except DataError as error:
        return {}, {probe.name: str(error) for probe in fitted}
    by_name, left_out = fitted_scores(data, fitted)
    priced = {
        probe.name: PricedScores(
            [
                replace(s, numbers={probe.name: by_name[probe.name][s.id]}, choice_errors={})
                for s in data.units
                if isinstance(s, Scores)
            ],
            0,
            data.trained_on(probe),
            INFLATION,
        )
        for probe in fitted
        if probe.name in by_name
    }
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


def mean_ranks(tables: Sequence[DetectorTable]) -> list[Rank]:
    """Return the mean rank over runs of every detector that all of them have, the best first.

    The interval is Student's between runs: it shows how far other runs like these would have another order, and is
    rough with few of them.
    """
    values = [{row.detector: row.estimate.value or 0.0 for row in table.rows} for table in tables]
    names = [name for name in values[0] if all(name in by_detector for by_detector in values)] if values else []
    if not names:
        return []
    ranks = rankdata([[-by_detector[name] for name in names] for by_detector in values], axis=1)
    between = [estimate_mean(of_runs, range(len(of_runs))).interval for of_runs in ranks.T]
    within = [(max(1.0, bounds[0]), min(float(len(names)), bounds[1])) if bounds else None for bounds in between]
    intervals = within if len(ranks) >= _FEWEST_RUNS else [None] * len(names)
    means = map(Rank, names, ranks.mean(axis=0).tolist(), intervals)
    return sorted(means, key=lambda rank: (rank.mean, rank.detector))


_COLUMNS = (
    *(Column("detector"), Column("draws"), Column("passes"), Column("labels")),
    Column("estimate", "ROC-AUC", format=FOUR_DIGITS),
    Column("interval", "95 %", show="interval", of="estimate"),
    Column("experts", "against experts", format=FOUR_DIGITS, interval=True),
    Column("within", format=FOUR_DIGITS),
    Column("within_interval", "95 %", show="interval", of="within"),
    *(Column("top"), Column("chance", "(chance)"), Column("flagged"), Column("precision"), Column("recall")),
)


def numbers_table(
    rows: Sequence[DetectorNumbers],
    *,
    against: str,
    experts: Mapping[str, Number] | None = None,
    baselines: Sequence[Mapping[str, Cell]] = (),
    brief: bool = False,
    title: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of detectors of any unit, without the columns that no row has anything in.

    Args:
        against: what the differences are to.
        experts: by detector, its ROC-AUC against experts' labels.
        baselines: further rows, below the others.
        brief: without numbers within strata, and without the most suspicious and the flagged units: as wide as a
            terminal.
    """
    columns = list(_COLUMNS[:7] if brief else _COLUMNS)
    for key, p, heading in (
        ("difference", "p_adjusted", against),
        ("difference_within", "p_adjusted_within", f"{against} within"),
    ):
        columns.append(Column(key, f"- {heading}", format=SIGNED_FOUR))
        columns.append(Column(f"{key}_interval", "95 %", format=SIGNED, show="interval", of=key))
        columns.append(Column(p, "p (max-T)", show="p"))
    cells = [_cells(row) | ({"experts": experts[row.detector]} if experts else {}) for row in rows]
    cells += [dict(baseline) for baseline in baselines]
    filled = [
        column
        for column in (columns[:-3] if brief else columns)
        if any(row.get(column.source) is not None for row in cells)
    ]
    return Table(filled, cells, title, notes)


def _cells(row: DetectorNumbers) -> dict[str, Cell]:
    kind = " (blind)" if row.blind else " (fitted)" if row.fitted else ""
    cells: dict[str, Cell] = {
        "detector": row.detector + ("*" if row.reversed else "") + kind,
        "title": row.title,
        "draws": row.draws,
        # Most detectors cost neither: the columns are there where one does.
        "passes": row.passes or None,
        "labels": row.labels or None,
        "estimate": row.estimate,
        "within": row.within,
    }
    if row.top is not None:
        cells |= {"top": row.top.rate, "chance": row.top.chance}
    if row.flagged is not None:
        cells |= {"flagged": row.flagged.share, "precision": row.flagged.precision, "recall": row.flagged.recall}
    # A difference without a value has no reason here where the ROC-AUC has one.
    if (over_all := row.difference) is not None and row.estimate.defined:
        cells |= {"a": over_all.a, "b": over_all.b, "difference": over_all.number, "p_value": over_all.p_value}
    if row.difference_within is not None and row.within.defined:
        cells["difference_within"] = row.difference_within.number
    return {**cells, "p_adjusted": row.p_adjusted, "p_adjusted_within": row.p_adjusted_within}
