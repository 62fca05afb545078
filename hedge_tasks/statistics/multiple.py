r"""Several detectors against one another: p-values that hold for all of them together, by a step-down max-T test.

Detectors on the same answers are wrong together, and a correction that knows nothing of this (Holm) gives most of its
power away. Here the largest of all deviations is compared with what the largest of as many, as correlated as these,
would be by chance (Romano & Wolf 2005, Econometrica 73(4); with normal or Student's deviations as in Hothorn, Bretz &
Westfall 2008, Biometrical Journal 50(3)); once it is rejected, the largest of the others with that of as many as are
left, and so on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from hedge_tasks.statistics.base import (
    BoolArray,
    FloatArray,
    IntArray,
    as_data,
    codes_of,
    two_sided_p,
)
from hedge_tasks.statistics.paired import compare_scores, compare_within
from hedge_tasks.statistics.placements import (
    auroc_components,
    degrees_of_freedom,
    whole_auroc,
    without_each_group,
)
from hedge_tasks.statistics.strata import pooled_within, renumbered

DRAWS = 20_000
"""Of the largest deviation; the error of a p-value of .05 is .0015."""


def max_t(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    labels: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    strata: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> list[float | None]:
    """p-values of several differences in AUROC on the same documents, adjusted for their number by step-down max-T.

    The probability of any wrong finding is at most the level, however many differences there are none.

    Args:
        pairs: of scores of all documents.
        labels: 0 or 1, shape `(n,)`.
        groups: of the documents, as for `compare_scores`.
        strata: within which documents are compared, as for `compare_within`; None: with all.
        seed: of the draws; the same one gives the same p-values.

    Returns:
        One a pair, at least the unadjusted one. A pair of which there is no test has None and counts for none; one
        without any difference has 1.

    Example:
        >>> a, b = [9, 8, 7, 6, 3, 5, 4, 3, 2, 1], [9, 1, 7, 6, 5, 5, 8, 8, 2, 1]
        >>> [p and round(p, 2) for p in max_t([(a, b), (a, a)], [1] * 5 + [0] * 5)]
        [0.11, 1.0]
    """
    if strata is None:
        found = [compare_scores(a, b, labels, groups=groups) for a, b in pairs]
    else:
        found = [compare_within(a, b, labels, strata, groups=groups) for a, b in pairs]
    raw = [one.p_value for one in found]
    tested = [i for i, one in enumerate(found) if one.p_value is not None and one.stderr]
    if len(tested) < 2:
        return raw
    y = as_data(pairs[0][0], labels)[1] == 1
    units = None if groups is None else codes_of(groups, len(y), "groups")
    kinds = None if strata is None else codes_of(strata, len(y), "strata")
    kept = np.ones(len(y), dtype=bool) if kinds is None else _compared(kinds, y)
    y = y[kept]
    units = None if units is None else renumbered(units[kept])
    kinds = None if kinds is None else renumbered(kinds[kept])
    values = [[np.asarray(side, dtype=np.float64)[kept] for side in pairs[i]] for i in tested]
    columns = np.stack([_deviations(a, b, y, units, kinds) for a, b in values], axis=1)
    weights = None if kinds is None else pooled_within(values[0][0], y, kinds)[2]
    degrees = degrees_of_freedom(y, units, weights)
    observed = np.array([abs(found[i].difference or 0.0) / (found[i].stderr or 1.0) for i in tested])
    adjusted = dict(zip(tested, step_down(observed, columns, degrees, seed), strict=True))
    return [p if i not in adjusted else max(p or 0.0, adjusted[i]) for i, p in enumerate(raw)]


def step_down(observed: FloatArray, columns: FloatArray, degrees: float | None, seed: int = 0) -> list[float]:
    """Adjusted p-values of deviations.

    Args:
        observed: absolute deviations from 0, in standard errors, shape `(k,)`.
        columns: what each unit adds to each deviation, of which only the correlations count, shape `(units, k)`.
        degrees: of freedom of all deviations together; None: normal.
    """
    largest = _draws(columns, degrees, seed)
    order = np.argsort(-observed, kind="stable")
    adjusted, running = np.empty(len(observed)), 0.0
    for place, i in enumerate(order):
        # With the observed one among the draws, no p-value is 0. One alone needs no draws.
        left = order[place:]
        if len(left) == 1:
            p = two_sided_p(float(observed[i]), degrees)
        else:
            p = float((1 + (largest[:, left].max(axis=1) >= observed[i]).sum()) / (DRAWS + 1))
        adjusted[i] = running = max(running, p)
    return [float(p) for p in adjusted]


def _draws(columns: FloatArray, degrees: float | None, seed: int) -> FloatArray:
    """Absolute deviations with the correlations of the columns, shape `(DRAWS, k)`."""
    scaled = columns / np.sqrt((columns**2).sum(axis=0))
    # The symmetric root of the correlations, which may be singular: some detectors differ alike.
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    rng = np.random.default_rng(seed)
    draws = np.abs(rng.normal(size=(DRAWS, len(values))) @ root)
    if degrees is not None:
        draws /= np.sqrt(rng.chisquare(degrees, size=(DRAWS, 1)) / degrees)
    return draws


def _deviations(
    a: FloatArray, b: FloatArray, positive: BoolArray, groups: IntArray | None, strata: IntArray | None
) -> FloatArray:
    """What each group (or document) adds to a difference of AUROCs."""
    if groups is not None:
        parts = [without_each_group(x, positive, groups, strata) - whole_auroc(x, positive, strata) for x in (a, b)]
    elif strata is not None:
        parts = [pooled_within(x, positive, strata)[1] for x in (a, b)]
    else:
        parts = [auroc_components(x, positive)[1] for x in (a, b)]
    return parts[0] - parts[1]


def _compared(strata: IntArray, positive: BoolArray) -> BoolArray:
    """Which documents are in strata with both classes."""
    sizes = np.stack([np.bincount(strata[c], minlength=len(strata)) for c in (positive, ~positive)])
    return np.asarray((sizes[:, strata] > 0).all(axis=0))
