"""Detectors of parts of answers side by side: how well each finds the hallucinated ones, and blind baselines.

Two AUROCs: over all units, and within the answer, where only units of one answer are compared. What merely knows
which answers are bad, or where in an answer errors stand, is good at one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from hedge_tasks.detectors.pipeline import auroc_of_pairs
from hedge_tasks.detectors.probes.crossfit import INFLATION
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.units import Labelled, Unit, columns_of, labelled
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.measures.detector_table import DetectorNumbers, differences
from hedge_tasks.measures.unit_numbers import (
    TEXT,
    best_of,
    detectors_in,
    flagged,
    is_blind,
    top_unit,
    turned_to_best,
    with_text,
)
from hedge_tasks.numbers import Number
from hedge_tasks.runs.claim_files import label_options, support_of_run
from hedge_tasks.runs.claims import ClaimUnits, ScoredAnswer, ScoredClaims, claim_units, score_claims, with_draws
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import StratifiedAuroc
from hedge_tasks.statistics.base import FloatArray

FLAGGED = 0.2
"""Share of the units that is flagged by default."""

_SIZES = (1, 2, 3, 5, 10, 20, 30, 50)
_CURVE = ("claim_radflag", "claim_luq", "claim_contradiction")


@dataclass(frozen=True)
class About:
    """Facts about a detector besides its numbers; see `DetectorNumbers`."""

    title: str
    draws: int
    blind: bool


@dataclass(frozen=True)
class AnswerRow:
    """The mean or maximum over an answer's units as a detector of whole answers.

    Attributes:
        detector: such as `claims_luq_mean`, which is registered; others are only here.
        estimate: AUROC against the answers' labels.
        spearman: rank correlation with the share of hallucinated units; None where it is undefined.
    """

    detector: str
    estimate: Number
    spearman: float | None


@dataclass(frozen=True)
class CurvePoint:
    """AUROCs of a detector with the first n draws."""

    detector: str
    n: int
    estimate: Number
    within: StratifiedAuroc


@dataclass(frozen=True)
class UnitTable:
    """Everything about a run scored by unit.

    Attributes:
        scored: the run.
        counted: its units.
        columns: scores of the labelled ones by detector.
        rows: detectors, the best first, blind ones behind them.
        left_out: detector -> why it is not there.
        best_blind: names of the best blind baseline over all units and within answers; None where there is none.
        answers: mean and maximum over units.
        curve: by number of draws.
        answer_label: what the labels of whole answers are.
        covered: share of the answers' text that lies in a unit, on average.
        unlocated: units that the decomposition could not place.
    """

    scored: ScoredClaims
    counted: ClaimUnits
    columns: Mapping[str, Labelled]
    rows: tuple[DetectorNumbers, ...]
    left_out: Mapping[str, str]
    best_blind: tuple[str | None, str | None]
    answers: tuple[AnswerRow, ...]
    curve: tuple[CurvePoint, ...]
    answer_label: str
    covered: float
    unlocated: int
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_labelled(self) -> int:
        return len(self.counted.labelled)


def unit_table(
    scored: ScoredClaims,
    *,
    probes: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    silent: str = "unlabelled",
    errors: str = "all",
    flag: float = FLAGGED,
    seed: int = 0,
) -> UnitTable:
    """Measure every detector of units against the labels, and compare it with the best blind baseline.

    Args:
        silent, errors: see `hedge_tasks.claims.labels.label_of`.
        flag: share of the units that is flagged, in (0, 1).
        seed: of the folds of the text classifier.
        probes: scores of fitted detectors by the id of the claim.

    Raises:
        ConfigError: a value makes no sense.
        DataError: no unit has a label.
    """
    if not 0 < flag < 1:
        raise ConfigError(f"flag: expected a share between 0 and 1, got {flag}")
    counted = claim_units(scored, silent=silent, errors=errors)
    units = counted.labelled
    if not units:
        raise DataError(
            f"{scored.title}: none of {len(counted.units)} claims has a label that counts and known support"
        )
    units, why_no_text = with_text(units, seed)
    units = tuple(
        replace(unit, numbers={**unit.numbers, **{name: values.get(unit.id) for name, values in probes.items()}})
        for unit in units
    )
    columns, left_out = columns_of(units, detectors_in(units))
    if why_no_text:
        left_out[TEXT] = why_no_text
    else:  # also where it says the same of every unit: that is a finding about the wording
        columns[TEXT] = labelled(units, TEXT)
        left_out.pop(TEXT, None)
    for name in probes.keys() & columns.keys():
        columns[name] = replace(columns[name], inflation=INFLATION)
    rows, best = detector_rows(columns, {name: about_detector(name, *draws_of(scored)) for name in columns}, flag=flag)
    answer_rows, answer_label = _answer_rows(scored, units, [name for name in columns if name not in probes])
    weights = [answer.covered for answer in scored.decomposed]
    return UnitTable(
        scored,
        counted,
        columns,
        tuple(
            replace(row, passes=1, labels=round(len(probes[row.detector]) * 0.8), fitted=True)
            if row.detector in probes
            else row
            for row in rows
        ),
        {**scored.left_out, **left_out},
        best,
        answer_rows,
        tuple(_curve(scored, units)),
        answer_label,
        sum(weights) / len(weights),
        sum(answer.unlocated for answer in scored.decomposed),
        {"silent": silent, "errors": errors, "flag": flag},
    )


def about_detector(detector: str, n: int, m: int) -> About:
    """Return what is known of an installed detector.

    Args:
        n, m: clean and noisy samples of each answer.
    """
    if detector == TEXT:
        return About("Text classifier", 0, True)
    if (fitted := fitted_detectors("claim").get(detector)) is not None:
        return About(fitted.title, 0, False)
    registered = get(detector)
    return About(registered.label, registered.draws(n, m), registered.blind)


def detector_rows(
    columns: Mapping[str, Labelled], facts: Mapping[str, About], *, flag: float | None = None
) -> tuple[list[DetectorNumbers], tuple[str | None, str | None]]:
    """Return a row for each column, the best first, blind ones behind them, compared with the best blind baselines.

    Args:
        columns: scores of the labelled units by detector.
        facts: about the same detectors.
        flag: share of the units that is flagged; None: neither flagged nor top units are looked at.

    Returns:
        The rows, and the names of the best blind baseline over all units and within answers.
    """
    turned = {name: turned_to_best(column) if facts[name].blind else column for name, column in columns.items()}
    over_all = {name: column.auroc() for name, column in turned.items()}
    inside = {name: column.within() for name, column in turned.items()}
    blind = [name for name in turned if facts[name].blind]
    best = best_of({name: over_all[name] for name in blind}), best_of({name: inside[name] for name in blind})
    seeing = [name for name in turned if not facts[name].blind]
    pooled, within = (differences(turned, seeing, baseline, within=i > 0) for i, baseline in enumerate(best))
    rows = [
        DetectorNumbers(
            name,
            facts[name].title,
            facts[name].draws,
            over_all[name],
            inside[name],
            *pooled.get(name, (None, None)),
            *within.get(name, (None, None)),
            blind=facts[name].blind,
            reversed=column is not columns[name],
            top=None if flag is None else top_unit(column),
            flagged=None if flag is None else flagged(column, flag),
        )
        for name, column in turned.items()
    ]
    return sorted(rows, key=lambda row: (row.blind, -(row.estimate.value or 0.0), row.detector)), best


def draws_of(scored: ScoredClaims) -> tuple[int, int]:
    """Return the fewest clean and noisy samples of an answer."""
    evidence = [answer.evidence for answer in scored.answers]
    return min((e.n_clean for e in evidence), default=0), min((e.n_noisy for e in evidence), default=0)


def _answer_rows(
    scored: ScoredClaims, units: Sequence[Unit], names: Sequence[str]
) -> tuple[tuple[AnswerRow, ...], str]:
    """Measure the mean and maximum over all units of an answer, labelled or not, against the answer's label."""
    from scipy.stats import spearmanr

    by_answer: dict[str, list[int]] = {}
    for unit in units:
        by_answer.setdefault(unit.parent, []).append(unit.label or 0)
    group_of = {unit.parent: unit.group for unit in units}
    scored_answers = [answer for answer in scored.answers if answer.answers.id in by_answer]
    sets = [answer.answers for answer in scored_answers]
    groups = [group_of[answers.id] for answers in sets]
    shares = [float(np.mean(by_answer[answers.id])) for answers in sets]
    labels = [answers.label for answers in sets if answers.label is not None]
    label_source = "labels of the answers"
    if len(labels) < len(sets):
        labels, label_source = [int(share > 0) for share in shares], "whether any labelled claim is hallucinated"
    rows = []
    for name in names:
        if is_blind(name):
            continue
        for how, function in (("mean", np.mean), ("max", np.max)):
            values = np.array([function(_known(answer, name)) for answer in scored_answers], dtype=np.float64)
            # As for every detector of answers, so that a number has one interval.
            defined = [None if np.isnan(value) else float(value) for value in values]
            pairs = list(zip(defined, labels, groups, strict=True))
            varied = len(sets) > 2 and np.ptp(values) > 0 and np.ptp(shares) > 0
            correlation = float(spearmanr(values, shares).statistic) if varied else None
            rows.append(AnswerRow(f"claims_{name.removeprefix('claim_')}_{how}", auroc_of_pairs(pairs), correlation))
    return tuple(rows), label_source


