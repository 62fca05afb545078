"""SAR: SentenceSAR of answers whose tokens count by their relevance."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.builtin.sentence_sar import shifted_attention
from hedge_tasks.detectors.builtin.token_sar import weighted_nll
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register
from hedge_tasks.detectors.similarity import clean_cosine


@register(
    "sar",
    "SAR",
    needs=("clean", "cosines", "clean_relevance"),
    unit="nats",
    source="Duan et al. 2024 (arXiv:2307.01379)",
    experimental=True,
)
def sar(evidence: Evidence, *, t: float = 0.001) -> float:
    r"""Shifted attention over the clean answers, each as likely as its relevant tokens are.

    .. math::
        -\frac{1}{n} \sum_i \ln\Bigl(e^{-T_i} + \frac{1}{t} \sum_{j \ne i} \max(0, \cos_{ij}) \, e^{-T_j}\Bigr)

    T is TokenSAR; see `weighted_nll` and `shifted_attention`. Of the same similarities it is the number of the authors'
    code and of lm-polygraph. Needs the tokens of the samples, which are there only where imported answers bring them.

    Args:
        evidence: With clean answers, their cosines, and relevances of their tokens.
        t: Temperature.

    Example:
        >>> import numpy as np
        >>> tokens = ((np.log(0.25), 0.5), (np.log(1.0), 0.5))
        >>> round(sar(Evidence(("a b",) * 3, 2, cosines=np.eye(3), relevances=(None, tokens, tokens))), 4)
        0.6931
    """
    assert evidence.relevances is not None
    logprobs = np.array([-weighted_nll(tokens or ()) for tokens in evidence.relevances[evidence.clean]])
    return shifted_attention(clean_cosine(evidence), logprobs, t=t)
