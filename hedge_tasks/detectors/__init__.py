"""Detectors: from the answers to one question to a number, the higher the more likely the answer is hallucinated.

    >>> from hedge_tasks.detectors import Evidence, get
    >>> get("discrete_se").score(Evidence(("yes", "yes", "no"), n_clean=2, cluster_ids=(0, 0, 1)))
    0.693...

All of them work on the same evidence, so that they are compared on the same answers; each says what it needs and how
many draws it costs. Another package adds its own under the entry-point group `hedge_tasks.detectors`: see `registry`.

The functions behind them take arrays:

    >>> from hedge_tasks.detectors import semantic_entropy
    >>> semantic_entropy([0, 0, 0])
    0.0
"""

from hedge_tasks.detectors.base import NEEDS, Detector
from hedge_tasks.detectors.builtin.radflag import radflag, radflag_of_counts
from hedge_tasks.detectors.builtin.semantic_entropy import discrete_semantic_entropy, semantic_entropy
from hedge_tasks.detectors.builtin.vase import vase
from hedge_tasks.detectors.evidence import Evidence, evidence_of, placed_cosines, relation_matrices
from hedge_tasks.detectors.registry import get, names, register

__all__ = [
    "Detector",
    "Evidence",
    "evidence_of",
    "relation_matrices",
    "placed_cosines",
    "register",
    "names",
    "get",
    "NEEDS",
    "semantic_entropy",
    "discrete_semantic_entropy",
    "radflag",
    "radflag_of_counts",
    "vase",
]
