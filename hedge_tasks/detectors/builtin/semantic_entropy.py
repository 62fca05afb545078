"""Semantic entropy: of the log-probability-weighted, of the summed and of the plain shares of the meanings."""

from __future__ import annotations

from hedge_tasks.detectors.distribution import ClusterIds, LogProbs, entropy, semantic_distribution
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


def semantic_entropy(cluster_ids: ClusterIds, mean_logprobs: LogProbs | None = None) -> float:
    r"""Semantic entropy (SE) of the sampled answers, in nats.

    .. math::
        \mathrm{SE}(s) = -\sum_j s_j \ln s_j

    with :math:`s` the `semantic_distribution` and :math:`0 \ln 0 = 0`. HEDGE paper, Eq. 2 and 3 (there over the
    clean answers); introduced by Farquhar et al. 2024.

    Args:
        cluster_ids: Cluster id of each (clean) answer, shape `(n,)`, `n >= 1`.
        mean_logprobs: Mean token log-probabilities, nats per token, shape `(n,)`; `None` weighs all answers
            equally.

    Returns:
        A number in :math:`[0, \ln k]` for `k` clusters; exactly 0.0 for a single cluster.

    Raises:
        ValueError: As `semantic_distribution`.

    Example:
        >>> round(semantic_entropy([0, 0, 1], [-0.1, -0.3, -0.2]), 5)
        0.63574
        >>> semantic_entropy([7, 7, 7], [-0.1, -2.0, -0.5])
        0.0
    """
    return entropy(semantic_distribution(cluster_ids, mean_logprobs))


def discrete_semantic_entropy(cluster_ids: ClusterIds) -> float:
    r"""Semantic entropy with every answer weighing the same: the entropy of the cluster counts, in nats.

    .. math::
        \mathrm{DSE} = -\sum_j \frac{n_j}{n} \ln \frac{n_j}{n}

    Farquhar et al. 2024 ("discrete semantic entropy"), for models that give no log-probabilities.

    Args:
        cluster_ids: Cluster id of each (clean) answer, shape `(n,)`, `n >= 1`.

    Returns:
        A number in :math:`[0, \ln k]` for `k` clusters.

    Raises:
        ValueError: If there is no answer.

    Example:
        >>> round(discrete_semantic_entropy([0, 0, 1, 2, 1]), 5)
        1.05492
    """
    return semantic_entropy(cluster_ids, None)


@register(
    "se",
    "Semantic entropy",
    short="SE",
    needs=("clean", "clusters"),
    unit="nats",
    source="Farquhar et al. 2024; HEDGE Eq. 3",
)
def se(evidence: Evidence) -> float:
    r"""Semantic entropy of the clean answers, weighted by their mean log-probabilities.

    .. math::
        -\sum_j s_j \ln s_j, \qquad s_j \propto \sum_{i: c_i = j} \exp(\ell_i)

    The weights are uniform where any sample has no log-probability. lm-polygraph's SemanticEntropy is another number:
    it does not normalise the shares, and averages over answers rather than over meanings. uqlm counts the baseline
    answer among the samples and reports one minus the entropy over :math:`\ln(n + 1)`; the entropy of the same shares
    is the same.

    Args:
        evidence: With clean answers and cluster ids.

    Example:
        >>> import numpy as np
        >>> answers = Evidence(("yes", "yes", "no"), 2, cluster_ids=(0, 0, 1), mean_logprobs=np.log([0.9, 0.6, 0.2]))
        >>> round(se(answers), 4), round(float(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25))), 4)
        (0.5623, 0.5623)
    """
    return semantic_entropy(evidence.clean_ids, evidence.mean_logprobs[evidence.clean] if evidence.weighted else None)


@register(
    "se_sum",
    "Semantic entropy, sequence probabilities",
    short="SE, sequence probabilities",
    needs=("clean", "clusters", "clean_logprobs", "clean_tokens"),
    unit="nats",
    source="Kuhn et al. 2023",
)
def se_sum(evidence: Evidence) -> float:
    r"""Semantic entropy of the clean answers, weighted by the probabilities of the whole answers.

    .. math::
        -\sum_j s_j \ln s_j, \qquad s_j \propto \sum_{i: c_i = j} \exp(T_i \ell_i)

    with :math:`T_i` the number of tokens. uqlm's with `length_normalize=False`; Kuhn's code averages
    :math:`-\ln s_j` over the meanings and does not normalise the shares.

    Args:
        evidence: With clean answers, cluster ids, log-probabilities and token counts.

    Example:
        >>> import numpy as np
        >>> answers = Evidence(
        ...     ("a", "a", "b c"), 2, (0, 0, 1), mean_logprobs=np.log([0.5, 0.5, 0.5]), n_tokens=np.array([1.0, 1, 2])
        ... )
        >>> round(se_sum(answers), 4)
        0.6365
    """
    return semantic_entropy(evidence.clean_ids, evidence.summed_logprobs[evidence.clean])


@register(
    "discrete_se",
    "Discrete semantic entropy",
    short="discrete SE",
    needs=("clean", "clusters"),
    unit="nats",
    source="Farquhar et al. 2024",
)
def discrete_se(evidence: Evidence) -> float:
    r"""Entropy of the cluster counts of the clean answers.

    .. math::
        -\sum_j \frac{n_j}{n} \ln \frac{n_j}{n}

    lm-polygraph's SemanticEntropy with `class_probability_estimation="frequency"` and `entropy_estimation="mean"`, on
    the same clusters.

    Args:
        evidence: With clean answers and cluster ids.

    Example:
        >>> round(discrete_se(Evidence(("a", "a", "b", "b", "c"), 4, (0, 0, 1, 1, 2))), 4)
        1.0397
    """
    return discrete_semantic_entropy(evidence.clean_ids)


@register(
    "discrete_se_noisy",
    "Discrete semantic entropy, noisy samples",
    short="discrete SE, noisy",
    needs=("noisy", "clusters"),
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
    "Discrete semantic entropy, clean and noisy samples",
    short="discrete SE, clean + noisy",
    needs=("clean", "noisy", "clusters"),
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
