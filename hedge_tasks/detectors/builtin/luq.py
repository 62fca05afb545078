"""LUQ: how consistently the samples entail each other."""

from __future__ import annotations

import math

import numpy as np

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT
from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import relations_of, settled


@register("luq", "LUQ", needs=("clean", "relations"), source="Zhang et al. 2024 (LUQ, EMNLP)")
def luq(evidence: Evidence) -> float:
    r"""One minus the mean probability of entailment among the clean answers, neutral set aside.

    .. math::
        1 - \frac{1}{n (n - 1)} \sum_{i \ne j} \frac{E_{ij}}{E_{ij} + C_{ij}}

    of answers as a whole, not of their sentences: lm-polygraph's LUQ. A pair with :math:`E = C = 0` counts as one half
    here; there it makes the number undefined. uqlm's LUQ is for long answers, sentence by sentence.

    Args:
        evidence: With clean answers and NLI relations.

    Returns:
        A number in [0, 1]; NaN for fewer than two clean answers.

    Example:
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(0.6, 0.2, 0.2)] * len(pairs))
        >>> round(luq(Evidence(texts, 2, relations=relations)), 4)
        0.75
    """
    n = evidence.n_clean
    if n < 2:
        return math.nan
    shares = entailed_share(evidence.shared(relations_of)[evidence.clean, evidence.clean])
    return settled(1.0 - (shares.sum() - np.trace(shares)) / (n * (n - 1)))


def entailed_share(relations: FloatArray) -> FloatArray:
    """Entailment against contradiction, shape (...), of probabilities (..., 3); one half where both are zero."""
    entailed, contradicted = relations[..., ENTAILMENT], relations[..., CONTRADICTION]
    both = entailed + contradicted
    return np.divide(entailed, both, out=np.full_like(both, 0.5), where=both != 0)
