"""RadFlag: the share of samples that disagree with the baseline answer."""

from __future__ import annotations

from collections.abc import Hashable

from hedge_tasks.detectors.builtin.semantic_entropy import discrete_semantic_entropy
from hedge_tasks.detectors.distribution import ClusterIds, as_ids
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


def radflag_of_counts(n_agreeing: int, n: int) -> float:
    """RadFlag of answers whose agreeing draws are counted already, of n draws in all, at least 1."""
    return (n - n_agreeing) / n


def radflag(baseline_id: Hashable, clean_ids: ClusterIds) -> float:
    r"""RadFlag: the share of clean answers that do *not* mean what the baseline answer means.

    .. math::
        \mathrm{RadFlag} = 1 - \frac{1}{n} \sum_{i=1}^{n} \mathbf{1}[c_i = c_0]

    HEDGE paper, Eq. 4 (after Zhang et al. 2024). The reference implementation returns the share of *agreeing* answers,
    i.e. one minus this; we follow the paper, so that higher means more likely hallucinated, as for all scores here.

    Args:
        baseline_id: Cluster id :math:`c_0` of the baseline answer.
        clean_ids: Cluster ids of the clean answers from the same clustering, shape `(n,)`, `n >= 1`.

    Returns:
        A number in `[0, 1]`.

    Raises:
        ValueError: If there is no clean answer.

    Example:
        >>> radflag(0, [0, 0, 1, 2])
        0.5
    """
    ids = as_ids(clean_ids, "clean_ids")
    if not ids:
        raise ValueError("clean_ids is empty: RadFlag needs at least one clean answer")
    (baseline,) = as_ids([baseline_id], "baseline_id")
    return radflag_of_counts(sum(i == baseline for i in ids), len(ids))


@register("radflag", "RadFlag", needs=("clean", "clusters"), source="Zhang et al. 2024; HEDGE Eq. 4")
def radflag_score(evidence: Evidence) -> float:
    r"""The share of clean answers that do not mean what the baseline answer means.

    .. math::
        1 - \frac{1}{n} \sum_{i=1}^{n} \mathbf{1}[c_i = c_0]

    hedge-bench returns one minus this.

    Args:
        evidence: With clean answers and cluster ids.

    Example:
        >>> radflag_score(Evidence(("yes", "yes", "no"), 2, cluster_ids=(0, 0, 1)))
        0.5
    """
    return radflag(evidence.baseline_id, evidence.clean_ids)


@register(
    "radflag_dse",
    "RadFlag, ties by discrete SE",
    short="RadFlag, ties by SE",
    needs=("clean", "clusters"),
    source="RadFlag (HEDGE Eq. 4) plus a share of discrete semantic entropy",
)
def radflag_dse(evidence: Evidence, *, weight: float = 0.25) -> float:
    r"""RadFlag, whose few distinct values are told apart by the entropy of the disagreeing answers.

    .. math::
        \mathrm{RadFlag} + w \, \mathrm{DSE}

    Args:
        evidence: With clean answers and cluster ids.
        weight: :math:`w`; a quarter by default.

    Example:
        >>> agreed = Evidence(("yes", "no", "no"), 2, cluster_ids=(0, 1, 1))
        >>> scattered = Evidence(("yes", "no", "maybe"), 2, cluster_ids=(0, 1, 2))
        >>> radflag_dse(agreed), round(radflag_dse(scattered), 4)
        (1.0, 1.1733)
    """
    return radflag_score(evidence) + weight * discrete_semantic_entropy(evidence.clean_ids)


@register(
    "radflag_noisy",
    "RadFlag, noisy samples",
    short="RadFlag, noisy",
    needs=("noisy", "clusters"),
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
    "RadFlag, clean and noisy samples",
    short="RadFlag, clean + noisy",
    needs=("clean", "noisy", "clusters"),
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
