"""The tokens of each claim."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedge_tasks.claims.base import Claim, FloatArray
from hedge_tasks.data.answers import Answer


def claim_logprobs(answer: Answer, claims: Sequence[Claim]) -> tuple[FloatArray, ...] | None:
    """Log-probabilities of the tokens of each claim of an answer, in nats.

    A token belongs to a claim where one of its characters does, white space aside.

    Returns:
        One array a claim; None where the tokens are not known, or their texts together are not the answer (but for
        white space around it), so that nobody can tell where they stand.

    Example:
        >>> answer = Answer("No mass.", tokens=((" No", -0.5), (" mass", -1.0), (".", -0.25)))
        >>> [one.tolist() for one in claim_logprobs(answer, [Claim("a#0", "a", "mass.", 3, 8, "given")])]
        [[-1.0, -0.25]]
    """
    if answer.tokens is None:
        return None
    joined = "".join(text for text, _ in answer.tokens)
    if joined.strip() != answer.text.strip():
        return None
    # Where the answer's text begins among the tokens, which may have white space before it.
    shift = (len(joined) - len(joined.lstrip())) - (len(answer.text) - len(answer.text.lstrip()))
    ends = np.cumsum([len(text) for text, _ in answer.tokens]) - shift
    logprobs = np.array([logprob for _, logprob in answer.tokens], dtype=np.float64)
    starts = ends - [len(text.lstrip()) for text, _ in answer.tokens]
    stops = ends - [len(text) - len(text.rstrip()) for text, _ in answer.tokens]
    return tuple(logprobs[(starts < c.end) & (stops > c.start) & (stops > starts)] for c in claims)
