"""SentenceSAR: a sample is as likely as the samples that say something similar make it."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import clean_cosine, clean_entailment, settled


def shifted_attention(similarity: FloatArray, logprobs: FloatArray, *, t: float = 0.001) -> float:
    r"""Mean negative log-probability of the answers, each raised by its similar ones.

    .. math::
        -\frac{1}{n} \sum_i \ln\Bigl(p_i + \frac{1}{t} \sum_{j \ne i} W_{ij} \, p_j\Bigr)

    SentenceSAR (Duan et al. 2024), p the probabilities of whole answers. Computed with logarithms: where
    every p underflows lm-polygraph has infinity.

    Args:
        similarity: :math:`W`, in [0, 1], shape `(n, n)`. The diagonal does not matter.
        logprobs: :math:`\ln p`, summed over tokens, shape `(n,)`.
        t: Temperature; 0.001 in the authors' code and in lm-polygraph.

    Example:
        >>> import numpy as np
        >>> round(shifted_attention(np.eye(2), np.log([0.5, 0.5])), 4)
        0.6931
    """
    with np.errstate(divide="ignore"):  # the logarithm of a similarity of zero is what it should be
        terms = np.log(similarity / t) + logprobs
    np.fill_diagonal(terms, logprobs)
    largest = np.maximum(terms.max(axis=1), np.finfo(np.float64).min)
    with np.errstate(divide="ignore"):
        raised = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
    return settled(-raised.mean())


@register(
    "sentence_sar",
    "SentenceSAR",
    needs=("clean", "cosines", "clean_logprobs", "clean_tokens"),
    unit="nats",
    source="Duan et al. 2024 (arXiv:2307.01379)",
)
def sentence_sar(evidence: Evidence, *, t: float = 0.001) -> float:
    r"""SentenceSAR over the cosines of the clean answers; see `shifted_attention`.

    .. math::
        -\frac{1}{n} \sum_i \ln\Bigl(p_i + \frac{1}{t} \sum_{j \ne i} \max(0, \cos_{ij}) \, p_j\Bigr)

    The authors and lm-polygraph take the similarities of a cross-encoder; of the same similarities the number is the
    same.

    Args:
        evidence: With clean answers, cosines, log-probabilities and token counts.
        t: Temperature.

    Example:
        >>> import numpy as np
        >>> logprobs, lengths = np.log([0.5, 0.5, 0.5]), np.ones(3)
        >>> alike, apart = np.ones((3, 3)), np.eye(3)
        >>> [
        ...     round(sentence_sar(Evidence(("a", "b", "c"), 2, None, logprobs, lengths, cosines=cosines)), 4)
        ...     for cosines in (alike, apart)
        ... ]
        [-6.2156, 0.6931]
    """
    return shifted_attention(clean_cosine(evidence), evidence.summed_logprobs[evidence.clean], t=t)


@register(
    "sentence_sar_nli",
    "SentenceSAR, NLI",
    needs=("clean", "relations", "clean_logprobs", "clean_tokens"),
    unit="nats",
    source="Duan et al. 2024 (arXiv:2307.01379), over entailment",
)
def sentence_sar_nli(evidence: Evidence, *, t: float = 0.001) -> float:
    r"""SentenceSAR over the probabilities of entailment of the clean answers; see `shifted_attention`.

    .. math::
        -\frac{1}{n} \sum_i \ln\Bigl(p_i + \frac{1}{2t} \sum_{j \ne i} (E_{ij} + E_{ji}) \, p_j\Bigr)

    Args:
        evidence: With clean answers, NLI relations, log-probabilities and token counts.
        t: Temperature.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.detectors.evidence import relation_matrices
        >>> texts = ("left", "left", "right")
        >>> [relations] = relation_matrices([texts], lambda pairs: [(1.0, 0.0, 0.0)] * len(pairs))
        >>> round(sentence_sar_nli(Evidence(texts, 2, None, np.log([0.5] * 3), np.ones(3), relations)), 4)
        0.6931
    """
    return shifted_attention(clean_entailment(evidence), evidence.summed_logprobs[evidence.clean], t=t)
