"""Noisy samples without VASE's formula: in place of clean ones, together with them, and in difference to them."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.base import all_draws, noisy_draws
from hedge_tasks.detectors.builtin.radflag import radflag
from hedge_tasks.detectors.builtin.semantic_entropy import discrete_semantic_entropy
from hedge_tasks.detectors.distribution import entropy, semantic_distribution
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "radflag_noisy",
    title="RadFlag, noisy samples",
    needs=("noisy", "clusters"),
    draws=noisy_draws,
    source="RadFlag (HEDGE Eq. 4) on noisy samples",
)
def radflag_noisy(evidence: Evidence) -> float:
    r"""The share of noisy answers that do not mean what the baseline answer means.

    .. math::
        1 - \frac{1}{m} \sum_{i=1}^{m} \mathbf{1}[c'_i = c_0]

    Args:
        evidence: With noisy answers and cluster ids.

    Example:
        >>> radflag_noisy(Evidence(("a", "a", "a", "b"), 1, cluster_ids=(0, 0, 0, 1)))
        0.5
    """
    return radflag(evidence.baseline_id, evidence.noisy_ids)


@register(
    "radflag_pooled",
    title="RadFlag, clean and noisy samples",
    needs=("clean", "noisy", "clusters"),
    draws=all_draws,
    source="RadFlag (HEDGE Eq. 4) on all samples",
)
def radflag_pooled(evidence: Evidence) -> float:
    r"""The share of all samples, clean and noisy, that do not mean what the baseline answer means.

    .. math::
        1 - \frac{1}{n + m} \sum_{i=1}^{n + m} \mathbf{1}[c_i = c_0]

    Args:
        evidence: With clean and noisy answers and cluster ids.

    Example:
        >>> radflag_pooled(Evidence(("a", "a", "a", "b", "b"), 2, cluster_ids=(0, 0, 0, 1, 1)))
        0.5
    """
    return radflag(evidence.baseline_id, evidence.clean_ids + evidence.noisy_ids)


@register(
    "discrete_se_noisy",
    title="Discrete semantic entropy, noisy samples",
    needs=("noisy", "clusters"),
    draws=noisy_draws,
    unit="nats",
    source="Farquhar et al. 2024 on noisy samples",
)
def discrete_se_noisy(evidence: Evidence) -> float:
    r"""Entropy of the cluster counts of the noisy answers.

    .. math::
        -\sum_j \frac{m_j}{m} \ln \frac{m_j}{m}

    Args:
        evidence: With noisy answers and cluster ids.

    Example:
        >>> round(discrete_se_noisy(Evidence(("a", "a", "a", "b"), 1, cluster_ids=(0, 0, 0, 1))), 4)
        0.6931
    """
    return discrete_semantic_entropy(evidence.noisy_ids)


@register(
    "discrete_se_pooled",
    title="Discrete semantic entropy, clean and noisy samples",
    needs=("clean", "noisy", "clusters"),
    draws=all_draws,
    unit="nats",
    source="Farquhar et al. 2024 on all samples",
)
def discrete_se_pooled(evidence: Evidence) -> float:
    r"""Entropy of the cluster counts of all samples, clean and noisy.

    .. math::
        -\sum_j \frac{n_j + m_j}{n + m} \ln \frac{n_j + m_j}{n + m}

    What VASE's draws give without VASE.

    Args:
        evidence: With clean and noisy answers and cluster ids.

    Example:
        >>> round(discrete_se_pooled(Evidence(("a", "a", "a", "b", "b"), 2, cluster_ids=(0, 0, 0, 1, 1))), 4)
        0.6931
    """
    return discrete_semantic_entropy(evidence.clean_ids + evidence.noisy_ids)


@register(
    "clean_noisy_divergence",
    title="Divergence of clean and noisy samples",
    needs=("clean", "noisy", "clusters"),
    draws=all_draws,
    unit="nats",
    source="Jensen-Shannon divergence (Lin 1991) of clean and noisy meanings",
)
def clean_noisy_divergence(evidence: Evidence) -> float:
    r"""How much noise in the image changes what the model says: Jensen-Shannon divergence of the shares of meanings.

    .. math::
        H\bigl(\tfrac{1}{2} (u + u')\bigr) - \tfrac{1}{2} \bigl(H(u) + H(u')\bigr)

    with :math:`u, u'` the shares of the clusters among clean and noisy answers, every answer weighing the same.

    Args:
        evidence: With clean and noisy answers and cluster ids.

    Returns:
        A number in :math:`[0, \ln 2]`.

    Example:
        >>> round(clean_noisy_divergence(Evidence(("a", "a", "a", "b", "b"), 2, cluster_ids=(0, 0, 0, 1, 1))), 4)
        0.6931
    """
    support = sorted({*evidence.clean_ids, *evidence.noisy_ids})
    clean = semantic_distribution(evidence.clean_ids, support=support)
    noisy = semantic_distribution(evidence.noisy_ids, support=support)
    difference = entropy((clean + noisy) / 2) - (entropy(clean) + entropy(noisy)) / 2
    return max(0.0, difference) if not np.array_equal(clean, noisy) else 0.0
