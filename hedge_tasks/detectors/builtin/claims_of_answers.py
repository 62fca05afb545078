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

_AGGREGATES: dict[str, tuple[str, Callable[..., Any]]] = {
    "mean": (r"\frac{1}{K} \sum_k x_k", np.mean),
    "max": (r"\max_k x_k", np.max),
}
"""Formula and function of what is made of the claims' numbers."""

_EXAMPLES = {"radflag": (0.75, 1.0), "luq": (0.775, 0.9), "contradiction": (0.375, 0.6)}
"""By detector of claims, the numbers of the example: mean and maximum."""

_DOCSTRING = r"""The {how} of `claim_{name}` over the claims of the answer whose support is known; None without any.

.. math::
    {formula}

Args:
    evidence: With claims and their support by clean draws.

Example:
    >>> from hedge_tasks.claims.base import Claim, ClaimEvidence
    >>> claims = (Claim("a#0", "a", "No mass.", 0, 8, "sentence"), Claim("a#1", "a", "A cyst.", 9, 16, "sentence"))
    >>> said = np.array([[[0.1, 0.2, 0.7], [0.2, 0.8, 0.0]], [[0.4, 0.6, 0.0], [0.8, 0.0, 0.2]]])
    >>> known = ClaimEvidence(claims, "No mass. A cyst.", said)
    >>> evidence = Evidence(("No mass. A cyst.", "No mass.", "A mass."), 2, claims=known)
    >>> round(claims_{name}_{how}(evidence), 4)
    {number}
"""


def _register(name: str, how: str, number: float) -> Callable[[Evidence], float | None]:
    formula, function = _AGGREGATES[how]
    of_claims = get(f"claim_{name}")

    def detector(evidence: Evidence) -> float | None:
        assert evidence.claims is not None
        scores = of_claims.claim_scores(evidence.claims)
        defined = np.empty(0) if scores is None else scores[~np.isnan(scores)]
        return float(function(defined)) if len(defined) else None

    detector.__name__ = detector.__qualname__ = f"claims_{name}_{how}"
    detector.__doc__ = _DOCSTRING.format(name=name, how=how, formula=formula, number=number)
    needs = {"clean", "claims", *(of_claims.needs & {"contradictions"})}
    return register(detector.__name__, f"{of_claims.title}, {how}", needs=needs, source=of_claims.source)(detector)


for _name, _numbers in _EXAMPLES.items():
    for _how, _number in zip(_AGGREGATES, _numbers, strict=True):
        globals()[f"claims_{_name}_{_how}"] = _register(_name, _how, _number)
