"""How many meanings the samples have."""

from __future__ import annotations

from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "n_clusters",
    "Number of meanings",
    short="number of clusters",
    needs=("clean", "clusters"),
    unit="meanings",
    source="Kuhn et al. 2023; Lin et al. 2024",
)
def n_clusters(evidence: Evidence) -> float:
    r"""Number of different meanings among the clean answers.

    .. math::
        |\{c_1, \ldots, c_n\}|

    By the clustering of the run. lm-polygraph's NumSemSets has a clustering of its own: components of the pairs that
    entail more than they contradict, in both directions.

    Args:
        evidence: With clean answers and cluster ids.

    Example:
        >>> n_clusters(Evidence(("a", "b", "b", "c"), 3, cluster_ids=(0, 1, 1, 2)))
        2.0
    """
    return float(len(set(evidence.clean_ids)))