def _known(answer: ScoredAnswer, name: str) -> FloatArray:
    """Return the scores of an answer's claims that are not NaN."""
    values = answer.scores[name]
    return values[~np.isnan(values)]


def _curve(scored: ScoredClaims, units: Sequence[Unit]) -> list[CurvePoint]:
    most = draws_of(scored)[0]
    names = [name for name in _CURVE if any(name in answer.scores for answer in scored.answers)]
    labels = {unit.id: unit.label for unit in units}
    points = []
    for n in (*(size for size in _SIZES if size < most), most):
        if not n or not names:
            continue
        cut = replace(scored, answers=tuple(with_draws(answer, n, names) for answer in scored.answers))
        of_cut = [replace(unit, label=labels.get(unit.id)) for unit in claim_units(cut).units]
        columns = {name: labelled(of_cut, name) for name in names}
        points += [
            CurvePoint(name, n, column.auroc(), column.within())
            for name, column in columns.items()
            if len(column.values) == len(units)
        ]
    return points


def score_kept_claims(run: Run) -> ScoredClaims | None:
    """Score the claims that are kept with a run; None where nothing is kept, or it cannot be used.

    The support that counts is that of `support_of_run`.

    Raises:
        DataError: labels in the run are none of its answers.
    """
    kept = support_of_run(run)
    return None if kept is None else score_claims(run, kept.supported, kept, kept.price, kept.settings)


