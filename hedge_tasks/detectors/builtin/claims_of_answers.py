"""The claims of an answer together as a score of the whole answer: their mean, and the most suspicious one.

They are there where claims and their support are kept with a run: by `hedge claims RUN --keep`, or a task with
`claims`.

Example:
    >>> sorted(name for name in globals() if name.startswith("claims_"))[:2]
    ['claims_contradiction_max', 'claims_contradiction_mean']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import get, register

_AGGREGATES: dict[str, tuple[str, str, str, Callable[..., Any]]] = {
    "mean": ("mean", "Mean over the claims", r"\frac{1}{K} \sum_k x_k", np.mean),
    "max": ("highest", "The highest value of any claim", r"\max_k x_k", np.max),
}
"""Title, words and formula of what is made of the claims' numbers."""

_DETECTORS: dict[str, tuple[str, str, tuple[str, ...], str, dict[str, float]]] = {
    "radflag": (
        *("RadFlag", "the share of the clean draws that do not entail a claim", ()),
        *("Zhang et al. 2024 (RadFlag, 2411.00299)", {"mean": 0.75, "max": 1.0}),
    ),
    "luq": (
        *("LUQ", "one minus the mean entailment of a claim", ()),
        *("Zhang et al. 2024 (LUQ, 2403.20279)", {"mean": 0.775, "max": 0.9}),
    ),
    "contradiction": (
        *("Contradiction", "the mean probability that a draw contradicts a claim", ("contradictions",)),
        *("after Manakul et al. 2023 (SelfCheckGPT, 2303.08896)", {"mean": 0.375, "max": 0.6}),
    ),
}
"""Of a detector of claims: title, what it is in words, what it needs besides, source, the numbers of the example."""

_DOCSTRING = r"""{words} of `claim_{name}`: {meaning}.

.. math::
    {formula}

over the K claims whose support is known; None without any.

Args:
    evidence: With claims and their support by clean draws.

Example:
    >>> from hedge_tasks.claims import Claim, ClaimEvidence
    >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
    >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
    >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
    >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
    >>> round(claims_{name}_{how}(evidence), 4)
    {number}
"""


def _register(name: str, how: str) -> Callable[[Evidence], float | None]:
    title, meaning, further_needs, source, numbers = _DETECTORS[name]
    aggregate, words, formula, function = _AGGREGATES[how]

    def detector(evidence: Evidence) -> float | None:
        assert evidence.claims is not None
        scores = get(f"claim_{name}").claim_scores(evidence.claims)
        defined = np.empty(0) if scores is None else scores[~np.isnan(scores)]
        return float(function(defined)) if len(defined) else None

    detector.__name__ = detector.__qualname__ = f"claims_{name}_{how}"
    detector.__doc__ = _DOCSTRING.format(
        words=words, name=name, meaning=meaning, formula=formula, how=how, number=numbers[how]
    )
    title, needs = f"{title} of claims, {aggregate}", ("clean", "claims", *further_needs)
    return register(detector.__name__, title, needs=needs, source=source)(detector)


for _name in _DETECTORS:
    for _how in _AGGREGATES:
        globals()[f"claims_{_name}_{_how}"] = _register(_name, _how)
