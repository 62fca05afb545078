"""Linear probes: logistic regression on the hidden states of one place (Azaria and Mitchell 2023, 2304.13734, use a
small network on the same states; a linear probe is the usual form of it).

Of the kept depths one is taken, by cross-validation within the documents that it is fitted on. States are standardised
and divided by the root of their width, so that the penalty means the same for every model.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from hedge_tasks.errors import DataError
from hedge_tasks.probes.base import Arrays, FloatArray, IntArray
from hedge_tasks.statistics import auroc

STRENGTH = 1.0
"""Inverse strength of the penalty."""

_FOLDS = 3


def fit(states: FloatArray, targets: IntArray, groups: IntArray) -> Arrays:
    """Fit depth and weights.

    Args:
        states: shape (n, layers, width).
        targets: 0 or 1, shape (n,).
        groups: shape (n,); a group is in one fold as a whole.

    Returns:
        `layer` (1,), `center` and `scale` (width,), `weights` (width,), `bias` (1,).

    Raises:
        DataError: there is one class only.
    """
    if len(set(targets.tolist())) < 2:
        raise DataError("a probe needs documents of both classes")
    folds = list(_folds(targets, groups))
    depths = range(states.shape[1])
    held_out = [np.mean([_held_out(states, targets, *fold, layer) for fold in folds]) for layer in depths if folds]
    # Without folds of both classes nothing tells the depths apart.
    best = int(np.argmax(held_out)) if held_out else 0
    return _fitted(states[:, best], targets, best)


def score(arrays: Arrays, states: FloatArray) -> FloatArray:
    """Log-odds of the target class, shape (m,)."""
    x = _standardised(states[:, int(arrays["layer"][0])], arrays["center"], arrays["scale"])
    found: FloatArray = x @ arrays["weights"] + arrays["bias"][0]
    return found


def _fitted(x: FloatArray, targets: IntArray, layer: int) -> Arrays:
    from sklearn.linear_model import LogisticRegression

    center, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    model = LogisticRegression(C=STRENGTH, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not converging: the order of the documents no longer changes
        model.fit(_standardised(x, center, scale), targets)
    return {
        "layer": np.array([float(layer)]),
        "center": center,
        "scale": scale,
        "weights": model.coef_[0],
        "bias": model.intercept_,
    }


def _standardised(x: FloatArray, center: FloatArray, scale: FloatArray) -> FloatArray:
    found: FloatArray = (x - center) / scale / np.sqrt(x.shape[1])
    return found


def _held_out(states: FloatArray, targets: IntArray, train: IntArray, test: IntArray, layer: int) -> float:
    arrays = _fitted(states[train, layer], targets[train], layer)
    return auroc(score(arrays, states[test]).tolist(), targets[test].tolist())


def _folds(targets: IntArray, groups: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Folds of whole groups that have both classes on both sides; the order of groups decides, no chance."""
    names = np.unique(groups)
    for k in range(_FOLDS):
        test = np.isin(groups, names[k::_FOLDS])
        if len(set(targets[test])) == 2 and len(set(targets[~test])) == 2:
            yield np.flatnonzero(~test), np.flatnonzero(test)
