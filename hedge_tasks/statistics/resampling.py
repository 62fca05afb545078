"""Bootstrap resamples that depend on the seed and on what the documents are, not on the order they come in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hedge_tasks.statistics.base import FloatArray, IntArray, Interval

# Resamples are drawn in blocks of at most this many counts, which bounds memory at some ten megabytes.
BLOCK = 1_000_000


def block_sizes(n_resamples: int, width: int) -> list[int]:
    """Sizes of the blocks that resamples of `width` numbers each are drawn in."""
    size = max(1, min(n_resamples, BLOCK // width))
    whole, rest = divmod(n_resamples, size)
    return [size] * whole + [rest] * (rest > 0)


def canonical_units(groups: IntArray | None, *columns: IntArray) -> tuple[IntArray, int]:
    """Number the units of resampling by what is in them, so that neither order nor names of groups play a role.

    Args:
        groups: Group of each document, shape ``(n,)``; None: every document is a unit.
        columns: What the statistic sees of the documents, as whole numbers, each of shape ``(n,)``.

    Returns:
        Unit of each document, shape ``(n,)``, and the number of units. Units with the same content get numbers that
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


def unit_counts(n_units: int, n_resamples: int, width: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """How often each unit is drawn, in blocks of shape ``(resamples, n_units)``."""
    share = np.full(n_units, 1 / n_units)
    for size in block_sizes(n_resamples, max(n_units, width)):
        yield rng.multinomial(n_units, share, size=size)


def percentile_interval(values: FloatArray, confidence: float) -> Interval:
    """Quantiles of the resampled statistic; resamples where it is undefined (nan) are left out."""
    low, high = np.nanquantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
