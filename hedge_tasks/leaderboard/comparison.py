"""All entries of a task compared in pairs, fast enough for every pair at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.statistics.means import clustered_spread
from hedge_tasks.statistics.placements import auroc_components

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """AUROC of one entry less that of another, on the documents that both have labelled.

    Attributes:
        a, b: places of the entries.
        difference: first less second; None where one of them is undefined there.
        stderr: of the difference.
        n: documents.
    """

    a: int
    b: int
    difference: float | None
    stderr: float | None
    n: int


@dataclass(frozen=True)
class _Column:
    ids: npt.NDArray[np.int64]
    values: FloatArray
    labels: npt.NDArray[np.bool_]


def all_differences(entries: Sequence[Sequence[Scores]], score: str) -> list[Difference]:
    r"""Every two entries on their common documents.

    The entries answer the same questions, each with labels of its own. The standard error is that of the paired
    jackknife (infinitesimal): with :math:`c_i` what document :math:`i` adds to the deviation of an AUROC (its placement
    value less the AUROC, over the size of its class; 0 in the other entry's terms it is taken with its own label),

    .. math:: \mathrm{SE}^2 = \frac{K}{K - 1} \sum_k \Bigl(\sum_{i \in k} (c_i^a - c_i^b)\Bigr)^2

    over the :math:`K` groups of documents that share an image. It agrees with resampling documents in pairs
    (`hedge_tasks.statistics.compare_runs`) for all but very small data, and takes no thousand resamples a pair.

    Args:
        entries: scores of the documents of each entry.
        score: which score.
    """
    number: dict[str, int] = {}
    groups: dict[int, Hashable] = {}
    columns = [_column(scores, score, number, groups) for scores in entries]
    codes = _group_codes(groups, len(number))
    whole = {i: _components(column.values, column.labels) for i, column in enumerate(columns)}
    return [_difference(a, b, columns, codes, whole) for a, b in combinations(range(len(entries)), 2)]


def _difference(
    a: int,
    b: int,
    columns: Sequence[_Column],
    codes: npt.NDArray[np.int64],
    whole: dict[int, tuple[float, FloatArray] | None],
) -> Difference:
    one, other = columns[a], columns[b]
    if np.array_equal(one.ids, other.ids):
        ids, found = one.ids, [whole[a], whole[b]]
    else:
        ids, of_one, of_other = np.intersect1d(one.ids, other.ids, assume_unique=True, return_indices=True)
        parts = ((one, of_one), (other, of_other))
        found = [_components(column.values[chosen], column.labels[chosen]) for column, chosen in parts]
    first, second = found
    if first is None or second is None:
        return Difference(a, b, None, None, len(ids))
    stderr = clustered_spread(first[1] - second[1], codes[ids])
    return Difference(a, b, first[0] - second[0], stderr, len(ids))


def _components(values: FloatArray, labels: npt.NDArray[np.bool_]) -> tuple[float, FloatArray] | None:
    """AUROC and what each document adds to it; None where there is only one class."""
    if not labels.any() or labels.all():
        return None
    return auroc_components(values, labels)


def _column(scores: Sequence[Scores], score: str, number: dict[str, int], groups: dict[int, Hashable]) -> _Column:
    kept = [s for s in scores if s.reported_label is not None and s[score] is not None]
    ids = np.array([number.setdefault(s.id, len(number)) for s in kept], dtype=np.int64)
    for i, s in zip(ids.tolist(), kept, strict=True):
        if s.group is not None:
            groups.setdefault(i, ("group", s.group))
    order = np.argsort(ids)
    values = np.array([s[score] for s in kept], dtype=np.float64)
    return _Column(ids[order], values[order], np.array([s.reported_label == 1 for s in kept], dtype=bool)[order])


def _group_codes(groups: dict[int, Hashable], n: int) -> npt.NDArray[np.int64]:
    """Group of every document; one without is a group of its own."""
    known: dict[Hashable, int] = {}
    names = (groups.get(i, ("document", i)) for i in range(n))
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)
