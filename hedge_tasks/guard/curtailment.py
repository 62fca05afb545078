"""Stopping before all draws are made, where the missing ones cannot change the verdict.

Exact, so that the promise of a policy is not touched: a verdict given early is the one that all draws would have given.
It holds for RadFlag, which counts, under clusterings that only ever merge as answers are added: once an answer means
what the baseline answer means, it does so for good, and acceptance can be known early. That an answer will *stay* apart
is known only where texts are compared with each other and nothing else (exact matching), so that rejection can be known
early there. Other detectors and clusterings wait for all draws.
"""

from __future__ import annotations

from hedge_tasks.clustering import ClusteringBackend
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.clustering.nli import NliClustering

COUNTING = "radflag"


def settled(
    detector: str, backend: ClusteringBackend, n_agreeing: int, n_seen: int, n: int, threshold: float
) -> bool | None:
    """Whether an answer will be accepted, if that is certain already.

    Args:
        detector: of the policy.
        backend: its clustering.
        n_agreeing: clean answers so far in the baseline answer's cluster.
        n_seen: clean answers so far.
        n: clean answers in all.
        threshold: a score of at most this is accepted.

    Returns:
        True or False where it is certain, else None.
    """
    if detector != COUNTING or not 0 <= n_agreeing <= n_seen <= n:
        return None
    # As RadFlag has it, so that no rounding makes a verdict of it that all draws would not give.
    if _merges_only(backend) and (n - n_agreeing) / n <= threshold:
        return True
    if isinstance(backend, ExactClustering) and (n_seen - n_agreeing) / n > threshold:
        return False
    return None


def _merges_only(backend: ClusteringBackend) -> bool:
    if isinstance(backend, NliClustering):
        return not backend.veto
    return isinstance(backend, (ExactClustering, EmbeddingClustering))
