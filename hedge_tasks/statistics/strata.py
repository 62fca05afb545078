"""AUROC that compares only questions of the same kind."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import ONE_DIGIT, Number
from hedge_tasks.statistics.base import (
    BoolArray,
    FloatArray,
    IntArray,
    UndefinedError,
    UndefinedStatistic,
    as_data,
    check_confidence,
    check_enough,
    codes_of,
    interval_of_logit,
    logit_interval,
    n_distinct,
    wilson,
)
from hedge_tasks.statistics.placements import (
    component_variance,
    degrees_of_freedom,
    placements_within,
    units_of_each_class,
)
from hedge_tasks.statistics.roc import JACKKNIFE, estimate_auroc, jackknifed


@dataclass(frozen=True)
class StratifiedAuroc(Number):
    """Pooled AUROC within strata; undefined where no stratum has both classes.

    Attributes:
        strata: AUROC of each stratum with DeLong's standard error and interval, in order of first appearance.
        n_pairs: Number of (hallucinated, supported) pairs compared.
    """

    strata: Mapping[Hashable, Number] = field(default_factory=dict)
    n_pairs: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "n_pairs": self.n_pairs}


def stratified_auroc(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    strata: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    inflation: float = 1.0,
    each: bool = True,
) -> StratifiedAuroc:
    r"""AUROC that compares documents only within the same stratum, e.g. within the same kind of question.

    .. math::
        \mathrm{AUROC}_\mathrm{within} = \frac{\sum_s P_s N_s \, \mathrm{AUROC}_s}{\sum_s P_s N_s}

    A score that merely recognises the harder kind of question has a high plain AUROC and one of 0.5 here.

    With `groups` standard error and interval are those of the delete-one-group jackknife, as in `estimate_auroc`.
    Without, the standard error is DeLong's for this ratio: a hallucinated answer :math:`i` of
    stratum :math:`s` contributes :math:`N_s (V_i - \mathrm{AUROC}_\mathrm{within}) / \sum_s P_s N_s`, with
    :math:`V_i` its placement value in the stratum, a supported one likewise. With one stratum it is the plain one. It
    counts the strata's sizes and AUROCs as chance, too, and works for a stratum with a single hallucinated answer,
    of which a variance within the stratum would know nothing.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        strata: Stratum of each document, length `n`.
        groups: Group (e.g. image id) of each document, length `n`; a group may lie in several strata.
        confidence: Level of the intervals, in (0, 1).
        inflation: Variance of the pooled AUROC as a multiple of what these scores show; see `estimate_auroc`.
        each: Whether the AUROC of every stratum is wanted, too; strata may be thousands.

    Returns:
        The pooled value, with the number of pairs it rests on, and the AUROC of every stratum. A stratum with one class
        only has an undefined AUROC and adds nothing to the pooled one. A `nan` score makes the pooled value
        undefined: leaving its stratum out would silently change what is compared.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or the level is not in (0, 1).

    Example:
        >>> scores, kinds = [0.1, 0.1, 0.2, 0.3, 0.2, 0.7, 0.7, 0.8, 0.8, 0.8], ["open"] * 5 + ["closed"] * 5
        >>> result = stratified_auroc(scores, [0, 0, 1, 1, 1, 0, 0, 1, 0, 1], kinds)
        >>> round(result.value, 3), result.n_pairs
        (0.917, 12)
    """
    check_confidence(confidence)
    x, y = as_data(scores, labels)
    codes = codes_of(strata, len(x), "strata")
    group_codes = None if groups is None else codes_of(groups, len(x), "groups")

    def part(i: int) -> Number:
        chosen = codes == i
        members = None if group_codes is None else group_codes[chosen].tolist()
        return estimate_auroc(x[chosen], y[chosen], groups=members, confidence=confidence)

    parts = {name: part(i) for i, name in enumerate(dict.fromkeys(strata))} if each else {}
    counts: dict[str, Any] = {"n": len(x), "n_groups": n_distinct(group_codes), "n_positive": int((y == 1).sum())}
    if np.isnan(x).any() or np.isnan(y).any():
        return StratifiedAuroc(None, strata=parts, reason="a score or label is missing (NaN)", **counts)
    sizes = np.stack([np.bincount(codes[y == label], minlength=len(x) and int(codes.max()) + 1) for label in (1, 0)])
    if not (total := int(sizes.prod(axis=0).sum())):
        reason = "no documents" if not len(x) else "no stratum has both hallucinated and supported documents"
        return StratifiedAuroc(None, strata=parts, reason=reason, **counts)
    both = (sizes[:, codes] > 0).all(axis=0)
    try:
        check_enough((y == 1)[both])
    except UndefinedStatistic as error:
        return StratifiedAuroc(None, strata=parts, n_pairs=total, reason=str(error), **counts)
    # Pairs are within strata: one with many hallucinated and a single supported answer has one independent pair.
    n_pairs = int(sizes.min(axis=0).sum())
    chosen = None if group_codes is None else renumbered(group_codes[both])
    pooled = _with_stderr(x[both], (y == 1)[both], renumbered(codes[both]), chosen, n_pairs, confidence, inflation)
    return replace(pooled, strata=parts, n_pairs=total, **counts)


def pooled_within(x: FloatArray, positive: BoolArray, codes: IntArray) -> tuple[float, FloatArray, IntArray]:
    """Pooled AUROC, the component of each document for `component_variance`, and with how many it is compared.

    Args:
        codes: stratum of each document; every one has both classes.
    """
    values, pairs = placements_within(x, positive, codes)
    total = pairs[positive].sum()
    value = float((pairs[positive] * values[positive]).sum() / total)
    return value, pairs * (values - value) / total, pairs


def renumbered(codes: IntArray) -> IntArray:
    """The codes without gaps."""
    return np.unique(codes, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _with_stderr(
    x: FloatArray,
    positive: BoolArray,
    codes: IntArray,
    groups: IntArray | None,
    n_pairs: int,
    confidence: float,
    inflation: float,
) -> StratifiedAuroc:
    value, components, pairs = pooled_within(x, positive, codes)
    of_logit = None
    try:
        if groups is None:
            stderr = float(np.sqrt(component_variance(components, positive)))
        else:
            stderr, of_logit = jackknifed(x, positive, groups, codes)
    except UndefinedError as error:
        return StratifiedAuroc(value, reason=str(error))
    method = f"{'DeLong' if groups is None else JACKKNIFE} within strata, logit interval"
    if inflation > 1:
        method += f", variance times {ONE_DIGIT(inflation)} for the fitting"
    stderr *= math.sqrt(inflation)
    degrees = degrees_of_freedom(positive, groups, pairs)
    if of_logit and 0 < value < 1:
        interval = interval_of_logit(value, math.sqrt(inflation) * of_logit, confidence, degrees)
    elif stderr > 0 and 0 < value < 1:
        interval = logit_interval(value, stderr, confidence, degrees)
    else:  # nothing varies: Wilson's for as many pairs as surely are independent
        interval = wilson(value, min(n_pairs, *units_of_each_class(positive, groups)), confidence)
    return StratifiedAuroc(value, stderr=stderr, interval=interval, method=method)
