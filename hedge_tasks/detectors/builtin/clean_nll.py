"""How unlikely the model finds its samples: Monte Carlo estimates of the entropy of its answers as strings."""

from __future__ import annotations

from hedge_tasks.detectors.distribution import mean, negative
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "clean_nll",
    "Predictive entropy a token",
    short="mean NLL",
    needs=("clean", "clean_logprobs"),
    unit="nats a token",
    source="Malinin and Gales 2021; Farquhar et al. 2024 (naive entropy)",
)
def clean_nll(evidence: Evidence) -> float:
    r"""Negative mean over the clean answers of their mean token log-probabilities.

    .. math::
        -\frac{1}{n} \sum_{i=1}^{n} \ell_i

    lm-polygraph's MonteCarloNormalizedSequenceEntropy, which leaves samples of no tokens out.

    Args:
        evidence: With clean answers and their log-probabilities.

    Example:
        >>> import numpy as np
        >>> clean_nll(Evidence(("a", "a", "b"), 2, mean_logprobs=np.array([-0.1, -0.5, -1.5])))
        1.0
    """
    return negative(mean(evidence.mean_logprobs[evidence.clean].tolist()))


@register(
    "predictive_entropy",
    "Predictive entropy",
    needs=("clean", "clean_logprobs", "clean_tokens"),
    unit="nats",
    source="Malinin and Gales 2021",
)
def predictive_entropy(evidence: Evidence) -> float:
    r"""Negative mean log-probability of the whole clean answers.

    .. math::
        -\frac{1}{n} \sum_{i=1}^{n} T_i \ell_i

    lm-polygraph's MonteCarloSequenceEntropy.

    Args:
        evidence: With clean answers, their log-probabilities and token counts.

    Example:
        >>> import numpy as np
        >>> lengths, logprobs = np.array([1.0, 2, 4]), np.array([-0.1, -0.5, -1.5])
        >>> predictive_entropy(Evidence(("a", "a b", "b c d e"), 2, mean_logprobs=logprobs, n_tokens=lengths))
        3.5
    """
    return negative(mean(evidence.summed_logprobs[evidence.clean].tolist()))
