"""EigenScore from outside: how much room the samples' embeddings fill."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import settled


def log_volume(gram: FloatArray, *, alpha: float = 1e-3) -> float:
    r"""Mean logarithm of the eigenvalues of the regularised covariance of unit vectors.

    .. math::
        \frac{1}{n} \ln\det(J G J + \alpha I), \qquad J = I - \tfrac{1}{n} \mathbf{1} \mathbf{1}^\top

    Args:
        gram: Inner products of the vectors, shape `(n, n)`.
        alpha: Added to every eigenvalue, so that equal answers have a finite number.

    Example:
        >>> import numpy as np
        >>> round(log_volume(np.ones((3, 3))), 4), round(float(np.log(1e-3)), 4)
        (-6.9078, -6.9078)
    """
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1, keepdims=True) + gram.mean()
    values = np.linalg.eigvalsh((centred + centred.T) / 2)
    return settled(np.log(np.maximum(values, 0.0) + alpha).mean())


@register(
    "eigenscore",
    "EigenScore, black box",
    needs=("clean", "cosines"),
    source="Chen et al. 2024 (INSIDE, arXiv:2402.03744), on sentence embeddings",
    experimental=True,
)
def eigenscore(evidence: Evidence, *, alpha: float = 1e-3) -> float:
    r"""EigenScore over the embeddings of the clean answers; see `log_volume`.

    .. math::
        \frac{1}{n} \sum_i \ln(\lambda_i + \alpha)

    with :math:`\lambda_i` the eigenvalues of the centred Gram matrix of the clean answers' embeddings. The authors take
    the hidden states of the model itself; from outside there are embeddings of the answers' texts. lm-polygraph's
    EigenScore takes hidden states, too.

    Args:
        evidence: With clean answers and cosines.
        alpha: Regularisation, 0.001 in the authors' code.

    Example:
        >>> import numpy as np
        >>> round(eigenscore(Evidence(("a", "b", "c"), 2, cosines=np.eye(3))), 4)
        -3.4534
    """
    assert evidence.cosines is not None
    return log_volume(evidence.cosines[evidence.clean, evidence.clean].astype(np.float64), alpha=alpha)
