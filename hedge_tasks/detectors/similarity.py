"""Similarities of the answers to one question, as matrices in [0, 1] that several detectors share.

Ask for them with `evidence.shared(entailment)`, so that each is computed once a question.
"""

from __future__ import annotations

import numpy as np

from hedge_tasks.claims.base import ENTAILMENT
from hedge_tasks.data.words import words
from hedge_tasks.detectors.distribution import FloatArray
from hedge_tasks.detectors.evidence import Evidence

# Linear algebra on the same graph gives other last digits for another order of the answers.
_DIGITS = 12


def entailment(evidence: Evidence) -> FloatArray:
    """Mean probability of entailment in both directions, of all pairs of answers, shape (k, k). Needs relations."""
    matrix = relations_of(evidence)[..., ENTAILMENT]
    return (matrix + matrix.T) / 2


def cosine(evidence: Evidence) -> FloatArray:
    """Cosine similarities of all pairs of answers, those below zero as zero, shape (k, k). Needs cosines.

    Graphs have no edges of negative weight, and between embeddings of sentences they are noise.
    """
    assert evidence.cosines is not None
    return np.maximum(0.0, evidence.cosines.astype(np.float64))


def clean_entailment(evidence: Evidence) -> FloatArray:
    """Return `entailment` of the clean answers, shape (n, n)."""
    return evidence.shared(entailment)[evidence.clean, evidence.clean]


def clean_cosine(evidence: Evidence) -> FloatArray:
    """Return `cosine` of the clean answers, shape (n, n)."""
    return evidence.shared(cosine)[evidence.clean, evidence.clean]


def jaccard(evidence: Evidence) -> FloatArray:
    """Shared words over all words, of all pairs of clean answers, shape (n, n); of answers without any word 1.

    Words are runs of letters and digits. Lin et al. 2024 and lm-polygraph split at spaces instead, so that there "Yes."
    and "yes" have nothing in common, and two empty answers neither.
    """
    lists = [words(text) for text in evidence.texts[evidence.clean]]
    index: dict[str, int] = {}
    columns = [[index.setdefault(word, len(index)) for word in own] for own in lists]
    has = np.zeros((len(lists), len(index)))
    for row, present in zip(has, columns, strict=True):
        row[present] = 1.0
    sizes = has.sum(axis=1)
    shared = has @ has.T
    either = sizes[:, None] + sizes - shared
    return np.divide(shared, either, out=np.ones_like(shared), where=either > 0)


def relations_of(evidence: Evidence) -> FloatArray:
    """Probabilities of contradiction, neutral and entailment, shape (k, k, 3)."""
    assert evidence.relations is not None
    return evidence.relations.astype(np.float64)


def settled(value: float) -> float:
    """Return the number without the digits that depend on the order of the answers, so that ties stay ties."""
    return round(float(value), _DIGITS)
