"""Claims as nodes of a bipartite graph: claims of all answers on one side, the answers on the other."""

from __future__ import annotations

import numpy as np

from hedge_tasks.claims.base import ClaimEvidence, FloatArray
from hedge_tasks.detectors.registry import register

_SOURCE = "Jiang et al. 2024 (2410.20783)"


@register("claim_degree", "Degree of claims", needs=("claim_graph",), source=_SOURCE, level="claim")
def claim_degree(evidence: ClaimEvidence, *, threshold: float = 0.5) -> FloatArray:
    r"""One minus the mean weight of the claim's edges to the answers, the baseline among them.

    .. math::
        1 - \frac{1}{n + 1} \sum_j E_j \, \mathbf{1}[E_j \ge t]

    uqlm's degree centrality of LongTextGraph is one minus this.

    Args:
        evidence: With the graph, shape (U, 1 + n).
        threshold: t, least entailment of an edge.

    Returns:
        Shape (K,), in [0, 1].

    Example:
        >>> from hedge_tasks.claims.base import Claim
        >>> graph = np.array([[1.0, 0.8, 0.3], [0.0, 0.9, 0.9]])
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"),)
        >>> claim_degree(ClaimEvidence(claims, "No mass.", graph=graph, graph_rows=(0,))).round(3).tolist()
        [0.4]
    """
    weights = _graph(evidence)[list(evidence.graph_rows)]
    return np.asarray(1.0 - np.where(weights >= threshold, weights, 0.0).mean(axis=1))


@register("claim_closeness", "Closeness of claims", needs=("claim_graph",), source=_SOURCE, level="claim")
def claim_closeness(evidence: ClaimEvidence, *, threshold: float = 0.5) -> FloatArray:
    r"""One minus the closeness of the claim to all other claims and answers, along edges of any weight.

    .. math::
        1 - \min\Bigl(1, \frac{m + 2 (U - 1)}{\sum_v d(v)} \cdot \frac{r}{U + m - 1}\Bigr)

    with m = n + 1 answers, U claims, d the distances to the r nodes that can be reached; 1 for a claim without edges.
    uqlm's closeness centrality of LongTextGraph (networkx' of bipartite graphs, at most 1) is one minus this.

    Args:
        evidence: With the graph, shape (U, 1 + n).
        threshold: t, least entailment of an edge.

    Returns:
        Shape (K,), in [0, 1].
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    edges = _graph(evidence) >= threshold
    u, m = edges.shape
    links = np.zeros((u + m, u + m))
    links[:u, u:] = edges
    distances = dijkstra(
        csr_array(links), directed=False, unweighted=True, indices=np.array(evidence.graph_rows, dtype=np.int32)
    )
    reached = np.isfinite(distances)
    totals = np.where(reached, distances, 0.0).sum(axis=1)
    share = (reached.sum(axis=1) - 1) / (u + m - 1)
    closeness = np.divide(m + 2 * (u - 1), totals, out=np.zeros_like(totals), where=totals > 0) * share
    return np.asarray(1.0 - np.minimum(1.0, closeness))


def _graph(evidence: ClaimEvidence) -> FloatArray:
    assert evidence.graph is not None
    return evidence.graph.astype(np.float64)
