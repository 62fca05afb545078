"""VASE: the entropy of the meanings on the clean image, sharpened by what noise in the image changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable

import numpy as np

from hedge_tasks.detectors.distribution import (
    ClusterIds,
    FloatArray,
    LogProbs,
    as_ids,
    distinct,
    entropy,
    relative_weights,
    shares,
    softmax,
)
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


def vase(
    clean_ids: ClusterIds,
    noisy_ids: ClusterIds,
    clean_logprobs: LogProbs | None = None,
    noisy_logprobs: LogProbs | None = None,
    *,
    baseline_id: Hashable | None = None,
    alpha: float = 1.0,
) -> float:
    r"""Vision-amplified semantic entropy (VASE), in nats.

    .. math::
        \mathrm{VASE} = H\bigl(\operatorname{softmax}(s_\mathrm{clean}
        + \alpha (s_\mathrm{clean} - s_\mathrm{noisy}))\bigr), \qquad H(p) = -\sum_j p_j \ln p_j

    HEDGE paper, Eq. 5 (after Liao et al. 2025). Both distributions are laid out over *all* cluster ids of the joint
    clustering of baseline, clean and noisy answers, as the reference implementation does: a cluster that holds only the
    baseline answer has probability 0 in both and still takes part in the softmax. The reference adds `1e-10` inside
    the logarithm; we do not (a softmax is never 0 unless it underflows, and then :math:`0 \ln 0 = 0`), so that a single
    cluster gives exactly 0.0. The difference is at most about `k * 1e-10`.

    Args:
        clean_ids: Cluster ids of the clean answers, shape `(n,)`, `n >= 1`.
        noisy_ids: Cluster ids of the noisy answers from the same clustering, shape `(m,)`, `m >= 1`; `m` may
            differ from `n`.
        clean_logprobs: Mean token log-probabilities of the clean answers, nats per token, shape `(n,)`; `None` =
            equal weights.
        noisy_logprobs: The same for the noisy answers, shape `(m,)`.
        baseline_id: Cluster id of the baseline answer. Give it to get the reference's number; `None` leaves the
            baseline out of the support.
        alpha: Strength of the clean-noisy contrast, dimensionless and finite; 1 in the papers.

    Returns:
        A number in :math:`[0, \ln k]` for `k` ids in the joint clustering; exactly 0.0 for a single one.

    Raises:
        ValueError: If clean or noisy answers are missing, lengths differ, a log-probability is `nan` or `+inf`, all
            of a condition's are `-inf`, or `alpha` is not finite.

    Example:
        >>> round(vase([0, 0, 1], [1, 1, 2], baseline_id=0), 5)
        0.83197
        >>> vase([0, 0], [0, 0], baseline_id=0)
        0.0
    """
    return entropy(softmax(_contrast(clean_ids, noisy_ids, clean_logprobs, noisy_logprobs, baseline_id, alpha)))


def linear_vase(
    clean_ids: ClusterIds,
    noisy_ids: ClusterIds,
    clean_logprobs: LogProbs | None = None,
    noisy_logprobs: LogProbs | None = None,
    *,
    alpha: float = 1.0,
) -> float:
    r"""VASE without its outer softmax, in nats: the contrasted shares are themselves made a distribution.

    .. math::
        H(p), \qquad p_j \propto \max\bigl(0,\, s_{\mathrm{clean}, j}
        + \alpha (s_{\mathrm{clean}, j} - s_{\mathrm{noisy}, j})\bigr)

    The softmax of `vase` flattens the shares, whatever the contrast: with :math:`\alpha = 0` it is not semantic
    entropy. This one is.

    Args:
        clean_ids, noisy_ids, clean_logprobs, noisy_logprobs, alpha: As for `vase`.

    Returns:
        A number in :math:`[0, \ln k]` for `k` ids in the joint clustering.

    Raises:
        ValueError: As `vase`.

    Example:
        >>> round(linear_vase([0, 0, 1], [1, 1, 2]), 5), round(linear_vase([0, 0, 1], [1, 1, 2], alpha=0.0), 5)
        (0.0, 0.63651)
    """
    left = np.maximum(0.0, _contrast(clean_ids, noisy_ids, clean_logprobs, noisy_logprobs, None, alpha))
    # Before the maximum they sum to 1, so that something is left.
    return entropy(left / math.fsum(left))


def _contrast(
    clean_ids: ClusterIds,
    noisy_ids: ClusterIds,
    clean_logprobs: LogProbs | None,
    noisy_logprobs: LogProbs | None,
    baseline_id: Hashable | None,
    alpha: float,
) -> FloatArray:
    """Clean shares plus alpha times their lead over the noisy ones, over all ids of the joint clustering."""
    clean, noisy = as_ids(clean_ids, "clean_ids"), as_ids(noisy_ids, "noisy_ids")
    for name, ids, condition in (("clean_ids", clean, "clean"), ("noisy_ids", noisy, "noisy")):
        if not ids:
            raise ValueError(f"{name} is empty: VASE needs at least one {condition} answer")
    if not math.isfinite(alpha):
        raise ValueError(f"alpha must be a finite number, got {alpha!r}")
    clean_weights = relative_weights(clean_logprobs, len(clean), "clean_logprobs")
    noisy_weights = relative_weights(noisy_logprobs, len(noisy), "noisy_logprobs")
    baseline = [] if baseline_id is None else as_ids([baseline_id], "baseline_id")
    position = {value: i for i, value in enumerate(distinct(itertools.chain(baseline, clean, noisy)))}
    s_clean, s_noisy = shares(clean, clean_weights, position), shares(noisy, noisy_weights, position)
    with np.errstate(over="ignore"):  # of a huge alpha
        return s_clean + alpha * (s_clean - s_noisy)


@register("vase", "VASE", needs=("clean", "noisy", "clusters"), unit="nats", source="Liao et al. 2025; HEDGE Eq. 5")
def vase_score(evidence: Evidence, *, alpha: float = 1.0) -> float:
    r"""Vision-amplified semantic entropy.

    .. math::
        H\bigl(\operatorname{softmax}(s_\mathrm{clean} + \alpha (s_\mathrm{clean} - s_\mathrm{noisy}))\bigr)

    Of n clean and m noisy samples it costs n + m draws: to be compared with what else these draws could give.

    Args:
        evidence: With clean and noisy answers and cluster ids.
        alpha: Strength of the contrast; 1 in the papers.

    Example:
        >>> round(vase_score(Evidence(("a", "a", "b", "b", "c"), 2, cluster_ids=(0, 0, 1, 1, 2))), 4)
        0.9528
    """
    clean, noisy = _logprobs(evidence)
    return vase(evidence.clean_ids, evidence.noisy_ids, clean, noisy, baseline_id=evidence.baseline_id, alpha=alpha)


@register(
    "vase_linear",
    "VASE without the softmax",
    needs=("clean", "noisy", "clusters"),
    unit="nats",
    source="Liao et al. 2025, without the outer softmax",
)
def vase_linear(evidence: Evidence, *, alpha: float = 1.0) -> float:
    r"""The plain contrast of clean and noisy shares, without VASE's outer softmax; see `linear_vase`.

    .. math::
        H(p), \qquad p_j \propto \max\bigl(0,\, s_{\mathrm{clean}, j}
        + \alpha (s_{\mathrm{clean}, j} - s_{\mathrm{noisy}, j})\bigr)

    Args:
        evidence: With clean and noisy answers and cluster ids.
        alpha: Strength of the contrast; with 0 this is semantic entropy.

    Example:
        >>> round(vase_linear(Evidence(("a", "a", "b", "b", "c"), 2, cluster_ids=(0, 0, 1, 1, 2))), 4)
        0.6365
    """
    return linear_vase(evidence.clean_ids, evidence.noisy_ids, *_logprobs(evidence), alpha=alpha)


@register(
    "vase_no_contrast",
    "VASE without the contrast (α = 0)",
    short="VASE, α = 0",
    needs=("clean", "noisy", "clusters"),
    unit="nats",
    source="Liao et al. 2025 with α = 0",
)
def vase_no_contrast(evidence: Evidence) -> float:
    r"""VASE without its contrast: how much of its difference to SE is the softmax alone.

    .. math::
        H\bigl(\operatorname{softmax}(s_\mathrm{clean})\bigr)

    over all meanings of the joint clustering, as in VASE.

    Args:
        evidence: With clean and noisy answers and cluster ids.

    Example:
        >>> round(vase_no_contrast(Evidence(("a", "a", "a", "b", "c"), 2, cluster_ids=(0, 0, 0, 1, 2))), 4)
        0.9753
    """
    return vase_score(evidence, alpha=0.0)


def _logprobs(evidence: Evidence) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
    if not evidence.weighted:
        return None, None
    return evidence.mean_logprobs[evidence.clean], evidence.mean_logprobs[evidence.noisy]
