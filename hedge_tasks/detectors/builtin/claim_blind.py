"""Blind baselines: scores of a claim that see neither the image nor a draw about it.

What they tell is where wrong claims stand and how they are worded. A detector that does not beat them shows nothing
about the image.
"""

from __future__ import annotations

import numpy as np

from hedge_tasks.claims.base import ClaimEvidence, FloatArray
from hedge_tasks.claims.blind import is_negated
from hedge_tasks.data.words import words
from hedge_tasks.detectors.builtin.claim_support import mean_entailment
from hedge_tasks.detectors.registry import register


@register("claim_position", "Position", needs=("claims",), level="claim", blind=True)
def claim_position(evidence: ClaimEvidence) -> FloatArray:
    """Number of the claim in its answer, from 0: later ones are more often wrong."""
    return np.arange(len(evidence.claims), dtype=np.float64)


@register("claim_length", "Length", needs=("claims",), unit="words", level="claim", blind=True)
def claim_length(evidence: ClaimEvidence) -> FloatArray:
    """Words of the claim."""
    return np.array([len(words(claim.text)) for claim in evidence.claims], dtype=np.float64)


@register("claim_affirmed", "Affirmation", needs=("claims",), level="claim", blind=True)
def claim_affirmed(evidence: ClaimEvidence) -> FloatArray:
    """0 of a claim that denies something ("No effusion"), 1 of another one.

    Example:
        >>> from hedge_tasks.claims.base import Claim
        >>> texts = ("No mass.", "A cyst.")
        >>> evidence = ClaimEvidence(tuple(Claim("a", "a", text, 0, 7, "sentence") for text in texts), "")
        >>> claim_affirmed(evidence).tolist(), claim_position(evidence).tolist(), claim_length(evidence).tolist()
        ([0.0, 1.0], [0.0, 1.0], [2.0, 2.0])
    """
    return np.array([not is_negated(claim.text) for claim in evidence.claims], dtype=np.float64)


@register("claim_rarity", "Rarity", needs=("rarity",), level="claim", blind=True)
def claim_rarity(evidence: ClaimEvidence) -> FloatArray:
    """Mean over the claim's words of the share of other images' answers that lack the word."""
    assert evidence.rarity is not None
    return evidence.rarity


@register("claim_elsewhere", "Another image's draws", needs=("elsewhere",), level="claim", blind=True)
def claim_elsewhere(evidence: ClaimEvidence) -> FloatArray:
    """`claim_luq` with the draws about another image: an AUROC of 0.5 unless wording alone tells wrong claims."""
    assert evidence.elsewhere is not None
    return 1.0 - mean_entailment(evidence.elsewhere)
