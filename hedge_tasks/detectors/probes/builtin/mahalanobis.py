"""Mahalanobis distance of a state from those of supported answers (Lee et al. 2018, 1807.03888), and relative to the
distance from all (Ren et al. 2023, 2209.15558, eq. 1-3).

Distance to the supported documents less distance to all documents, each with its own covariance. With fewer documents
than dimensions a covariance cannot be inverted: states are first projected on the principal components of all
documents, at most a quarter as many as there are documents of the rarer kind, and the covariances are shrunk (Ledoit
and Wolf 2004).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from hedge_tasks.detectors.probes.base import Arrays, FittedDetector, FloatArray, IntArray
from hedge_tasks.errors import DataError

_MOST_COMPONENTS = 64
_SMALLEST = 1e-12


def fit(states: FloatArray, targets: IntArray, groups: IntArray) -> Arrays:
    """Fit projection, means and inverse covariances of the deepest states.

    Args:
        states: shape (n, layers, width).
        targets: 0 = supported, 1 = hallucinated, shape (n,).
        groups: not looked at.

    Raises:
        DataError: too few documents are supported, or all states are alike.
    """
    from sklearn.covariance import ledoit_wolf

    x = np.asarray(states[:, -1], dtype=np.float64)
    supported = targets == 0
    k = min(_MOST_COMPONENTS, x.shape[1], int(supported.sum()) // 4)
    if k < 1:
        raise DataError("a Mahalanobis distance needs four supported documents at least")
    center = x.mean(axis=0)
    _, lengths, axes = np.linalg.svd(x - center, full_matrices=False)
    axes = axes[: min(k, int((lengths**2 > lengths[0] ** 2 * _SMALLEST).sum()))].T
    if not axes.shape[1]:
        raise DataError("all states are alike")
    projected = (x - center) @ axes
    arrays: dict[str, FloatArray] = {"center": center, "axes": axes}
    for name, rows in {"all": projected, "supported": projected[supported]}.items():
        precision = np.linalg.pinv(ledoit_wolf(rows)[0], hermitian=True)
        arrays |= {f"mean_{name}": rows.mean(axis=0), f"precision_{name}": precision}
    return arrays


def score(arrays: Arrays, states: FloatArray) -> FloatArray:
    """How much farther a state is from the supported documents than from all, shape (m,)."""
    x = _projected(arrays, states)
    return _squared(x, arrays, "supported") - _squared(x, arrays, "all")


def score_alone(arrays: Arrays, states: FloatArray) -> FloatArray:
    """How far a state is from the supported documents, shape (m,)."""
    return _squared(_projected(arrays, states), arrays, "supported")


def _projected(arrays: Arrays, states: FloatArray) -> FloatArray:
    projected: FloatArray = (np.asarray(states[:, -1], dtype=np.float64) - arrays["center"]) @ arrays["axes"]
    return projected


def _squared(x: FloatArray, arrays: Arrays, name: str) -> FloatArray:
    away = x - arrays[f"mean_{name}"]
    distances: FloatArray = np.einsum("ni,ij,nj->n", away, arrays[f"precision_{name}"], away)
    return distances


_Distance = partial(FittedDetector, place="mean", fit=fit)
_SOURCE = "Ren et al. 2023 (2209.15558), equations 1-3"
_ALONE = "Lee et al. 2018 (1807.03888), of the supported answers alone"

DETECTORS = (
    _Distance("relative_mahalanobis", "Relative Mahalanobis distance", source=_SOURCE, score=score),
    _Distance("mahalanobis", "Mahalanobis distance", source=_ALONE, score=score_alone),
    _Distance(
        "claim_mahalanobis", "Relative Mahalanobis distance", source=_SOURCE, score=score, array="sentence_states"
    ),
)
