"""Stopping before all draws are made, where the missing ones cannot change the verdict.

The promise of a policy is not touched: a verdict given early is the one that all draws would have given. It holds for
RadFlag, which counts, under clusterings that only ever merge as answers are added: once an answer means what the
baseline answer means, it does so for good, and acceptance can be known early. That an answer will *stay* apart is known
only where texts are compared with each other and nothing else (exact matching), so that rejection can be known early
there. Other detectors and clusterings wait for all draws.
"""

from __future__ import annotations

from hedge_tasks.clustering import ClusteringBackend
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.detectors import radflag_of_counts

COUNTING = "radflag"
"""The detector whose verdict can be known early."""

_FIRST_WAVE = 0.4
"""Share of the draws that is made before the first interim analysis; what is settled then saves the rest."""


def interim_analyses(n: int) -> tuple[int, ...]:
    """Return the numbers of draws after which there may be a verdict: 4, 6, 8 and 10 of 10."""
    return tuple(sorted({*range(max(1, round(_FIRST_WAVE * n)), n, max(1, n // 5)), n}))


def needed(n: int, threshold: float) -> int:
    """Fewest agreeing draws of n at which RadFlag is at most the threshold; n + 1 where none are enough."""
    return next((a for a in range(n + 1) if radflag_of_counts(a, n) <= threshold), n + 1)


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
    if _merges_only(backend) and radflag_of_counts(n_agreeing, n) <= threshold:
        return True
    if isinstance(backend, ExactClustering) and (n_seen - n_agreeing) / n > threshold:
        return False
    return None


def _merges_only(backend: ClusteringBackend) -> bool:
    if isinstance(backend, NliClustering):
        return not backend.veto
    return isinstance(backend, (ExactClustering, EmbeddingClustering))
