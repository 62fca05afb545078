"""Bootstrap resamples that depend on the seed and on what the documents are, not on the order they come in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hedge_tasks.statistics.base import FloatArray, IntArray, Interval, codes_of

# Resamples are drawn in blocks of at most this many counts, which bounds memory at some ten megabytes.
BLOCK = 1_000_000


def block_sizes(n_resamples: int, width: int) -> list[int]:
    """Sizes of the blocks that resamples of `width` numbers each are drawn in."""
    size = max(1, min(n_resamples, BLOCK // width))
    whole, remainder = divmod(n_resamples, size)
    return [size] * whole + [remainder] * (remainder > 0)


def canonical_units(groups: IntArray | None, *columns: IntArray) -> tuple[IntArray, int]:
    """Number the units of resampling by what is in them, so that neither order nor names of groups play a role.

    Args:
        groups: Group of each document, shape `(n,)`; None: every document is a unit.
        columns: What the statistic sees of the documents, as whole numbers, each of shape `(n,)`.

    Returns:
        Unit of each document, shape `(n,)`, and the number of units. Units with the same content get numbers that
        follow each other; which gets which does not matter.
    """
    n = len(columns[0])
    rank = np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].reshape(-1)
    if groups is None:
        units = np.empty(n, dtype=np.int64)
        units[np.argsort(rank, kind="stable")] = np.arange(n)
        return units, n
    content: dict[int, list[int]] = {}
    for i in np.argsort(rank, kind="stable"):
        content.setdefault(int(groups[i]), []).append(int(rank[i]))
    number = {group: i for i, group in enumerate(sorted(content, key=content.__getitem__))}
    return np.array([number[int(group)] for group in groups], dtype=np.int64), len(number)


def unit_counts(n_units: int, n_resamples: int, width: int, seed: int) -> Iterator[IntArray]:
    """How often each unit is drawn, in blocks of shape `(resamples, n_units)` that nobody may write into.

    The same whatever is resampled: a report has hundreds of intervals of the same questions.

    Args:
        width: numbers that a statistic has for a resample, if it has more than there are units.
    """
    sizes = block_sizes(n_resamples, max(n_units, width))
    if len(sizes) == 1 and n_units * n_resamples <= BLOCK:
        yield _all_counts(n_units, n_resamples, seed)
        return
    rng, share = np.random.default_rng(seed), np.full(n_units, 1 / n_units)
    for size in sizes:
        yield rng.multinomial(n_units, share, size=size)


@lru_cache(maxsize=4)
def _all_counts(n_units: int, n_resamples: int, seed: int) -> IntArray:
    counts = np.random.default_rng(seed).multinomial(n_units, np.full(n_units, 1 / n_units), size=n_resamples)
    counts.flags.writeable = False
    return counts


def group_totals(groups: Sequence[Hashable], contributions: npt.ArrayLike) -> FloatArray:
    """Contributions of groups to a statistic: the sum over their documents, in an order that only these sums decide.

    Args:
        groups: Group of each document, length `n`.
        contributions: What each document adds, such as four counts, shape `(n, ...)`.

    Returns:
        Shape `(groups, ...)`, sorted by the last number, then by the one before it and so on, so that the same
        documents in another order, as from several processes, give the same resamples.
    """
    parts = np.asarray(contributions, dtype=np.float64)
    codes = codes_of(groups, len(parts), "groups")
    totals = np.zeros((int(codes.max(initial=-1)) + 1, *parts.shape[1:]))
    np.add.at(totals, codes, parts)
    return totals[np.lexsort(totals.reshape(len(totals), -1).T)] if len(totals) else totals


def group_bootstrap(
    totals: FloatArray, statistic: Callable[[FloatArray], FloatArray], *, n_resamples: int = 1000, seed: int = 0
) -> FloatArray:
    """A statistic of sums over documents, in resamples of whole groups of them.

    Args:
        totals: What each group adds, shape `(groups, ...)`, as `group_totals` gives it.
        statistic: Sums of each resample, shape `(resamples, ...)`, to its values, shape `(resamples,)`; nan where
            it is undefined.
        n_resamples: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        Values, shape `(n_resamples,)`.
    """
    width = max(1, totals.size // len(totals))
    draws = unit_counts(len(totals), n_resamples, width, seed)
    return np.concatenate([statistic(np.tensordot(times, totals, axes=1)) for times in draws])


def percentile_interval(values: FloatArray, confidence: float) -> Interval:
    """Quantiles of the resampled statistic; resamples where it is undefined (nan) are left out."""
    low, high = np.nanquantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
