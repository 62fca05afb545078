"""CoCoA: how unlikely the baseline answer is, times how unlike the samples are to it."""

from __future__ import annotations

from hedge_tasks.detectors.builtin.baseline_agreement import baseline_cosine
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "cocoa",
    "CoCoA",
    needs=("clean", "cosines", "baseline_logprob", "baseline_tokens"),
    unit="nats",
    source="Vashurin et al. 2025 (arXiv:2502.04964), CoCoA-MSP",
)
def cocoa(evidence: Evidence) -> float:
    r"""Negative log-probability of the baseline answer times its mean dissimilarity to the clean answers.

    .. math::
        -T_0 \ell_0 \cdot \frac{1}{n} \sum_{i=1}^{n} \bigl(1 - \max(0, \cos_{0i})\bigr)

    The authors and lm-polygraph (CocoaMSP) take the similarities of a cross-encoder, which are not negative. Of the
    same similarities the number is the same. A negative cosine counts as zero here; lm-polygraph would take it as it
    is, so that its number would be greater. uqlm's consistency_and_confidence is another one: the product of two
    confidences.

    Args:
        evidence: With clean answers, cosines, and log-probability and token count of the baseline answer.

    Example:
        >>> import numpy as np
        >>> cosines = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
        >>> texts, logprobs, lengths = ("a b", "a b", "c"), np.array([-1.0, -1, -1]), np.array([2.0, 2, 1])
        >>> cocoa(Evidence(texts, 2, None, logprobs, lengths, cosines=cosines))
        0.5
    """
    return -float(evidence.summed_logprobs[0]) * baseline_cosine(evidence)


@register(
    "cocoa_nll",
    "CoCoA a token",
    needs=("clean", "cosines", "baseline_logprob"),
    unit="nats a token",
    source="Vashurin et al. 2025 (arXiv:2502.04964), CoCoA-PPL",
)
def cocoa_nll(evidence: Evidence) -> float:
    r"""Negative mean token log-probability of the baseline answer times its mean dissimilarity to the clean answers.

    .. math::
        -\ell_0 \cdot \frac{1}{n} \sum_{i=1}^{n} \bigl(1 - \max(0, \cos_{0i})\bigr)

    lm-polygraph's CocoaPPL on the same similarities, where none is negative; see `cocoa`.

    Args:
        evidence: With clean answers, cosines and the log-probability of the baseline answer.

    Example:
        >>> import numpy as np
        >>> cosines = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
        >>> cocoa_nll(Evidence(("a b", "a b", "c"), 2, mean_logprobs=np.array([-1.0, -1, -1]), cosines=cosines))
        0.25
    """
    return -float(evidence.mean_logprobs[0]) * baseline_cosine(evidence)
