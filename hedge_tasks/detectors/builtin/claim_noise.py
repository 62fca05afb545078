"""Effects of image noise on the support of each claim."""

from __future__ import annotations

import numpy as np

from hedge_tasks.claims.base import ClaimEvidence, FloatArray
from hedge_tasks.detectors.builtin.claim_support import entailed, entropy, mean_distribution, mean_entailment
from hedge_tasks.detectors.registry import register


@register(
    "claim_radflag_noisy",
    "RadFlag of claims, noisy draws",
    needs=("noisy_support",),
    short="RadFlag, noisy",
    level="claim",
)
def claim_radflag_noisy(evidence: ClaimEvidence) -> FloatArray:
    """`claim_radflag` on the noisy draws."""
    return 1.0 - entailed(evidence.noisy).mean(axis=1)


@register("claim_luq_noisy", "LUQ of claims, noisy draws", needs=("noisy_support",), short="LUQ, noisy", level="claim")
def claim_luq_noisy(evidence: ClaimEvidence) -> FloatArray:
    """`claim_luq` on the noisy draws."""
    return 1.0 - mean_entailment(evidence.noisy)


@register("claim_contrast", "Clean against noisy support", needs=("clean_support", "noisy_support"), level="claim")
def claim_contrast(evidence: ClaimEvidence, *, alpha: float = 1.0) -> FloatArray:
    r"""LUQ, less what the support loses under noise: a claim that rests on the image loses it, one of habit does not.

    .. math::
        1 - \bar{E}_\mathrm{clean} - \alpha \, (\bar{E}_\mathrm{clean} - \bar{E}_\mathrm{noisy})

    Args:
        evidence: With support by clean and noisy draws.
        alpha: Weight of the gap.

    Returns:
        Shape (K,), in [-α, 1 + α].

    Example:
        >>> from hedge_tasks.claims.base import Claim
        >>> clean, noisy = np.array([[[0.1, 0.1, 0.8]]]), np.array([[[0.3, 0.2, 0.5]]])
        >>> evidence = ClaimEvidence((Claim("a#0", "a", "No mass.", 0, 8, "sentence"),), "No mass.", clean, noisy)
        >>> claim_contrast(evidence).round(3).tolist()
        [-0.1]
    """
    clean, noisy = mean_entailment(evidence.clean), mean_entailment(evidence.noisy)
    return np.asarray(1.0 - clean - alpha * (clean - noisy))


@register(
    "claim_vase",
    "VASE of claims",
    needs=("clean_support", "noisy_support"),
    unit="nats",
    source="after Liao et al. 2025 (VASE, 2503.20504)",
    short="VASE",
    level="claim",
)
def claim_vase(evidence: ClaimEvidence, *, alpha: float = 1.0) -> FloatArray:
    r"""VASE's formula on entailed, neutral and contradicted in place of clusters.

    .. math::
        H\bigl(\mathrm{softmax}(p + \alpha (p - q))\bigr)

    with p and q the mean distributions of the clean and the noisy draws, as in `claim_entropy`.
    """
    clean, noisy = mean_distribution(evidence.clean), mean_distribution(evidence.noisy)
    amplified = clean + alpha * (clean - noisy)
    weights = np.exp(amplified - amplified.max(axis=-1, keepdims=True))
    return entropy(weights / weights.sum(axis=-1, keepdims=True))
