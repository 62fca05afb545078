"""Linear probes: logistic regression on the hidden states of one place (Azaria and Mitchell 2023, 2304.13734, use a
small network on the same states; a linear probe is the usual form of it).

Of the kept depths one is taken, by cross-validation within the documents that it is fitted on. States are standardised
and divided by the root of their width, so that the penalty means the same for every model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from hedge_tasks.detectors.probes.base import Arrays, FittedDetector, FloatArray, IntArray, settled
from hedge_tasks.errors import DataError
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
    x = np.asarray(states, dtype=np.float64)
    center, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0) * np.sqrt(x.shape[-1])
    x = (x - center) / scale
    folds = list(_folds(targets, groups)) if x.shape[1] > 1 else []
    # Without folds of both classes nothing tells the depths apart.
    held_out = [[_held_out(x[:, layer], targets, *fold) for fold in folds] for layer in range(x.shape[1])]
    best = int(np.argmax(np.mean(held_out, axis=1))) if folds else 0
    model = logistic(x[:, best], targets)
    weights = {"center": center[best], "scale": scale[best], "weights": model.coef_[0], "bias": model.intercept_}
    return {"layer": np.array([float(best)]), **weights}


def score(arrays: Arrays, states: FloatArray) -> FloatArray:
    """Log-odds of the target class, shape (m,)."""
    x = (states[:, int(arrays["layer"][0])] - arrays["center"]) / arrays["scale"]
    log_odds: FloatArray = x @ arrays["weights"] + arrays["bias"][0]
    return log_odds


def logistic(x: FloatArray, targets: IntArray) -> Any:
    """Return scikit-learn's logistic regression with a penalty on the weights, fitted to x of shape (n, k)."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=STRENGTH, tol=1e-8, max_iter=1000).fit(x, targets)


def _held_out(x: FloatArray, targets: IntArray, train: IntArray, test: IntArray) -> float:
    odds = logistic(x[train], targets[train]).decision_function(x[test])
    return auroc(settled(odds).tolist(), targets[test].tolist())


def _folds(targets: IntArray, groups: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Folds of whole groups that have both classes on both sides; the order of groups decides, no chance."""
    names = np.unique(groups)
    for k in range(_FOLDS):
        test = np.isin(groups, names[k::_FOLDS])
        if len(set(targets[test])) == 2 and len(set(targets[~test])) == 2:
            yield np.flatnonzero(~test), np.flatnonzero(test)


_Probe = partial(FittedDetector, fit=fit, score=score)
_SAPLMA = "Azaria and Mitchell 2023 (2304.13734), SAPLMA, in its linear form"
_HALP = "HALP (2026): hidden states before a token is said, in its linear form"
_ENTROPY = "Kossen et al. 2024 (2406.15927), section 4"
_LOOKBACK = "Chuang et al. 2024 (2407.07071), ratios of all heads, the mean over the whole answer"
_IMAGE = "as lookback_lens, over each head's share of attention on image tokens"

DETECTORS = (
    _Probe("linear_probe", "Linear probe of the answer's last token", "last", source=_SAPLMA),
    _Probe("mean_probe", "Linear probe of the answer's mean state", "mean", source=_SAPLMA),
    _Probe("question_probe", "Linear probe before the answer begins", "question", source=_HALP),
    _Probe("image_probe", "Linear probe of the picture's last token", "image", source=_HALP),
    _Probe("entropy_probe", "Entropy probe of the answer's last token", "last", "entropy", source=_ENTROPY),
    _Probe("question_entropy_probe", "Entropy probe before the answer begins", "question", "entropy", source=_ENTROPY),
    _Probe("lookback_lens", "Lookback Lens", "lookback", array="heads", source=_LOOKBACK),
    _Probe(
        "image_attention_probe", "Linear probe of the attention to the image", "image", array="heads", source=_IMAGE
    ),
    _Probe("claim_linear_probe", "Linear probe of the last token", "last", array="sentence_states", source=_SAPLMA),
    _Probe("claim_mean_probe", "Linear probe of the mean state", "mean", array="sentence_states", source=_SAPLMA),
)
