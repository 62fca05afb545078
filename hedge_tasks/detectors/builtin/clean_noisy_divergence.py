"""How much noise in the image changes what the model says: what VASE contrasts, as a divergence."""

from __future__ import annotations

import numpy as np

from hedge_tasks.detectors.distribution import entropy, semantic_distribution
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "clean_noisy_divergence",
    "Divergence of clean and noisy samples",
    short="clean–noisy divergence",
    needs=("clean", "noisy", "clusters"),
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
