"""The length of the answer: what every other detector should beat."""

from __future__ import annotations

from hedge_tasks.detectors.base import no_draws
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register


@register(
    "length",
    title="Length of the answer",
    needs=("baseline_tokens",),
    draws=no_draws,
    unit="tokens",
    source="Janiak et al. 2025 (arXiv:2508.08285): with ROUGE labels length rivals semantic entropy",
)
def length(evidence: Evidence) -> float:
    r"""Number of tokens of the baseline answer.

    .. math::
        T_0

    Where labels come from overlap with a reference, longer answers are wrong more often by construction, and a detector
    that only sees length looks good.

    Args:
        evidence: With the token count of the baseline answer.

    Example:
        >>> import numpy as np
        >>> length(Evidence(("a small effusion",), 0, n_tokens=np.array([4.0])))
        4.0
    """
    return float(evidence.n_tokens[0])
