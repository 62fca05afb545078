"""RAUQ: a token is as sure as the model was of it and, by what it looks at, of the token before."""

from __future__ import annotations

import math

import numpy as np

from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


def recurrent_uncertainty(logprobs: FloatArray, previous: FloatArray, *, alpha: float = 0.2) -> float:
    r"""Largest, over the middle third of the layers, of the mean negative logarithm of recurrent confidences.

    .. math::
        \max_l -\frac{1}{T} \sum_t \ln c^l_t, \qquad c^l_1 = p_1, \quad
        c^l_t = \alpha \, p_t + (1 - \alpha) \, a^l_{t,t-1} \, c^l_{t-1}

    Args:
        logprobs: of the tokens, in nats, shape `(T,)`.
        previous: attention to the token before, by layer, shape `(L, T)`; the first column does not matter.
        alpha: weight of the token's own probability.

    Example:
        >>> round(recurrent_uncertainty(np.log([0.5, 0.5]), np.array([[0.0, 1.0]]), alpha=0.5), 4)
        0.6931
    """
    n = len(previous)
    chosen = previous[n // 3 : math.ceil(n / 3 * 2) + 1]
    p = np.exp(logprobs)
    confidence = np.full(len(chosen), p[0])
    total = np.log(confidence)
    for t in range(1, len(p)):
        confidence = alpha * p[t] + (1 - alpha) * chosen[:, t] * confidence
        total = total + np.log(confidence)
    return float((-total / len(p)).max())


@register(
    "rauq",
    "RAUQ",
    needs=("attention", "token_logits"),
    unit="nats",
    source="Vazhentsev et al. 2025 (arXiv:2505.20045), equations 3-5",
    experimental=True,
)
def rauq(evidence: Evidence, *, alpha: float = 0.2) -> float:
    r"""RAUQ of the baseline answer; see `recurrent_uncertainty`.

    .. math::
        \max_l -\frac{1}{T} \sum_t \ln c^l_t

    Of each layer the head is taken that looks most at the token before, the mean over the answer. lm-polygraph adds 1.

    Args:
        evidence: With attention and logits.
        alpha: Weight of the token's own probability; 0.2 in the paper.

    Example:
        >>> from hedge_tasks.data.inside import LOGITS
        >>> logits = np.zeros((2, len(LOGITS)))
        >>> logits[:, 0] = np.log(0.5)
        >>> inside = {"heads": np.zeros((1, 1, 5)), "previous": np.array([[np.nan, 1.0]]), "logits": logits}
        >>> round(rauq(Evidence(("a cyst",), 0, inside=inside)), 4)
        0.6931
    """
    logprobs = evidence.inside_column("logits", "logprob")
    return recurrent_uncertainty(logprobs, np.asarray(evidence.inside["previous"], dtype=np.float64), alpha=alpha)
