"""Semantic nearest neighbour entropy: no clusters, but how near each sample is to the others."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import clean_cosine, clean_entailment, settled


def nearest_neighbour_entropy(similarity: FloatArray, *, temperature: float = 1.0) -> float:
    r"""Negative mean logarithm of how much similarity surrounds each answer.

    .. math::
        -\frac{1}{n} \sum_i \ln \sum_j \exp(W_{ij} / \tau)

    SNNE (Nguyen et al. 2025, ACL Findings, arXiv:2506.00245), over all j, i itself among them, as in the authors' code.
    It falls with the number of answers: only questions with equally many are comparable.

    Args:
        similarity: :math:`W`, with ones on the diagonal, shape `(n, n)`.
        temperature: :math:`\tau`, positive.

    Returns:
        A number in :math:`[-\ln n - 1/\tau, -\ln(n - 1 + e^{1/\tau})]` for similarities in [0, 1].

    Example:
        >>> import numpy as np
        >>> round(nearest_neighbour_entropy(np.ones((3, 3))), 4), round(nearest_neighbour_entropy(np.eye(3)), 4)
        (-2.0986, -1.5514)
    """
    near = similarity / temperature
    largest = near.max(axis=1)
    sums = np.exp(near - largest[:, None]).sum(axis=1)
    return settled(-(largest + np.log(sums)).mean())


@register(
    "snne",
    "Nearest neighbour entropy",
    needs=("clean", "relations"),
    source="Nguyen et al. 2025 (SNNE, arXiv:2506.00245), over entailment",
)
def snne(evidence: Evidence, *, temperature: float = 1.0) -> float:
    r"""SNNE over the probabilities of entailment of the clean answers; see `nearest_neighbour_entropy`.

    .. math::
        -\frac{1}{n} \sum_i \ln \sum_j \exp\bigl((E_{ij} + E_{ji}) / 2\tau\bigr)

    In neither lm-polygraph nor uqlm.

    Args:
        evidence: With clean answers and NLI relations.
        temperature: :math:`\tau`.

    Example:
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(1.0, 0.0, 0.0)] * len(pairs))
        >>> round(snne(Evidence(texts, 2, relations=relations)), 4)
        -1.3133
    """
    return nearest_neighbour_entropy(clean_entailment(evidence), temperature=temperature)


@register(
    "snne_cosine",
    "Nearest neighbour entropy, cosine",
    short="SNNE, cosine",
    needs=("clean", "cosines"),
    source="Nguyen et al. 2025 (SNNE, arXiv:2506.00245), over cosines",
)
def snne_cosine(evidence: Evidence, *, temperature: float = 1.0) -> float:
    r"""SNNE over the cosines of the clean answers; see `nearest_neighbour_entropy`.

    .. math::
        -\frac{1}{n} \sum_i \ln \sum_j \exp\bigl(\max(0, \cos_{ij}) / \tau\bigr)

    The authors' code does not raise negative cosines to zero.

    Args:
        evidence: With clean answers and cosines.
        temperature: :math:`\tau`.

    Example:
        >>> import numpy as np
        >>> round(snne_cosine(Evidence(("a", "b", "c"), 2, cosines=np.eye(3))), 4)
        -1.3133
    """
    return nearest_neighbour_entropy(clean_cosine(evidence), temperature=temperature)
