"""Detectors side by side: on the same answers, with their price, and at one price where a budget is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.clustering.model_outputs import ReusesOutputs
from hedge_tasks.detectors.base import NEEDS, Detector
from hedge_tasks.detectors.pipeline import REFERENCE, Scores
from hedge_tasks.detectors.probes.base import FittedDetector
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import Labelled, columns_of, compare_columns, detection_auroc, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.measures.audited import scores_by
from hedge_tasks.measures.blind import TITLES, blind_scores, turned_to_best
from hedge_tasks.measures.fitted import LOOKED_AT, SEMANTIC_ENTROPY, ProbeData
from hedge_tasks.measures.priced_scores import PricedScores, priced_columns
from hedge_tasks.measures.unit_numbers import Flagged, Top, best_of, flagged, top_unit
from hedge_tasks.numbers import FOUR_DIGITS, SIGNED, SIGNED_FOUR, Cell, Column, Number, Table
from hedge_tasks.runs.audit_files import audit_of
from hedge_tasks.runs.evidence import incomplete_sources
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, StratifiedAuroc, max_t


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
        labels: units it was fitted on, the mean over folds; 0 where it is not fitted to labels.
        fitted: whether it is fitted on this run, every unit by others' images.
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
class ComparedDetectors:
    """Detectors on the units of one run, whatever they are units of.

    Attributes:
        columns: scores of the labelled units by detector.
        rows: those with a ROC-AUC, the highest first; blind ones behind them.
        left_out: detector -> why it has none.
        against: what the others are compared with over all units, and within parents; None for nothing.
    """

    columns: Mapping[str, Labelled]
    rows: tuple[DetectorNumbers, ...]
    left_out: Mapping[str, str]
    against: tuple[str | None, str | None]


@dataclass(frozen=True)
class DetectorTable(ComparedDetectors):
    """Detectors on the answers of one run.

    Attributes:
        run, scorer: what was scored, and what the answers were clustered with.
    """

    run: Run
    scorer: Scorer


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

    Where an audit stands beside the run every number is by the labels of experts; none is within question types then.

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
    priced, unpaid = priced_columns(run.answer_sets, scorer, scorable, budget)
    audit = audit_of(run)
    priced = {name: replace(column, scores=scores_by(column.scores, audit)) for name, column in priced.items()}
    columns, undefined = _defined(priced)
    left_out = {**unpaid, **not_kept, **undefined}
    counted = next((column.scores for column in priced.values()), [])
    for more, why in (_blind_columns(run, counted) if blind else ({}, {}), _fitted_columns(run, priced, fitted)):
        # A blind baseline stands for the detector of its name that has no ROC-AUC, such as a length in words.
        columns |= {name: column for name, column in more.items() if name not in columns}
        left_out = {name: reason for name, reason in (why | left_out).items() if name not in columns}
    n = min(len(a.clean) for a in run.answer_sets)
    paid = {name: {"draws": column.draws} for name, column in priced.items()}
    facts = {name: facts_of(name, "answer", c, n, n) | paid.get(name, {}) for name, c in columns.items()}
    return DetectorTable(*detector_rows(columns, facts, left_out, against=against), run, scorer)


def _defined(priced: Mapping[str, PricedScores]) -> tuple[dict[str, Labelled], dict[str, str]]:
    """Return the columns that have a ROC-AUC, and why the others have none."""
    numbers = {name: detection_auroc(column.scores, name) for name, column in priced.items()}
    columns = {name: labelled(priced[name].scores, name) for name, number in numbers.items() if number.defined}
    return columns, {name: str(number.reason) for name, number in numbers.items() if not number.defined}


def facts_of(detector: str, level: str, column: Labelled, n: int, m: int) -> dict[str, Any]:
    """Return what is known of a detector besides its numbers; see `DetectorNumbers`.

    Args:
        n, m: clean and noisy samples of each answer.
    """
    if detector in TITLES:
        return {"title": TITLES[detector], "draws": 0, "blind": True}
    if (fitted := fitted_detectors(level).get(detector)) is not None:
        labels = round(len(column.values) * 0.8) if fitted.target == "labels" else 0
        return {"title": fitted.title, "draws": 0, "passes": 1, "labels": labels, "fitted": True}
    known = get(detector)
    return {"title": known.label, "draws": known.draws(n, m), "passes": known.passes(n), "blind": known.blind}


def detector_rows(
    columns: Mapping[str, Labelled],
    facts: Mapping[str, Mapping[str, Any]],
    left_out: Mapping[str, str],
    *,
    against: str | None = None,
    flag: float | None = None,
) -> tuple[Mapping[str, Labelled], tuple[DetectorNumbers, ...], Mapping[str, str], tuple[str | None, str | None]]:
    """Return the fields of `ComparedDetectors`: a row for each column, with its difference to what it is compared with.

    Args:
        columns: scores of the labelled units by detector.
        facts: of the same detectors; see `facts_of`.
        left_out: detector -> why it has no column.
        against: what they are compared with; None for the best blind baseline, over all units and within parents.
        flag: share of the units that is flagged; None: neither flagged nor top units are looked at.
    """
    blind = {name for name in columns if facts[name].get("blind")}
    turned = {name: turned_to_best(c) if name in blind else c for name, c in columns.items()}
    over_all = {name: column.auroc() for name, column in turned.items()}
    left_out = {**left_out, **{name: str(number.reason) for name, number in over_all.items() if not number.defined}}
    turned = {name: column for name, column in turned.items() if name not in left_out}
    inside = {name: column.within() for name, column in turned.items()}
    seeing = [name for name in turned if name not in blind]
    rivals: tuple[str | None, str | None] = (against, None)
    if against is None:
        rivals = _best(over_all, blind & turned.keys()), _best(inside, blind & turned.keys())
    pooled, within = (differences(turned, seeing, rival, within=i > 0) for i, rival in enumerate(rivals))
    rows = [
        DetectorNumbers(
            name,
            estimate=over_all[name],
            within=inside[name],
            difference=pooled.get(name, (None, None))[0],
            p_adjusted=pooled.get(name, (None, None))[1],
            difference_within=within.get(name, (None, None))[0],
            p_adjusted_within=within.get(name, (None, None))[1],
            reversed=column is not columns[name],
            top=None if flag is None else top_unit(column),
            flagged=None if flag is None else flagged(column, flag),
            **facts[name],
        )
        for name, column in turned.items()
    ]
    ranked = sorted(rows, key=lambda row: (row.blind, -(row.estimate.value or 0.0), row.detector))
    return columns, tuple(ranked), left_out, rivals


def _best(numbers: Mapping[str, Number], names: Collection[str]) -> str | None:
    return best_of({name: numbers[name] for name in names})


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


def _blind_columns(run: Run, scores: Sequence[Scores]) -> tuple[dict[str, Labelled], dict[str, str]]:
    """Return the blind baselines of answers, and why others have none."""
    values, left_out = blind_scores(run.answer_sets, [s.reported_label for s in scores]) if scores else ({}, {})
    with_them = [replace(s, numbers={name: v[i] for name, v in values.items()}) for i, s in enumerate(scores)]
    columns, faults = columns_of(with_them, values)
    return columns, left_out | faults


def _fitted_columns(
    run: Run, columns: Mapping[str, PricedScores], fitted: Sequence[FittedDetector]
) -> tuple[dict[str, Labelled], dict[str, str]]:
    """Return the columns of fitted detectors, and why others have none.

    They are not compared within kinds of questions: the more errors of a kind there are to fit on, the fewer are in the
    fold, so that useless features are worth less than .5.
    """
    if not fitted or not columns:
        return {}, {}
    scores = columns.get(SEMANTIC_ENTROPY, next(iter(columns.values()))).scores
    try:
        data = ProbeData.of(scores, inside_source(run)(LOOKED_AT))
    except DataError as error:
        return {}, {probe.name: str(error) for probe in fitted}
    by_name, left_out = data.columns(fitted)
    return {name: replace(column, strata=None) for name, column in by_name.items()}, left_out


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


_COLUMNS = (
    *(Column("detector"), Column("draws"), Column("passes"), Column("labels")),
    Column("estimate", "ROC-AUC", format=FOUR_DIGITS),
    Column("interval", "95 %", show="interval", of="estimate"),
    Column("within", format=FOUR_DIGITS),
    Column("within_interval", "95 %", show="interval", of="within"),
    *(Column("top"), Column("chance", "(chance)"), Column("flagged"), Column("precision"), Column("recall")),
)


def numbers_table(
    rows: Sequence[DetectorNumbers],
    *,
    against: str,
    brief: bool = False,
    title: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """Return a table of detectors of any unit, without the columns that no row has anything in.

    Args:
        against: what the differences are to.
        brief: without numbers within strata, and without the most suspicious and the flagged units: as wide as a
            terminal.
    """
    columns = list(_COLUMNS[:6] if brief else _COLUMNS)
    for key, p, heading in (
        ("difference", "p_adjusted", against),
        ("difference_within", "p_adjusted_within", f"{against} within"),
    ):
        columns.append(Column(key, f"- {heading}", format=SIGNED_FOUR))
        columns.append(Column(f"{key}_interval", "95 %", format=SIGNED, show="interval", of=key))
        columns.append(Column(p, "p (max-T)", show="p"))
    cells = [_cells(row) for row in rows]
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
