"""Soft agreement: RadFlag without clusters, by how similar the samples are to the baseline answer."""

from __future__ import annotations

from hedge_tasks.detectors.base import clean_draws
from hedge_tasks.detectors.distribution import mean
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import cosine, entailment


@register(
    "baseline_cosine",
    title="Distance to the baseline answer",
    needs=("clean", "cosines"),
    draws=clean_draws,
    source="Bouchard and Chauhan 2025 (cosine scorer of uqlm)",
)
def baseline_cosine(evidence: Evidence) -> float:
    r"""Mean dissimilarity of the clean answers to the baseline answer.

    .. math::
        \frac{1}{n} \sum_{i=1}^{n} \bigl(1 - \max(0, \cos_{0i})\bigr)

    uqlm reports the mean of :math:`\tfrac{1}{2} + \tfrac{1}{2} \cos`: where no cosine is negative, this is twice one
    minus that.

    Args:
        evidence: With clean answers and cosines.

    Returns:
        A number in [0, 1].

    Example:
        >>> import numpy as np
        >>> baseline_cosine(Evidence(("a", "a", "b"), 2, cosines=np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])))
        0.5
    """
    return mean((1.0 - evidence.shared(cosine)[0, evidence.clean]).tolist())


@register(
    "baseline_entailment",
    title="Samples not entailing the baseline answer",
    needs=("clean", "relations"),
    draws=clean_draws,
    source="Bouchard and Chauhan 2025 (entailment scorer of uqlm)",
)
def baseline_entailment(evidence: Evidence) -> float:
    r"""One minus the mean probability of entailment between the baseline answer and the clean ones, both ways.

    .. math::
        1 - \frac{1}{2n} \sum_{i=1}^{n} (E_{0i} + E_{i0})

    One minus uqlm's entailment score.

    Args:
        evidence: With clean answers and NLI relations.

    Returns:
        A number in [0, 1].

    Example:
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(0.5, 0.5, 0.0)] * len(pairs))
        >>> baseline_entailment(Evidence(texts, 2, relations=relations))
        0.5
    """
    return mean((1.0 - evidence.shared(entailment)[0, evidence.clean]).tolist())
