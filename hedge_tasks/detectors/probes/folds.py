"""Folds for cross-fitting by image: no document is judged by a model that has seen its label, or one of its image."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hedge_tasks.errors import DataError
from hedge_tasks.statistics.base import IntArray

FOLDS = 5


def group_names(units: Iterable[tuple[str | None, str]]) -> list[str]:
    """Return a name of each unit's group; a unit without a group is alone.

    Args:
        units: group and id of each.
    """
    return [f"\0{id}" if group is None else str(group) for group, id in units]


def cross_fitting_folds(labels: IntArray, groups: Sequence[str], seed: int) -> list[tuple[Any, Any]]:
    """Return folds (training, test) with about as many hallucinations each; a group is in one of them as a whole.

    Args:
        labels: 0 or 1, shape (n,).
        groups: of the documents, length n; see `group_names`.
        seed: of the partition.

    Raises:
        DataError: a class has too few groups for folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    units: dict[int, set[str]] = {0: set(), 1: set()}
    for group, label in zip(groups, labels.tolist(), strict=True):
        units[label].add(group)
    rarer = min(map(len, units.values()))
    if rarer < 2:
        raise DataError("cross-fitting needs both labels, each about two images at least")
    splitter = StratifiedGroupKFold(min(FOLDS, rarer), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        folds = list(splitter.split(np.zeros((len(labels), 1)), labels, groups))
    if any(len(set(labels[train])) < 2 for train, _ in folds):
        raise DataError("cross-fitting needs both labels in every fold; there are too few images with one of them")
    return folds
