r"""Stopping before all draws are made: where the missing ones cannot change the verdict, or hardly ever would.

**Exact** (no epsilon), so that the promise of a policy is not touched: a verdict given early is the one that all draws
would have given. It holds for RadFlag, which counts, under clusterings that only ever merge as answers are added: once
an answer means what the baseline answer means, it does so for good, and acceptance can be known early. That an answer
will *stay* apart is known only where texts are compared with each other and nothing else (exact matching), so that
rejection can be known early there. Other detectors and clusterings wait for all draws.

**Predicted** (an epsilon above 0). Of k draws a agree with the baseline answer. With Jeffreys' prior on the chance of
agreeing, the agreeing ones among the n - k to come are beta-binomial,

.. math:: X \sim \mathrm{BetaBin}(n - k,\; a + 1/2,\; k - a + 1/2),

and the verdict is given where the probability of the other one is at most epsilon. No prior is right for all questions,
so nothing is promised by that probability. Instead the whole procedure, with its epsilon and its interim analyses, is
what a policy is calibrated on: `stopped_scores` makes a score of it, for which "at most t" is its
very verdict at threshold t. The promise of the policy then holds as it is, whatever the prediction is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering import ClusteringBackend
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.detectors import radflag_of_counts

COUNTING = "radflag"
"""The detector whose verdict can be known early."""

_PRIOR = 0.5
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


def predicted(n_agreeing: int, n_seen: int, n: int, threshold: float, epsilon: float) -> bool | None:
    """Whether an answer will be accepted, if the other verdict has at most a probability of epsilon.

    Args:
        n_agreeing, n_seen, n, threshold: as for `settled`.
        epsilon: in [0, 1/2).

    Returns:
        True or False where it is as good as certain, else None. With all draws seen it is never None.
    """
    verdict = int(_verdicts(n, n_seen, epsilon)[n_agreeing, needed(n, threshold)])
    return None if verdict == 0 else verdict > 0


def stopped_scores(
    agreeing: npt.ArrayLike, n: int, epsilon: float, at: Sequence[int]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """RadFlag as a procedure that stops early has it: a score is at most t exactly where its verdict at t is to accept.

    There is such a score, since a looser threshold accepts no later and rejects no earlier.

    Args:
        agreeing: clean answers in the baseline answer's cluster at each interim analysis, shape (documents, analyses).
        n: draws in all.
        epsilon: see `predicted`.
        at: numbers of draws at the interim analyses, ascending; the last one is n.

    Returns:
        The scores, multiples of 1/n, shape (documents,); and by document and number of agreeing answers needed how many
        draws the verdict takes, shape (documents, n + 1).

    Raises:
        ValueError: The analyses do not end with n, or there is not one column for each.
    """
    counts = np.asarray(agreeing, dtype=np.int64)
    if not at or at[-1] != n or counts.ndim != 2 or counts.shape[1] != len(at):
        raise ValueError(f"expected a column for each of the analyses {list(at)}, the last one at {n}")
    verdict = np.zeros((len(counts), n + 1), dtype=np.int8)
    draws = np.zeros_like(verdict, dtype=np.int64)
    for column, seen in enumerate(at):
        now = _verdicts(n, seen, epsilon)[counts[:, column], : n + 1]
        ends = (verdict == 0) & (now != 0)
        verdict[ends], draws[ends] = now[ends], seen
    # The most agreeing answers that may be asked for with the verdict still to accept.
    most = n - np.argmax(verdict[:, ::-1] > 0, axis=1)
    return radflag_of_counts(most, n), draws


@lru_cache(maxsize=256)
def _verdicts(n: int, seen: int, epsilon: float) -> npt.NDArray[np.int8]:
    """1 accept, -1 reject, 0 neither; by agreeing answers so far (0 to seen) and those needed (0 to n + 1)."""
    from scipy.stats import betabinom

    agreeing, required = np.arange(seen + 1)[:, None], np.arange(n + 2)[None, :]
    missing = required - agreeing
    if seen == n:
        return np.where(missing <= 0, 1, -1).astype(np.int8)
    # Both tails by themselves: one minus a small number has no digits left of it.
    law = betabinom(n - seen, agreeing + _PRIOR, seen - agreeing + _PRIOR)
    rejects, accepts = law.cdf(missing - 1), law.sf(missing - 1)
    certain = np.where(missing <= 0, 1, np.where(missing > n - seen, -1, 0))
    likely = np.where(rejects <= epsilon, 1, np.where(accepts <= epsilon, -1, 0)) if epsilon > 0 else 0
    return np.where(certain != 0, certain, likely).astype(np.int8)


def _merges_only(backend: ClusteringBackend) -> bool:
    if isinstance(backend, NliClustering):
        return not backend.veto
    return isinstance(backend, (ExactClustering, EmbeddingClustering))
