"""Self-certainty: how far the model's next-token distributions are from knowing nothing."""

from __future__ import annotations

from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "self_certainty",
    "Lack of self-certainty",
    needs=("token_logits",),
    unit="nats",
    source="Kang et al. 2025 (arXiv:2502.18581), equation 8",
    experimental=True,
)
def self_certainty(evidence: Evidence) -> float:
    r"""Negative mean divergence of the uniform distribution from the model's, over the tokens of the baseline answer.

    .. math::
        -\frac{1}{T} \sum_t \Bigl(-\ln V - \frac{1}{V} \sum_v \ln p_t(v)\Bigr)

    over the V tokens that are possible at all. lm-polygraph's SelfCertainty is the same number.

    Args:
        evidence: With logits of the baseline answer's tokens.

    Example:
        >>> import numpy as np
        >>> from hedge_tasks.data.inside import LOGITS
        >>> logits = np.zeros((2, len(LOGITS)))
        >>> logits[:, LOGITS.index("uniform_divergence")] = (1.0, 2.0)
        >>> self_certainty(Evidence(("a cyst",), 0, inside={"logits": logits}))
        -1.5
    """
    return -float(evidence.inside_column("logits", "uniform_divergence").mean())
