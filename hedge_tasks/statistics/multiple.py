r"""Several comparisons at once: p-values that hold for all of them together, by a step-down max-T test.

Detectors on the same answers are wrong together, and a correction that knows nothing of this (Holm) gives most of its
power away. Here the largest of all deviations is compared with what the largest of as many, as correlated as these,
would be by chance (Romano & Wolf 2005, Econometrica 73(4); with normal deviations as in Hothorn, Bretz & Westfall 2008,
Biometrical Journal 50(3)); once it is rejected, the largest of the others with that of as many as are left, and so on.

Each test keeps its own distribution: its p-value is turned into the normal deviation that is as rare. How comparisons
are correlated follows from what each document (or group) adds to their differences. Comparisons of other documents, or
of which this is not known, count as independent, which is never too bold: no correlation makes the largest of several
normal deviations larger (Šidák 1967, JASA 62(318)). So it never says more than Holm's correction.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.statistics.paired import Comparison

DRAWS, DRAWS_OF_MANY, MANY = 20_000, 4_000, 1_000
"""Of the largest deviation, and as many of more than `MANY`; the error of a p-value of .05 is .0015, or .0034."""

_AT_ONCE = 500


def max_t(comparisons: Sequence[Comparison | None]) -> list[float | None]:
    """p-values of several comparisons, adjusted for their number by step-down max-T.

    The probability of any wrong finding is at most the level, however many differences there are none.

    Args:
        comparisons: with the ids of their documents (`Comparison.of`); what has none counts as independent.

    Returns:
        One a comparison, at least the unadjusted one; every call gives the same. One without a test has None and counts
        for none; one without any difference has 1.

    Example:
        >>> from hedge_tasks.statistics import compare_scores
        >>> a, b = [9, 8, 7, 6, 3, 5, 4, 3, 2, 1], [9, 1, 7, 6, 5, 5, 8, 8, 2, 1]
        >>> found = [compare_scores(x, y, [1] * 5 + [0] * 5).of(range(10)) for x, y in [(a, b), (a, a)]]
        >>> [round(p, 2) for p in max_t(found)]
        [0.11, 1.0]
    """
    adjusted = [None if comparison is None else comparison.p_value for comparison in comparisons]
    tested = [(i, c) for i, c in enumerate(comparisons) if c is not None and c.p_value is not None and c.stderr]
    if len(tested) < 2:
        return adjusted
    factors = root_of(_correlations([comparison for _, comparison in tested]))
    p_values = step_down(np.array([comparison.p_value for _, comparison in tested], dtype=np.float64), factors)
    for (i, _), p in zip(tested, p_values.tolist(), strict=True):
        adjusted[i] = p
    return adjusted


def step_down(p_values: FloatArray, factors: FloatArray, seed: int = 0) -> FloatArray:
    """Adjusted p-values, shape `(k,)`.

    Args:
        p_values: two-sided, shape `(k,)`.
        factors: of which independent normal deviations each of the k is a sum, shape `(r, k)`, in any scale.
    """
    from scipy.special import ndtri

    observed = -ndtri(p_values / 2)
    order = np.argsort(-observed, kind="stable")
    sorted_ones, scaled = observed[order], (factors / np.sqrt((factors**2).sum(axis=0)))[:, order]
    rng = np.random.default_rng(seed)
    draws = DRAWS if len(order) <= MANY else DRAWS_OF_MANY
    exceeding = np.zeros(len(order))
    for _ in range(draws // _AT_ONCE):
        maxima = np.abs(rng.normal(size=(_AT_ONCE, len(scaled))) @ scaled)
        # From the smallest deviation on, the largest of all that are left at each step.
        largest = np.maximum.accumulate(maxima[:, ::-1], axis=1)[:, ::-1]
        exceeding += (largest >= sorted_ones).sum(axis=0)
    # With the observed one among the draws, no p-value is 0. The error of the draws leaves the bounds of one test alone
    # and of Holm's correction, which is never below the truth; so very small ones need no more draws.
    alone = p_values[order]
    steps = np.clip((1 + exceeding) / (draws + 1), alone, np.arange(len(order), 0, -1) * alone)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def root_of(products: FloatArray) -> FloatArray:
    """Return columns with these products of every two, shape `(k, k)`; they may be singular, as some differ alike."""
    values, vectors = np.linalg.eigh(products)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, dtype=np.float64)


def _correlations(comparisons: Sequence[Comparison]) -> FloatArray:
    """Of the differences, shape `(k, k)`; 0 with one whose documents are not known."""
    usable = [i for i, c in enumerate(comparisons) if c.deviations is not None and c.ids is not None]
    places: dict[Hashable, int] = {}
    at = {i: [places.setdefault(id, len(places)) for id in comparisons[i].ids or ()] for i in usable}
    columns = np.zeros((len(places), len(comparisons)))
    for i in usable:
        columns[at[i], i] = comparisons[i].deviations
    norms = np.sqrt((columns**2).sum(axis=0))
    columns[:, norms > 0] /= norms[norms > 0]
    products = columns.T @ columns
    np.fill_diagonal(products, 1.0)
    return np.asarray(products, dtype=np.float64)
