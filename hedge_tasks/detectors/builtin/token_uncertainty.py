"""How unsure the model was of single tokens of the baseline answer, without a draw."""

from __future__ import annotations

import math

from hedge_tasks.detectors.builtin.baseline_agreement import baseline_cosine
from hedge_tasks.detectors.distribution import mean, negative
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "min_token_probability",
    "Least likely token",
    needs=("baseline_token_logprobs",),
    unit="nats",
    source="Manakul et al. 2023 (2303.08896), Max(-log p)",
    experimental=True,
)
def min_token_probability(evidence: Evidence) -> float | None:
    r"""Negative log-probability of the least likely token of the baseline answer.

    .. math::
        \max_t -\ln p(y_t \mid y_{<t}, x)

    uqlm's min_probability is the exponential of its negative: the same order. None for an answer of no tokens.

    Args:
        evidence: With the log-probabilities of the baseline answer's tokens.

    Example:
        >>> min_token_probability(Evidence(("a cyst",), 0, token_logprobs=(-0.1, -2.5)))
        2.5
    """
    values = evidence.token_logprobs
    return negative(min(values)) if values else None


@register(
    "mean_token_entropy",
    "Mean token entropy",
    needs=("baseline_token_entropies",),
    unit="nats",
    source="Fomicheva et al. 2020; Malinin and Gales 2021",
    experimental=True,
)
def mean_token_entropy(evidence: Evidence) -> float | None:
    r"""Mean entropy of the model's next token, over the tokens of the baseline answer.

    .. math::
        \frac{1}{T_0} \sum_t H_t, \qquad H_t = -\sum_v p_t(v) \ln p_t(v)

    lm-polygraph's MeanTokenEntropy, which sees the whole vocabulary. Servers tell the likeliest few tokens: the sum is
    over these, with their probabilities divided by their sum, as uqlm's mean_token_negentropy does.

    Args:
        evidence: With entropies of the baseline answer's tokens.

    Example:
        >>> round(mean_token_entropy(Evidence(("a cyst",), 0, token_entropies=(0.0, 0.5))), 4)
        0.25
    """
    values = evidence.token_entropies
    return mean(values) if values else None


@register(
    "max_token_entropy",
    "Largest token entropy",
    needs=("baseline_token_entropies",),
    unit="nats",
    source="Manakul et al. 2023 (2303.08896), Max(H)",
    experimental=True,
)
def max_token_entropy(evidence: Evidence) -> float | None:
    r"""Largest entropy of the model's next token, over the tokens of the baseline answer.

    .. math::
        \max_t H_t

    Entropies are those of `mean_token_entropy`.

    Args:
        evidence: With entropies of the baseline answer's tokens.

    Example:
        >>> max_token_entropy(Evidence(("a cyst",), 0, token_entropies=(0.0, 0.5)))
        0.5
    """
    values = evidence.token_entropies
    return max(values) if values else None


@register(
    "cocoa_mte",
    "CoCoA, token entropy",
    needs=("clean", "cosines", "baseline_token_entropies"),
    unit="nats",
    source="Vashurin et al. 2025 (arXiv:2502.04964), CoCoA-MTE",
    experimental=True,
)
def cocoa_mte(evidence: Evidence) -> float | None:
    r"""Mean token entropy of the baseline answer times its mean dissimilarity to the clean answers.

    .. math::
        \frac{1}{T_0} \sum_t H_t \cdot \frac{1}{n} \sum_{i=1}^{n} \bigl(1 - \max(0, \cos_{0i})\bigr)

    lm-polygraph's CocoaMTE on the same similarities; see `cocoa` and `mean_token_entropy`.

    Args:
        evidence: With clean answers, cosines and entropies of the baseline answer's tokens.

    Example:
        >>> import numpy as np
        >>> cosines = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
        >>> cocoa_mte(Evidence(("a b", "a b", "c"), 2, cosines=cosines, token_entropies=(0.0, 2.0)))
        0.25
    """
    entropy = mean_token_entropy(evidence)
    return None if entropy is None else entropy * baseline_cosine(evidence)


@register(
    "mc_probability",
    "Monte Carlo sequence probability",
    short="Monte Carlo probability",
    needs=("clean", "clean_logprobs"),
    source="Kuhn et al. 2023; uqlm",
    experimental=True,
)
def mc_probability(evidence: Evidence) -> float:
    r"""One minus the mean length-normalised probability of the clean answers.

    .. math::
        1 - \frac{1}{n} \sum_{i=1}^{n} e^{\ell_i}

    uqlm's monte_carlo_probability is one minus this where its base answer is counted among the answers (60 of 60 were
    equal with it, 5 without); here the clean answers alone count.

    Args:
        evidence: With clean answers and their log-probabilities.

    Example:
        >>> import numpy as np
        >>> round(mc_probability(Evidence(("a", "a", "b"), 2, mean_logprobs=np.log([0.9, 0.5, 0.1]))), 4)
        0.7
    """
    return 1.0 - mean(math.exp(value) for value in evidence.mean_logprobs[evidence.clean].tolist())
