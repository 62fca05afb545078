"""Linear probes: logistic regression on the hidden states of one place (Azaria and Mitchell 2023, 2304.13734, use a
small network on the same states; a linear probe is the usual form of it).

Of the kept depths one is taken, by cross-validation within the documents that it is fitted on. States are standardised
and divided by the root of their width, so that the penalty means the same for every model.

There are fewer documents than dimensions as a rule: weights are a sum of documents, and Newton's method looks for them
in that space. It ends where the gradient does; the minimum is the one that scikit-learn's solvers look for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit

from hedge_tasks.detectors.probes.base import Arrays, FittedDetector, FloatArray, IntArray, settled
from hedge_tasks.errors import DataError
from hedge_tasks.statistics import auroc

STRENGTH = 1.0
"""Inverse strength of the penalty."""

_FOLDS = 3
_STEPS = 50
_SMALLEST = 1e-12


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
    depths = [_Depth.of(states[:, layer]) for layer in range(states.shape[1])]
    folds = list(_folds(targets, groups)) if len(depths) > 1 else []
    # Without folds of both classes nothing tells the depths apart.
    best = 0
    if folds:
        best = int(np.argmax([np.mean([depth.held_out(targets, *fold) for fold in folds]) for depth in depths]))
    depth = depths[best]
    weights, bias = logistic(depth.reduced, targets)
    return {
        "layer": np.array([float(best)]),
        "center": depth.center,
        "scale": depth.scale,
        "weights": depth.in_full(weights),
        "bias": np.array([bias]),
    }


def score(arrays: Arrays, states: FloatArray) -> FloatArray:
    """Log-odds of the target class, shape (m,)."""
    x = _standardised(states[:, int(arrays["layer"][0])], arrays["center"], arrays["scale"])
    log_odds: FloatArray = x @ arrays["weights"] + arrays["bias"][0]
    return log_odds


def logistic(x: FloatArray, targets: IntArray) -> tuple[FloatArray, float]:
    r"""Minimum of the penalised logistic loss, by Newton's method.

    .. math::
        \tfrac{1}{2} \lVert w \rVert^2 + C \sum_i \ln\bigl(1 + e^{-t_i (w^\top x_i + b)}\bigr), \qquad t_i = \pm 1

    Args:
        x: shape (n, k).
        targets: 0 or 1, shape (n,).

    Returns:
        Weights of shape (k,), and the bias, which is not penalised.
    """
    n, k = x.shape
    z = np.column_stack([x, np.ones(n)])
    penalty = np.append(np.full(k, 1.0 / STRENGTH), 0.0)
    fitted = np.zeros(k + 1)
    fitted[k] = np.log(targets.mean() / (1 - targets.mean()))
    loss = _loss(z @ fitted, targets) + penalty @ fitted**2 / 2
    for _ in range(_STEPS):
        p = expit(z @ fitted)
        gradient = z.T @ (p - targets) + penalty * fitted
        hessian = (z * (p * (1 - p))[:, None]).T @ z
        hessian[np.diag_indices(k + 1)] += penalty
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        # A whole step may overshoot where the loss is nearly flat.
        while (new := _loss(z @ (fitted - size * step), targets) + penalty @ (fitted - size * step) ** 2 / 2) > loss:
            size /= 2
            if size < _SMALLEST:
                return fitted[:k], float(fitted[k])
        fitted, gain, loss = fitted - size * step, loss - new, new
        if gain < _SMALLEST * loss:
            break
    return fitted[:k], float(fitted[k])


def _loss(odds: FloatArray, targets: IntArray) -> float:
    return float(np.logaddexp(0.0, odds).sum() - odds @ targets)


@dataclass(frozen=True)
class _Depth:
    """The states of one depth, standardised, in no more dimensions than there are documents.

    Attributes:
        center, scale: shape (width,).
        standardised: shape (n, width).
        reduced: shape (n, k).
        rotation: shape (n, k): `standardised.T @ rotation` is orthonormal, and takes `reduced` to the standardised
            states; None where these are not reduced.
    """

    center: FloatArray
    scale: FloatArray
    standardised: FloatArray
    reduced: FloatArray
    rotation: FloatArray | None = None

    @classmethod
    def of(cls, states: FloatArray) -> _Depth:
        x = np.asarray(states, dtype=np.float64)
        center, scale = x.mean(axis=0), x.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        x = np.asarray(_standardised(x, center, scale), dtype=np.float64)
        if x.shape[1] <= x.shape[0]:
            return cls(center, scale, x, x)
        values, vectors = np.linalg.eigh(x @ x.T)
        positive = values > values[-1] * _SMALLEST
        lengths = np.sqrt(values[positive])
        return cls(center, scale, x, vectors[:, positive] * lengths, vectors[:, positive] / lengths)

    def in_full(self, weights: FloatArray) -> FloatArray:
        """Return the weights of the standardised states from those of the reduced ones."""
        full: FloatArray = weights if self.rotation is None else self.standardised.T @ (self.rotation @ weights)
        return full

    def held_out(self, targets: IntArray, train: IntArray, test: IntArray) -> float:
        weights, bias = logistic(self.reduced[train], targets[train])
        return auroc(settled(self.reduced[test] @ weights + bias).tolist(), targets[test].tolist())


def _standardised(x: FloatArray, center: FloatArray, scale: FloatArray) -> FloatArray:
    standardised: FloatArray = (x - center) / scale / np.sqrt(x.shape[1])
    return standardised


def _folds(targets: IntArray, groups: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Folds of whole groups that have both classes on both sides; the order of groups decides, no chance."""
    names = np.unique(groups)
    for k in range(_FOLDS):
        test = np.isin(groups, names[k::_FOLDS])
        if len(set(targets[test])) == 2 and len(set(targets[~test])) == 2:
            yield np.flatnonzero(~test), np.flatnonzero(test)


