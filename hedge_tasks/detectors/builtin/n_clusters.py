"""How many meanings the samples have."""

from __future__ import annotations

from hedge_tasks.detectors.distribution import ClusterIds, as_ids
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


def number_of_clusters(clean_ids: ClusterIds) -> float:
    r"""Number of different meanings among the clean answers.

    .. math::
        |\{c_1, \ldots, c_n\}|

    "Number of semantic sets" in Kuhn et al. 2023 and Lin et al. 2024.

    Args:
        clean_ids: Cluster ids of the clean answers, shape `(n,)`, `n >= 1`.

    Returns:
        A whole number in `[1, n]`, as a float like all scores.

    Raises:
        ValueError: If there is no clean answer.

    Example:
        >>> number_of_clusters([0, 0, 3, -1])
        3.0
    """
    ids = as_ids(clean_ids, "clean_ids")
    if not ids:
        raise ValueError("clean_ids is empty: there must be at least one clean answer")
    return float(len(set(ids)))


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
    return number_of_clusters(evidence.clean_ids)
