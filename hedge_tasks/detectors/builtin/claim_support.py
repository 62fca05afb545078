"""How far the clean draws support each claim."""

from __future__ import annotations

import numpy as np

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL, ClaimEvidence, FloatArray, Matrix
from hedge_tasks.detectors.builtin.luq import entailed_share
from hedge_tasks.detectors.registry import register


@register(
    "claim_radflag",
    "RadFlag of claims",
    needs=("clean_support",),
    source="Zhang et al. 2024 (RadFlag, 2411.00299)",
    short="RadFlag",
    level="claim",
)
def claim_radflag(evidence: ClaimEvidence) -> FloatArray:
    r"""Share of the clean draws that do not entail the claim.

    .. math::
        \frac{1}{n} \sum_j \mathbf{1}[E_j \le \max(N_j, C_j)]

    RadFlag asks an LLM whether a report supports the sentence; here that is where entailment is likelier than neutral
    and than contradiction. Of an engine without contradictions: where it is above one half.

    Args:
        evidence: With support by clean draws, shape (K, n, 3).

    Returns:
        Shape (K,), in [0, 1]; NaN where the support of a claim is not known.

    Example:
        >>> from hedge_tasks.claims.base import Claim
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.1, 0.6, 0.3], [0.9, 0.1, 0.0]]])
        >>> evidence = ClaimEvidence((Claim("a#0", "a", "No mass.", 0, 8, "sentence"),), "No mass.", said)
        >>> claim_radflag(evidence).round(3).tolist(), claim_luq(evidence).round(3).tolist()
        ([0.667], [0.667])
    """
    return 1.0 - entailed(evidence.clean).mean(axis=1)


@register(
    "claim_luq",
    "LUQ of claims",
    needs=("clean_support",),
    source="Zhang et al. 2024 (LUQ, 2403.20279)",
    short="LUQ",
    level="claim",
)
def claim_luq(evidence: ClaimEvidence) -> FloatArray:
    r"""One minus the mean entailment of the claim by the clean draws.

    .. math::
        1 - \frac{1}{n} \sum_j E_j

    uqlm's `entailment` of LongTextUQ in its response-claim mode is one minus this.

    Args:
        evidence: With support by clean draws, shape (K, n, 3).

    Returns:
        Shape (K,), in [0, 1].
    """
    return 1.0 - mean_entailment(evidence.clean)


@register(
    "claim_luq_contrasted",
    "LUQ of claims, neutral set aside",
    needs=("clean_support", "contradictions"),
    source="Zhang et al. 2024 (LUQ, 2403.20279)",
    short="LUQ, contrasted",
    level="claim",
)
def claim_luq_contrasted(evidence: ClaimEvidence) -> FloatArray:
    r"""The same of entailment against contradiction, as in the paper.

    .. math::
        1 - \frac{1}{n} \sum_j \frac{E_j}{E_j + C_j}

    A draw with :math:`E = C = 0` counts as one half. uqlm's `contrasted_entailment` is one minus this.
    """
    return np.asarray(1.0 - entailed_share(evidence.clean.astype(np.float64)).mean(axis=1))


@register(
    "claim_contradiction",
    "Contradiction by the draws",
    needs=("clean_support", "contradictions"),
    source="after Manakul et al. 2023 (SelfCheckGPT, 2303.08896)",
    level="claim",
)
def claim_contradiction(evidence: ClaimEvidence) -> FloatArray:
    r"""Mean probability of contradiction by the clean draws.

    .. math::
        \frac{1}{n} \sum_j C_j

    uqlm's `noncontradiction` is one minus this. It is not SelfCheck-NLI, in two ways: SelfCheckGPT's own model has two
    outputs, so that it takes :math:`C / (E + C)`, which of a model with three outputs is `claim_luq_contrasted`; and it
    asks whether the *claim* contradicts the *draw* (claim as premise), where support here is of the claim by the draw.
    """
    return np.asarray(evidence.clean[..., CONTRADICTION].astype(np.float64).mean(axis=1))


@register(
    "claim_frequency",
    "Frequency scoring",
    needs=("clean_support", "contradictions"),
    source="Mohri & Hashimoto 2024 (2402.10978)",
    level="claim",
)
def claim_frequency(evidence: ClaimEvidence) -> FloatArray:
    r"""Share of the clean draws that contradict the claim less the share that entail it, in [-1, 1].

    .. math::
        \frac{1}{n} \sum_j \bigl(\mathbf{1}[C_j > \max(E_j, N_j)] - \mathbf{1}[E_j > \max(N_j, C_j)]\bigr)

    n times this is lm-polygraph's FrequencyScoringClaim, which counts.
    """
    return np.asarray((likeliest(evidence.clean, CONTRADICTION) - entailed(evidence.clean)).mean(axis=1))


@register("claim_entropy", "Entropy of support", needs=("clean_support",), unit="nats", level="claim")
def claim_entropy(evidence: ClaimEvidence) -> FloatArray:
    r"""Entropy of what the clean draws say of the claim: entailed, neutral or contradicted.

    .. math::
        -\sum_{r} \bar{p}_r \ln \bar{p}_r, \qquad \bar{p} = \frac{1}{n} \sum_j \frac{(E_j, N_j, C_j)}{E_j + N_j + C_j}

    It is high where draws disagree; a claim that all of them contradict has none, unlike with the other detectors.
    """
    return entropy(mean_distribution(evidence.clean))


def mean_entailment(support: Matrix) -> FloatArray:
    """Mean over the draws of the probability of entailment, shape (K,); NaN where the support is not known."""
    return np.asarray(support[..., ENTAILMENT].astype(np.float64).mean(axis=1))


def entailed(support: Matrix) -> FloatArray:
    """Where entailment is the likeliest, 1.0 or 0.0, shape (K, n); NaN where the support is not known."""
    return likeliest(support, ENTAILMENT)


def likeliest(support: Matrix, column: int) -> FloatArray:
    """Where one of the three is likelier than both others, 1.0 or 0.0, shape (K, n); NaN where it is not known."""
    others = [relation for relation in (CONTRADICTION, NEUTRAL, ENTAILMENT) if relation != column]
    is_likeliest = (support[..., column] > support[..., others].max(axis=-1)).astype(np.float64)
    is_likeliest[np.isnan(support).any(axis=-1)] = np.nan
    return is_likeliest


def mean_distribution(support: Matrix) -> FloatArray:
    """Mean over the draws of the normalised three, shape (K, 3)."""
    values = support.astype(np.float64)
    return np.asarray((values / values.sum(axis=-1, keepdims=True)).mean(axis=1))


def entropy(shares: FloatArray) -> FloatArray:
    """Entropy of the distributions in the last axis, in nats."""
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray(-(shares * logs).sum(axis=-1))
