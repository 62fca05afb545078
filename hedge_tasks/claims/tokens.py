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
    places = token_places(answer)
    if places is None:
        return None
    return tuple(
        np.array([p for start, end, p in places if start < claim.end and end > claim.start and end > start])
        for claim in claims
    )


def token_places(answer: Answer) -> list[tuple[int, int, float]] | None:
    """Where each token stands in the answer, white space aside, and its log-probability.

    Returns:
        Start, end and nats of every token; start and end are equal for one of nothing but white space. None where the
        tokens are not known or are another text.
    """
    if answer.tokens is None:
        return None
    joined = "".join(text for text, _ in answer.tokens)
    if joined.strip() != answer.text.strip():
        return None
    # Where the answer's text begins among the tokens, which may have white space before it.
    shift = (len(joined) - len(joined.lstrip())) - (len(answer.text) - len(answer.text.lstrip()))
    places, at = [], -shift
    for text, logprob in answer.tokens:
        inner = text.strip()
        start = at + text.index(inner) if inner else at
        places.append((start, start + len(inner), logprob))
        at += len(text)
    return places