def measured_claims(claims: ScoredClaims, run: Run) -> tuple[UnitTable | None, str]:
    """Measure claims, with labels counted as in their run's settings; None with the reason where there are none."""
    if not has_labels(claims):
        return None, "no claim is labelled"
    try:
        return unit_table(claims, **label_options(run)), ""
    except DataError as error:
        return None, str(error)


@dataclass(frozen=True)
class KeptNumbers:
    """The scores and numbers of the claims that are kept with a run.

    Attributes:
        scored: with all their scores; None where they cannot be.
        table: their numbers; None where there are none.
        why: there are no numbers.
    """

    scored: ScoredClaims | None
    table: UnitTable | None
    why: str = ""


def kept_numbers(run: Run) -> KeptNumbers | None:
    """Score and measure the claims kept with a run; None where nothing is kept. Faults are given as `why`."""
    try:
        claims = score_kept_claims(run)
    except HedgeError as error:  # no reason to have no numbers of the answers
        return KeptNumbers(None, None, str(error))
    return None if claims is None else KeptNumbers(claims, *measured_claims(claims, run))


def has_labels(claims: ScoredClaims) -> bool:
    """Return whether any claim has a label, or a reference that is silent on it."""
    labels = (label for answer in claims.answers for label in answer.labels.labels)
    return any(label is not None and (label.label is not None or label.silent) for label in labels)
