"""Mahalanobis distance of a state from those of supported answers (Lee et al. 2018, 1807.03888), and relative to the
distance from all (Ren et al. 2023, 2209.15558, eq. 1-3).

Distance to the supported documents less distance to all documents, each with its own covariance. With fewer documents
than dimensions a covariance cannot be inverted: states are first projected on the principal components of all
documents, at most a quarter as many as there are documents of the rarer kind, and the covariances are shrunk (Ledoit
and Wolf 2004).
"""

from __future__ import annotations

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
    x = np.asarray(states[:, -1], dtype=np.float64)
    supported = targets == 0
    k = min(_MOST_COMPONENTS, x.shape[1], int(supported.sum()) // 4)
    if k < 1:
        raise DataError("a Mahalanobis distance needs four supported documents at least")
    center = x.mean(axis=0)
    axes = _components(x - center, k)
    if not axes.shape[1]:
        raise DataError("all states are alike")
    projected = (x - center) @ axes
    arrays: dict[str, FloatArray] = {"center": center, "axes": axes}
    for name, rows in {"all": projected, "supported": projected[supported]}.items():
        arrays |= {
            f"mean_{name}": rows.mean(axis=0),
            f"precision_{name}": np.linalg.pinv(shrunk_covariance(rows), hermitian=True),
        }
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


def _components(x: FloatArray, k: int) -> FloatArray:
    """The first principal components of centred states, shape (width, k or fewer)."""
    wide = x.shape[1] > x.shape[0]
    values, vectors = np.linalg.eigh(x @ x.T if wide else x.T @ x)
    first = [i for i in range(len(values))[::-1] if values[i] > values[-1] * _SMALLEST][:k]
    components: FloatArray = x.T @ vectors[:, first] / np.sqrt(values[first]) if wide else vectors[:, first]
    return components


def shrunk_covariance(x: FloatArray) -> FloatArray:
    """Covariance drawn towards a multiple of the unit matrix, as far as Ledoit and Wolf (2004) find best.

    The same as scikit-learn's, without its checks, which take ten times as long as the sums.

    Args:
        x: shape (n, k).
    """
    n, k = x.shape
    away = x - x.mean(axis=0)
    covariance: FloatArray = away.T @ away / n
    mean = np.trace(covariance) / k
    squares = float((covariance**2).sum())
    noise = (float(((away**2).sum(axis=1) ** 2).sum()) / n - squares) / n
    distance = squares - k * mean**2
    weight = min(noise, distance) / distance if distance > 0 else 0.0
    return (1 - weight) * covariance + weight * mean * np.eye(k)


def _squared(x: FloatArray, arrays: Arrays, name: str) -> FloatArray:
    away = x - arrays[f"mean_{name}"]
    distances: FloatArray = np.einsum("ni,ij,nj->n", away, arrays[f"precision_{name}"], away)
    return distances


DETECTORS = (
    FittedDetector(
        "relative_mahalanobis",
        "Relative Mahalanobis distance",
        place="mean",
        target="labels",
        source="Ren et al. 2023 (2209.15558), equations 1-3",
        fit=fit,
        score=score,
    ),
    FittedDetector(
        "mahalanobis",
        "Mahalanobis distance",
        place="mean",
        target="labels",
        source="Lee et al. 2018 (1807.03888), of the supported answers alone",
        fit=fit,
        score=score_alone,
    ),
    FittedDetector(
        "claim_mahalanobis",
        "Relative Mahalanobis distance of the sentence",
        place="mean",
        array="sentence_states",
        target="labels",
        source="as relative_mahalanobis, of each sentence",
        fit=fit,
        score=score,
    ),
)
