"""Detectors fused into one: supervised fusion in sample and cross-fitted, and the mean of ranks without labels.

A model that is fitted and read on the same documents looks perfect (a gradient-boosted one reaches 1.000 on noise), so
both numbers stand side by side: in sample, and cross-fitted, where no document, and no other one about its image, is
judged by a model that has seen its label. The mean of the detectors' ranks sees no label at all: it is the one to beat.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores, auroc_of_pairs
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import DataError
from hedge_tasks.measures.folds import cross_fitting_folds, group_names
from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import FloatArray, IntArray, midranks

RANK_MEAN = "mean of the ranks"


@dataclass(frozen=True)
class Fused:
    """One way of fusing.

    Attributes:
        name: of the way.
        in_sample: ROC-AUC on the documents that it was fitted to; None where nothing is fitted.
        estimate: ROC-AUC that it is worth: cross-fitted by image, or without labels.
    """

    name: str
    in_sample: float | None
    estimate: Number


@dataclass(frozen=True)
class Fusion:
    """All ways on one run.

    Attributes:
        detectors: that were fused: those with a number for every labelled document.
        draws: what they cost together, answers a question.
        best: name and ROC-AUC of the best of them alone, which was chosen on the same documents.
        ways: the ways, the label-free one first.
    """

    detectors: tuple[str, ...]
    draws: int
    best: tuple[str, Number]
    ways: tuple[Fused, ...]


def fuse(scores: Sequence[Scores], *, seed: int = 0) -> Fusion:
    """Fuse the detectors of a run in several ways.

    Args:
        scores: of all its documents. Documents that no AUROC counts (unlabelled, held out) are left out; a detector
            without a number for one of the others is not fused.
        seed: of folds and models.

    Raises:
        DataError: less than two detectors can be fused, or a class has too few documents or images for folds.
    """
    counted = [(s, label) for s in scores if (label := s.reported_label) is not None]
    names = [n for n in (counted[0][0] if counted else ()) if all(s.get(n) is not None for s, _ in counted)]
    table = np.array([[_finite(s[name]) for name in names] for s, _ in counted], dtype=np.float64)
    varying = [i for i in range(len(names)) if np.ptp(table[:, i]) > 0] if len(table) else []
    if len(varying) < 2:
        raise DataError("fusion needs two detectors with a number for every labelled document")
    names, table = [names[i] for i in varying], table[:, varying]
    labels = np.array([label for _, label in counted])
    folds = cross_fitting_folds(labels, group_names((s.group, s.id) for s, _ in counted), seed)

    def estimate(values: FloatArray) -> Number:
        return auroc_of_pairs([(float(v), label, s.group) for v, (s, label) in zip(values, counted, strict=True)])

    alone = {name: estimate(table[:, i]) for i, name in enumerate(names)}
    best = max(alone, key=lambda name: alone[name].value or 0.0)
    ranks = np.stack([midranks(column) for column in table.T], axis=1).mean(axis=1)
    ways = [Fused(RANK_MEAN, None, estimate(ranks))]
    for name, build in _models(seed).items():
        seen = _fitted(build, table, labels, table)
        unseen = np.empty(len(labels))
        for train, test in folds:
            unseen[test] = _fitted(build, table[train], labels[train], table[test])
        ways.append(Fused(name, estimate(seen).value, estimate(unseen)))
    n, m = (min(getattr(s, key) for s, _ in counted) for key in ("n_clean", "n_noisy"))
    prices = [get(name).draws(n, 0) for name in names], [get(name).draws(0, m) for name in names]
    return Fusion(tuple(names), max(prices[0]) + max(prices[1]), (best, alone[best]), tuple(ways))


def _models(seed: int) -> dict[str, Callable[[], Any]]:
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        "gradient boosting": lambda: GradientBoostingClassifier(random_state=seed),
    }


def _fitted(build: Callable[[], Any], table: FloatArray, labels: IntArray, unseen: FloatArray) -> FloatArray:
    model = build()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not converging: twenty detectors say nearly the same
        model.fit(table, labels)
    values: FloatArray = model.predict_proba(unseen)[:, 1]
    return values


def _finite(value: float | None) -> float:
    """Return an infinite score as a large one: models refuse infinity, and its rank stays the highest."""
    assert value is not None
    return float(np.nan_to_num(value, posinf=_LARGE, neginf=-_LARGE)) if math.isinf(value) else value


_LARGE = 1e6
