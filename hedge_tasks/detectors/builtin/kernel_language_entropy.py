"""Kernel language entropy: the von Neumann entropy of a heat kernel on the graph of the samples."""

from __future__ import annotations

import numpy as np

from hedge_tasks.claims.base import ENTAILMENT, NEUTRAL
from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import clean_cosine, relations_of, settled

# Eigenvalues of a kernel that are zero come out as this much at most.
_ZERO = 1e-10


def kernel_language_entropy(weights: FloatArray, *, t: float = 0.3) -> float:
    r"""Von Neumann entropy of the heat kernel of a graph, in nats.

    .. math::
        -\operatorname{tr}(K \ln K), \qquad K_{ij} = \frac{1}{n} \frac{H_{ij}}{\sqrt{H_{ii} H_{jj}}}, \qquad
        H = e^{-t L}, \qquad L = D - W

    Nikitin et al. 2024 (arXiv:2405.20003), with the heat kernel of the unnormalised Laplacian.

    Args:
        weights: :math:`W`, of the edges, symmetric, not negative, shape `(n, n)`. The diagonal does not matter.
        t: How far heat spreads along the edges; 0.3 in the paper.

    Returns:
        A number in :math:`[0, \ln n]`. Agreeing answers have not 0, but the less the more of them there are.

    Example:
        >>> import numpy as np
        >>> round(kernel_language_entropy(np.zeros((4, 4))), 4), round(kernel_language_entropy(2 * np.ones((4, 4))), 4)
        (1.3863, 0.7541)
    """
    values, vectors = np.linalg.eigh(np.diag(weights.sum(axis=1)) - weights)
    heat = (vectors * np.exp(-t * values)) @ vectors.T
    scale = np.diag(heat) ** -0.5
    shares = np.linalg.eigvalsh(scale[:, None] * heat * scale / len(heat))
    shares = shares[shares > _ZERO]
    return settled(max(0.0, -float(shares @ np.log(shares))))


@register(
    "kle",
    "Kernel language entropy",
    needs=("clean", "relations"),
    unit="nats",
    source="Nikitin et al. 2024 (arXiv:2405.20003)",
)
def kle(evidence: Evidence, *, t: float = 0.3) -> float:
    r"""Kernel language entropy over the NLI graph of the clean answers; see `kernel_language_entropy`.

    .. math::
        W = E + E^\top + \tfrac{1}{2} (N + N^\top)

    with :math:`E, N` the probabilities of entailment and of neutral. lm-polygraph's with `scale=False`; by default it
    divides by :math:`\ln n`. The authors' code takes the likeliest relation in place of the probabilities.

    Args:
        evidence: With clean answers and NLI relations.
        t: How far heat spreads.

    Example:
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(1.0, 0.0, 0.0)] * len(pairs))
        >>> round(kle(Evidence(texts, 3, relations=relations)), 4)
        0.9972
    """
    return kernel_language_entropy(_nli_weights(evidence), t=t)


@register(
    "kle_cosine",
    "Kernel language entropy, cosine",
    short="KLE, cosine",
    needs=("clean", "cosines"),
    unit="nats",
    source="Nikitin et al. 2024 (arXiv:2405.20003), over cosines",
)
def kle_cosine(evidence: Evidence, *, t: float = 0.3) -> float:
    r"""Kernel language entropy over the cosines of the clean answers, where there is no NLI model.

    .. math::
        W = 2 \max(0, \cos)

    Twice the cosine, so that answers that are alike have an edge as heavy as answers that entail each other.

    Args:
        evidence: With clean answers and cosines.
        t: How far heat spreads.

    Example:
        >>> import numpy as np
        >>> round(kle_cosine(Evidence(("a", "b", "c"), 2, cosines=np.eye(3))), 4)
        0.6931
    """
    return kernel_language_entropy(2.0 * clean_cosine(evidence), t=t)


def _nli_weights(evidence: Evidence) -> FloatArray:
    relations = evidence.shared(relations_of)[evidence.clean, evidence.clean]
    one_way = relations[..., ENTAILMENT] + relations[..., NEUTRAL] / 2
    return one_way + one_way.T
