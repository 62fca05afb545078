"""AUROC that compares only questions of the same kind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import (
    BoolArray,
    FloatArray,
    IntArray,
    UndefinedError,
    as_data,
    check_confidence,
    codes_of,
    n_distinct,
)
from hedge_tasks.statistics.placements import (
    component_variance,
    degrees_of_freedom,
    disjoint_pairs,
    placements_within,
)
from hedge_tasks.statistics.roc import auroc_interval, estimate_auroc


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
    each: bool = True,
) -> StratifiedAuroc:
    r"""AUROC that compares documents only within the same stratum, e.g. within the same kind of question.

    .. math::
        \mathrm{AUROC}_\mathrm{within} = \frac{\sum_s P_s N_s \, \mathrm{AUROC}_s}{\sum_s P_s N_s}

    A score that merely recognises the harder kind of question has a high plain AUROC and one of 0.5 here.

    The standard error is DeLong's (with `groups` Obuchowski's) for this ratio: a hallucinated answer :math:`i` of
    stratum :math:`s` contributes :math:`N_s (V_i - \mathrm{AUROC}_\mathrm{within}) / \sum_s P_s N_s`, with
    :math:`V_i` its placement value in the stratum, a supported one likewise. With one stratum it is the plain one. It
    counts the strata's sizes and AUROCs as chance, too, and works for a stratum with a single hallucinated answer,
    of which a variance within the stratum would know nothing.

    Where every stratum lies in one group (claims within their answer, answers within their image), all pairs of a
    stratum are of one group, and what its hallucinated and its supported documents add is the same deviation twice:
    each then counts by half, so that the variance is that of the ratio of sums over groups.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        strata: Stratum of each document, length `n`.
        groups: Group (e.g. image id) of each document, length `n`; a group may lie in several strata.
        confidence: Level of the intervals, in (0, 1).
        each: Whether the AUROC of every stratum is wanted, too; strata may be thousands.

    Returns:
        The pooled value, with the number of pairs it rests on, and the AUROC of every stratum. A stratum with one class
        only has an undefined AUROC and adds nothing to the pooled one. A `nan` score makes the pooled value
        undefined: leaving its stratum out would silently change what is compared.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or the level is not in (0, 1).

    Example:
        >>> result = stratified_auroc([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1], ["open", "open", "closed", "closed"])
        >>> result.value, result.n_pairs
        (1.0, 2)
    """
    check_confidence(confidence)
    x, y = as_data(scores, labels)
    codes = codes_of(strata, len(x), "strata")
    group_codes = None if groups is None else codes_of(groups, len(x), "groups")

    def part(i: int) -> Number:
        chosen = codes == i
        members = None if group_codes is None else group_codes[chosen].tolist()
        return estimate_auroc(x[chosen], y[chosen], groups=members, method="delong", confidence=confidence)

    parts = {name: part(i) for i, name in enumerate(dict.fromkeys(strata))} if each else {}
    counts: dict[str, Any] = {"n": len(x), "n_groups": n_distinct(group_codes), "n_positive": int((y == 1).sum())}
    if np.isnan(x).any() or np.isnan(y).any():
        return StratifiedAuroc(None, strata=parts, reason="a score or label is missing (NaN)", **counts)
    sizes = np.stack([np.bincount(codes[y == label], minlength=len(x) and int(codes.max()) + 1) for label in (1, 0)])
    if not (total := int(sizes.prod(axis=0).sum())):
        reason = "no documents" if not len(x) else "no stratum has both hallucinated and supported documents"
        return StratifiedAuroc(None, strata=parts, reason=reason, **counts)
    value, components = pooled_within(x, y == 1, codes, group_codes)
    used = ~np.isnan(components)
    # Pairs are within strata: one with many hallucinated and a single supported answer has one independent pair.
    n_pairs = int(sizes.min(axis=0).sum())
    chosen = _subset(group_codes, used)
    pooled = _with_stderr(value, components[used], (y == 1)[used], chosen, parts, (total, n_pairs), confidence)
    return replace(pooled, **counts)


def pooled_within(
    x: FloatArray, positive: BoolArray, codes: IntArray, groups: IntArray | None
) -> tuple[float, FloatArray]:
    """Pooled AUROC, and the component of each document for `component_variance`; nan in strata with one class."""
    values, pairs = placements_within(x, positive, codes)
    total = pairs[positive].sum()
    value = float((pairs[positive] * np.nan_to_num(values[positive])).sum() / total)
    return value, pairs * (values - value) / total * (0.5 if _nested(codes, groups) else 1.0)


def _nested(strata: IntArray, groups: IntArray | None) -> bool:
    """Whether there are several strata, and each of them lies in one group."""
    if groups is None or len(strata) < 2 or not np.ptp(strata):
        return False
    cells = np.unique(np.stack([strata, groups]), axis=1)
    return bool(cells.shape[1] == len(np.unique(strata)))


def _subset(groups: IntArray | None, used: BoolArray) -> IntArray | None:
    return None if groups is None else np.unique(groups[used], return_inverse=True)[1].astype(np.int64)


def _with_stderr(
    value: float,
    components: FloatArray,
    positive: BoolArray,
    groups: IntArray | None,
    parts: Mapping[Hashable, Number],
    pairs: tuple[int, int],
    confidence: float,
) -> StratifiedAuroc:
    total, n_pairs = pairs
    try:
        stderr = float(np.sqrt(component_variance(components, positive, groups)))
    except UndefinedError as error:
        return StratifiedAuroc(value, strata=parts, n_pairs=total, reason=str(error))
    method = f"{'clustered DeLong (Obuchowski 1997)' if groups is not None else 'DeLong'} within strata, logit interval"
    n_pairs = min(n_pairs, disjoint_pairs(positive, groups))
    interval = auroc_interval(value, stderr, confidence, degrees_of_freedom(positive, groups), n_pairs)
    return StratifiedAuroc(value, strata=parts, n_pairs=total, stderr=stderr, interval=interval, method=method)
