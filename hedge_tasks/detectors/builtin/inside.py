"""EigenScore of INSIDE: how much room the hidden states of the samples fill."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register

_DIGITS = 9


def state_volume(states: FloatArray, *, alpha: float = 1e-3) -> float:
    r"""Mean logarithm of the eigenvalues of the regularised covariance of states.

    .. math::
        \frac{1}{n} \ln\det(Z J_d Z^\top + \alpha I), \qquad J_d = I - \tfrac{1}{d} \mathbf{1} \mathbf{1}^\top

    Args:
        states: :math:`Z`, shape `(n, d)`.
        alpha: Added to every eigenvalue.

    Example:
        >>> round(state_volume(np.ones((3, 4))), 4), round(float(np.log(1e-3)), 4)
        (-6.9078, -6.9078)
    """
    centred = states - states.mean(axis=1, keepdims=True)
    values = np.linalg.eigvalsh(centred @ centred.T)
    # Logarithms of eigenvalues near 0 carry the rounding of the products, which depends on the order of the samples.
    return round(float(np.log(np.maximum(values, 0.0) + alpha).mean()), _DIGITS)


@register(
    "inside",
    "EigenScore, INSIDE",
    needs=("clean", "draw_states"),
    source="Chen et al. 2024 (INSIDE, arXiv:2402.03744), equations 4-6",
    experimental=True,
)
def inside(evidence: Evidence, *, alpha: float = 1e-3) -> float:
    r"""EigenScore over the hidden states of the clean answers; see `state_volume`.

    .. math::
        \frac{1}{n} \sum_i \ln(\lambda_i + \alpha)

    with :math:`\lambda_i` the eigenvalues of the covariance of the states at the last token in the middle of the model,
    as in the authors' code and lm-polygraph: each state is centred over its dimensions, and the states not about their
    mean. `eigenscore` is the same idea from outside.

    Args:
        evidence: With hidden states of the clean answers.
        alpha: Regularisation, 0.001 in the authors' code.

    Example:
        >>> states = np.array([[1.0, -1.0], [1.0, -1.0]])
        >>> round(inside(Evidence(("a", "b", "c"), 2, inside={"draw_states": states})), 4)
        -2.7606
    """
    return state_volume(np.asarray(evidence.inside["draw_states"], dtype=np.float64), alpha=alpha)
