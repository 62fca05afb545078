"""The claims of an answer together as a score of the whole answer: their mean, and the most suspicious one.

They are there where claims and their support are kept with a run: by `hedge claims RUN --keep`, or a task with
`claims`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedge_tasks.detectors.base import clean_draws
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import get, register


@register(
    "claims_radflag_mean",
    title="RadFlag of claims, mean",
    needs=("clean", "claims"),
    draws=clean_draws,
    source="Zhang et al. 2024 (RadFlag, 2411.00299)",
)
def claims_radflag_mean(evidence: Evidence) -> float | None:
    r"""Mean over the claims of `claim_radflag`: the share of the clean draws that do not entail a claim.

    .. math::
        \frac{1}{K} \sum_k x_k

    over the K claims whose support is known; None without any.

    Args:
        evidence: With claims and their support by clean draws.

    Example:
        >>> from hedge_tasks.claims import Claim, ClaimEvidence
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
        >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
        >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
        >>> round(claims_radflag_mean(evidence), 4)
        0.75
    """
    return _together(evidence, "claim_radflag", np.mean)


@register(
    "claims_radflag_max",
    title="RadFlag of claims, highest",
    needs=("clean", "claims"),
    draws=clean_draws,
    source="Zhang et al. 2024 (RadFlag, 2411.00299)",
)
def claims_radflag_max(evidence: Evidence) -> float | None:
    r"""The highest value of any claim of `claim_radflag`: the share of the clean draws that do not entail a claim.

    .. math::
        \max_k x_k

    over the K claims whose support is known; None without any.

    Args:
        evidence: With claims and their support by clean draws.

    Example:
        >>> from hedge_tasks.claims import Claim, ClaimEvidence
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
        >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
        >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
        >>> round(claims_radflag_max(evidence), 4)
        1.0
    """
    return _together(evidence, "claim_radflag", np.max)


@register(
    "claims_luq_mean",
    title="LUQ of claims, mean",
    needs=("clean", "claims"),
    draws=clean_draws,
    source="Zhang et al. 2024 (LUQ, 2403.20279)",
)
def claims_luq_mean(evidence: Evidence) -> float | None:
    r"""Mean over the claims of `claim_luq`: one minus the mean entailment of a claim.

    .. math::
        \frac{1}{K} \sum_k x_k

    over the K claims whose support is known; None without any.

    Args:
        evidence: With claims and their support by clean draws.

    Example:
        >>> from hedge_tasks.claims import Claim, ClaimEvidence
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
        >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
        >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
        >>> round(claims_luq_mean(evidence), 4)
        0.775
    """
    return _together(evidence, "claim_luq", np.mean)


@register(
    "claims_luq_max",
    title="LUQ of claims, highest",
    needs=("clean", "claims"),
    draws=clean_draws,
    source="Zhang et al. 2024 (LUQ, 2403.20279)",
)
def claims_luq_max(evidence: Evidence) -> float | None:
    r"""The highest value of any claim of `claim_luq`: one minus the mean entailment of a claim.

    .. math::
        \max_k x_k

    over the K claims whose support is known; None without any.

    Args:
        evidence: With claims and their support by clean draws.

    Example:
        >>> from hedge_tasks.claims import Claim, ClaimEvidence
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
        >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
        >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
        >>> round(claims_luq_max(evidence), 4)
        0.9
    """
    return _together(evidence, "claim_luq", np.max)


@register(
    "claims_contradiction_mean",
    title="SelfCheck-NLI of claims, mean",
    needs=("clean", "claims", "contradictions"),
    draws=clean_draws,
    source="Manakul et al. 2023 (SelfCheckGPT, 2303.08896)",
)
def claims_contradiction_mean(evidence: Evidence) -> float | None:
    r"""Mean over the claims of `claim_contradiction`: the mean probability that a draw contradicts a claim.

    .. math::
        \frac{1}{K} \sum_k x_k

    over the K claims whose support is known; None without any.

    Args:
        evidence: With claims and their support by clean draws.

    Example:
        >>> from hedge_tasks.claims import Claim, ClaimEvidence
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
        >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
        >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
        >>> round(claims_contradiction_mean(evidence), 4)
        0.375
    """
    return _together(evidence, "claim_contradiction", np.mean)


@register(
    "claims_contradiction_max",
    title="SelfCheck-NLI of claims, highest",
    needs=("clean", "claims", "contradictions"),
    draws=clean_draws,
    source="Manakul et al. 2023 (SelfCheckGPT, 2303.08896)",
)
def claims_contradiction_max(evidence: Evidence) -> float | None:
    r"""The highest value of any claim of `claim_contradiction`: the mean probability that a draw contradicts a claim.

    .. math::
        \max_k x_k

    over the K claims whose support is known; None without any.

    Args:
        evidence: With claims and their support by clean draws.

    Example:
        >>> from hedge_tasks.claims import Claim, ClaimEvidence
        >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
        >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
        >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
        >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
        >>> round(claims_contradiction_max(evidence), 4)
        0.6
    """
    return _together(evidence, "claim_contradiction", np.max)


def _together(evidence: Evidence, detector: str, function: Callable[..., Any]) -> float | None:
    assert evidence.claims is not None
    scores = get(detector).claim_scores(evidence.claims)
    known = np.empty(0) if scores is None else scores[~np.isnan(scores)]
    return float(function(known)) if len(known) else None
