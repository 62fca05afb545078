"""How sure the model was of the tokens of each claim: no draw is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedge_tasks.claims.base import ClaimEvidence, FloatArray
from hedge_tasks.detectors.registry import register


@register("claim_nll", "NLL of claims, mean", needs=("claim_logprobs",), unit="nats per token", level="claim")
def claim_nll(evidence: ClaimEvidence) -> FloatArray:
    r"""Mean negative log-probability of the claim's tokens, :math:`-\frac{1}{T} \sum_t \ln p_t`; NaN without any.

    lm-polygraph's PerplexityClaim.

    Example:
        >>> from hedge_tasks.claims.base import Claim
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"),)
        >>> evidence = ClaimEvidence(claims, "No mass.", logprobs=(np.array([-0.5, -1.5]),))
        >>> claim_nll(evidence).tolist(), claim_nll_max(evidence).tolist()
        ([1.0], [1.5])
    """
    return _over_tokens(evidence, np.mean)


@register("claim_nll_max", "NLL of claims, least likely token", needs=("claim_logprobs",), unit="nats", level="claim")
def claim_nll_max(evidence: ClaimEvidence) -> FloatArray:
    r"""Negative log-probability of the claim's least likely token, :math:`-\min_t \ln p_t`; NaN without any."""
    return _over_tokens(evidence, np.min)


def _over_tokens(evidence: ClaimEvidence, function: Callable[[FloatArray], np.floating[Any]]) -> FloatArray:
    assert evidence.logprobs is not None
    return np.array([-function(row) if len(row) else np.nan for row in evidence.logprobs], dtype=np.float64)