_Probe = partial(FittedDetector, fit=fit, score=score)

DETECTORS = (
    _Probe(
        "linear_probe",
        "Linear probe of the answer's last token",
        place="last",
        target="labels",
        source="Azaria and Mitchell 2023 (2304.13734), SAPLMA, in its linear form",
    ),
    _Probe(
        "mean_probe",
        "Linear probe of the answer's mean state",
        place="mean",
        target="labels",
        source="as linear_probe, over the mean of the answer's tokens",
    ),
    _Probe(
        "question_probe",
        "Linear probe before the answer begins",
        place="question",
        target="labels",
        source="HALP (2026): hidden states before a token is said, in its linear form",
        before=True,
    ),
    _Probe(
        "image_probe",
        "Linear probe of the picture's last token",
        place="image",
        target="labels",
        source="HALP (2026), states of the picture, in its linear form",
        before=True,
    ),
    _Probe(
        "entropy_probe",
        "Semantic entropy probe of the answer's last token",
        place="last",
        target="entropy",
        source="Kossen et al. 2024 (2406.15927), section 4",
    ),
    _Probe(
        "question_entropy_probe",
        "Semantic entropy probe before the answer begins",
        place="question",
        target="entropy",
        source="Kossen et al. 2024 (2406.15927), section 4, token before generating",
        before=True,
    ),
    _Probe(
        "lookback_lens",
        "Lookback Lens",
        place="lookback",
        array="heads",
        target="labels",
        source="Chuang et al. 2024 (2407.07071), ratios of all heads, the mean over the whole answer",
    ),
    _Probe(
        "image_attention_probe",
        "Linear probe of the attention to the image",
        place="image",
        array="heads",
        target="labels",
        source="as lookback_lens, over each head's share of attention on image tokens",
    ),
    _Probe(
        "claim_linear_probe",
        "Linear probe of the sentence's last token",
        place="last",
        array="sentence_states",
        target="labels",
        source="as linear_probe, of each sentence",
    ),
    _Probe(
        "claim_mean_probe",
        "Linear probe of the sentence's mean state",
        place="mean",
        array="sentence_states",
        target="labels",
        source="as mean_probe, over the sentence's tokens",
    ),
)
