"""Differences of entries against experts, where both of two have an audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hedge_tasks.judging.designed import ExpertLabels
from hedge_tasks.leaderboard.columns import EntryColumns
from hedge_tasks.leaderboard.comparison import Pairs
from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray
from hedge_tasks.statistics.verified import Verified, audited_gap


class _Side(NamedTuple):
    """An entry as far as one number goes; `kept` says which documents count for it."""

    columns: EntryColumns
    experts: ExpertLabels
    scores: FloatArray
    kept: BoolArray


def with_audits(pairs: Pairs, entries: Sequence[EntryColumns], key: tuple[str, str, str]) -> Pairs:
    """Replace the differences of every two entries that have an audit by those against experts.

    Audits are drawn apart, so that their errors add up; what the documents add is paired by group.

    Args:
        pairs: of the entries, by their judges.
        entries: in the order of the pairs.
        key: kind, clustering and name of the number; only AUROCs are audited.
    """
    sides = {i: side for i, columns in enumerate(entries) if (side := _side(columns, *key)) is not None}
    if len(sides) < 2:
        return pairs
    difference, stderr, degrees = pairs.difference.copy(), pairs.stderr.copy(), pairs.degrees.copy()
    for i, j in combinations(sides, 2):
        shared = np.intersect1d(sides[i].columns.ids[sides[i].kept], sides[j].columns.ids[sides[j].kept])
        if not len(shared):
            continue
        groups = sides[i].columns.groups[np.searchsorted(sides[i].columns.ids, shared)]
        gap = audited_gap(*_labels(sides[i], shared, groups), *_labels(sides[j], shared, groups))
        if isinstance(gap, str):
            continue
        difference[i, j], difference[j, i] = gap.a - gap.b, gap.b - gap.a
        stderr[i, j] = stderr[j, i] = math.sqrt(gap.variance) if gap.variance > 0 else np.nan
        degrees[i, j] = degrees[j, i] = max(1.0, math.floor(gap.degrees))
    return replace(pairs, difference=difference, stderr=stderr, degrees=degrees)


def _side(columns: EntryColumns, kind: str, clustering: str, name: str) -> _Side | None:
    """An entry's documents that count; None where it has no audit, or the number is none that experts correct."""
    if columns.experts is None or kind != "auroc":
        return None
    scores = columns.scores.get((clustering, name))
    if scores is None:
        return None
    return _Side(columns, columns.experts, scores, ~np.isnan(scores) & ~columns.held_out[clustering])


def _labels(side: _Side, ids: IntArray, groups: IntArray) -> tuple[FloatArray, Verified]:
    """Return the scores of some documents, and the labels of experts and of the judge."""
    at = np.searchsorted(side.columns.ids, ids)
    judged = [label if label in (0, 1) else None for label in side.columns.labels[at].tolist()]
    labels = side.experts.verified(at.tolist(), judged, groups.tolist())
    return side.scores[at], labels
