"""Soft agreement: RadFlag without clusters, by what the samples and the baseline answer say of each other."""

from __future__ import annotations

from hedge_tasks.claims.base import CONTRADICTION
from hedge_tasks.detectors.builtin.luq import entailed_share
from hedge_tasks.detectors.distribution import FloatArray, mean
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import cosine, entailment, relations_of


@register(
    "baseline_cosine",
    "Distance to the baseline answer",
    short="distance to baseline",
    needs=("clean", "cosines"),
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
    return _with_baseline(1.0 - evidence.shared(cosine), evidence)


@register(
    "baseline_entailment",
    "Samples not entailing the baseline answer",
    short="samples not entailing",
    needs=("clean", "relations"),
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
    return _with_baseline(1.0 - evidence.shared(entailment), evidence)


@register(
    "selfcheck_nli",
    "SelfCheck-NLI",
    needs=("clean", "relations"),
    source="Manakul et al. 2023 (SelfCheckGPT with NLI, arXiv:2303.08896)",
)
def selfcheck_nli(evidence: Evidence) -> float:
    r"""Mean probability that the baseline answer contradicts a clean answer, neutral set aside.

    .. math::
        \frac{1}{n} \sum_{i=1}^{n} \frac{C_{0i}}{E_{0i} + C_{0i}}

    Of the whole baseline answer, not sentence by sentence, and with it as premise, as in selfcheckgpt's code. A pair
    with :math:`E = C = 0` counts as one half; there it makes the number undefined. In neither lm-polygraph nor uqlm.

    Args:
        evidence: With clean answers and NLI relations.

    Returns:
        A number in [0, 1].

    Example:
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(0.75, 0.0, 0.25)] * len(pairs))
        >>> selfcheck_nli(Evidence(texts, 2, relations=relations))
        0.375
    """
    return mean((1.0 - entailed_share(evidence.shared(relations_of)[0, evidence.clean])).tolist())


@register(
    "contradiction",
    "Samples contradicting the baseline answer",
    short="samples contradicting",
    needs=("clean", "relations"),
    source="Chen and Mueller 2024 (non-contradiction)",
)
def contradiction(evidence: Evidence) -> float:
    r"""Mean probability of contradiction between the baseline answer and the clean ones, both ways.

    .. math::
        \frac{1}{2n} \sum_{i=1}^{n} (C_{0i} + C_{i0})

    One minus uqlm's noncontradiction score.

    Args:
        evidence: With clean answers and NLI relations.

    Returns:
        A number in [0, 1].

    Example:
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(0.75, 0.0, 0.25)] * len(pairs))
        >>> contradiction(Evidence(texts, 2, relations=relations))
        0.375
    """
    contradicted = evidence.shared(relations_of)[..., CONTRADICTION]
    return _with_baseline((contradicted + contradicted.T) / 2, evidence)


def _with_baseline(matrix: FloatArray, evidence: Evidence) -> float:
    """Mean over the clean answers of what a matrix says of the baseline answer and each."""
    return mean(matrix[0, evidence.clean].tolist())
