"""Detectors on the baseline answer by itself, without a draw: how unlikely the model finds it, and how long it is."""

from __future__ import annotations

from hedge_tasks.detectors.distribution import negative
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "baseline_nll",
    "Negative log-probability a token",
    short="baseline NLL",
    needs=("baseline_logprob",),
    unit="nats a token",
    source="Malinin and Gales 2021",
)
def baseline_nll(evidence: Evidence) -> float:
    r"""Negative mean token log-probability of the baseline answer: the logarithm of its perplexity.

    .. math::
        -\ell_0 = -\frac{1}{T_0} \sum_t \ln p(y_t \mid y_{<t}, x)

    Malinin and Gales 2021: how surprising the model finds its own answer. lm-polygraph's Perplexity.

    Args:
        evidence: With the log-probability of the baseline answer.

    Example:
        >>> import numpy as np
        >>> baseline_nll(Evidence(("yes",), 0, mean_logprobs=np.array([-0.25])))
        0.25
    """
    return negative(float(evidence.mean_logprobs[0]))


@register(
    "msp",
    "Sequence probability (−log)",
    needs=("baseline_logprob", "baseline_tokens"),
    unit="nats",
    source="Fadeeva et al. 2023",
)
def msp(evidence: Evidence) -> float:
    r"""Negative log-probability of the whole baseline answer.

    .. math::
        -T_0 \ell_0 = -\sum_t \ln p(y_t \mid y_{<t}, x)

    lm-polygraph's MaximumSequenceProbability. "Maximum" because the baseline answer is the (nearly) greedy one. Special
    tokens are left out of the sum, as they are of the mean log-probabilities here.

    Args:
        evidence: With the log-probability of the baseline answer and its number of tokens.

    Example:
        >>> import numpy as np
        >>> msp(Evidence(("a small effusion",), 0, mean_logprobs=np.array([-0.25]), n_tokens=np.array([4.0])))
        1.0
    """
    return negative(float(evidence.summed_logprobs[0]))


@register(
    "length",
    "Length of the answer",
    needs=("baseline_tokens",),
    unit="tokens",
    source="Janiak et al. 2025 (arXiv:2508.08285): with ROUGE labels length rivals semantic entropy",
    blind=True,
)
def length(evidence: Evidence) -> float:
    r"""Number of tokens of the baseline answer.

    .. math::
        T_0

    Where labels come from overlap with a reference, longer answers are wrong more often by construction, and a detector
    that only sees length looks good.

    Args:
        evidence: With the token count of the baseline answer.

    Example:
        >>> import numpy as np
        >>> length(Evidence(("a small effusion",), 0, n_tokens=np.array([4.0])))
        4.0
    """
    return float(evidence.n_tokens[0])
