"""Worth of a detector of units besides its ROC-AUC: top unit, flagging, and the blind baselines to beat.

Tables of a run, rows of lmms-eval's table and submissions take their numbers from here, so that they are one number.
Intervals are clustered by image: units of an answer are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedge_tasks.detectors.probes.folds import group_names
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.units import Labelled, Unit, UnitsOfAnswer
from hedge_tasks.errors import DataError
from hedge_tasks.measures.blind import CLAIM_TEXT, TITLES, text_scores, turned_to_best
from hedge_tasks.numbers import Number
from hedge_tasks.runs.claims import ScoredClaims, claim_units
from hedge_tasks.statistics import estimate_mean, estimate_rate
from hedge_tasks.statistics.base import IntArray


@dataclass(frozen=True)
class Top:
    """Of answers with both kinds of units: how often the one of the highest score is a hallucinated one.

    Attributes:
        rate: how often; units that share the highest score count by their mean label.
        chance: the same of one picked at random.
        above: their difference, paired by answer.
    """

    rate: Number
    chance: Number
    above: Number


@dataclass(frozen=True)
class Flagged:
    """Result of flagging the units of the highest scores.

    Attributes:
        share: of the units flagged: at least what was asked for, more where units share a score.
        threshold: least score of a flagged one.
        precision: share of the flagged units that are hallucinated.
        recall: share of the hallucinated units that are flagged.
    """

    share: float
    threshold: float
    precision: Number
    recall: Number


def is_blind(detector: str) -> bool:
    """Return whether a detector sees neither image nor draws."""
    return detector in TITLES or (detector not in fitted_detectors("claim") and get(detector).blind)


def detectors_in(units: Iterable[Unit]) -> list[str]:
    """Return the detectors that any unit has a number of."""
    return list(dict.fromkeys(name for unit in units for name in unit.numbers))


def with_text(units: Sequence[Unit], seed: int = 0) -> tuple[tuple[Unit, ...], str]:
    """Return labelled units with the score `CLAIM_TEXT`, and why there is none.

    It is the probability that a unit is hallucinated by its wording alone, from units about other images.

    Args:
        seed: of the folds.
    """
    labels = np.array([unit.label for unit in units], dtype=np.int64)
    groups = group_names((unit.group, str(unit.parent)) for unit in units)
    try:
        scores = text_scores([unit.text for unit in units], labels, groups, seed)
    except DataError as error:
        return tuple(units), str(error)
    both = zip(units, scores, strict=True)
    return tuple(replace(unit, numbers={**unit.numbers, CLAIM_TEXT: score}) for unit, score in both), ""


def blind_columns(columns: Mapping[str, Labelled]) -> dict[str, Labelled]:
    """Return the blind baselines among columns, each turned the way in which it is better."""
    return {name: turned_to_best(column) for name, column in columns.items() if is_blind(name)}


def best_of(numbers: Mapping[str, Number]) -> str | None:
    """Return the name of the highest number, of equal ones the first; None where all are undefined."""
    defined = {name: number.value for name, number in numbers.items() if number.value is not None}
    return max(sorted(defined), key=defined.__getitem__, default=None)


def top_unit(column: Labelled) -> Top | None:
    """Return how often the top unit of a mixed answer is wrong; None where there is no mixed answer."""
    rates, chances, groups = [], [], []
    for chosen in places_by_stratum(column):
        labels, scores = column.labels[chosen], column.values[chosen]
        if labels.min() == labels.max():
            continue
        rates.append(float(labels[scores == scores.max()].mean()))
        chances.append(float(labels.mean()))
        groups.append(_group(column, chosen[0]))
    if not rates:
        return None
    above = np.array(rates) - np.array(chances)
    return Top(estimate_mean(rates, groups), estimate_mean(chances, groups), estimate_mean(above, groups))


def places_by_stratum(column: Labelled) -> list[IntArray]:
    """Return the positions of the units of each stratum."""
    if column.strata is None:
        return []
    # In the order of their first units, as the answers are.
    names = {name: i for i, name in enumerate(dict.fromkeys(column.strata))}
    codes = np.array([names[name] for name in column.strata], dtype=np.int64)
    ordered = np.argsort(codes, kind="stable").astype(np.int64)
    return np.split(ordered, np.flatnonzero(np.diff(codes[ordered])) + 1)


def flagged(column: Labelled, share: float) -> Flagged | None:
    """Return precision and recall where the units of the highest scores are flagged, at least this share of them."""
    wrong = column.labels == 1
    if not wrong.any():
        return None
    values = column.values
    count = max(1, math.ceil(share * len(values) - 1e-9))
    threshold = float(np.sort(values)[::-1][count - 1])
    chosen = values >= threshold
    groups = np.array([_group(column, i) for i in range(len(values))], dtype=object)
    return Flagged(
        float(chosen.mean()),
        threshold,
        estimate_rate(wrong[chosen].astype(float), groups=groups[chosen].tolist()),
        estimate_rate(chosen[wrong].astype(float), groups=groups[wrong].tolist()),
    )


def _group(column: Labelled, i: int) -> object:
    return i if column.groups is None else column.groups[i]


def units_by_answer(
    scored: ScoredClaims, *, silent: str, errors: str, text: bool = False, why_unlabelled: str = ""
) -> dict[str, UnitsOfAnswer]:
    """Return the labelled claims of every answer, by the answer's id.

    Args:
        silent, errors: see `hedge_tasks.claims.labels.label_of`.
        text: whether the classifier of their wording is fitted, too; its scores are those of `CLAIM_TEXT`.
        why_unlabelled: reason that is given where no claim has a label.
    """
    units = claim_units(scored, silent=silent, errors=errors).labelled
    unlabelled = "" if units else why_unlabelled or "no claim has a label"
    left_out = dict(scored.left_out)
    if text and units:
        units, reason = with_text(units)
        left_out |= {CLAIM_TEXT: reason} if reason else {}
    by_answer: dict[str, list[Unit]] = {answer.answers.id: [] for answer in scored.answers}
    for unit in units:
        by_answer[str(unit.parent)].append(unit)
    return {id: UnitsOfAnswer(tuple(labelled), left_out, unlabelled) for id, labelled in by_answer.items()}
