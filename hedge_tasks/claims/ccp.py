"""Claim-conditioned probability: how sure the model was of what a claim says, whatever words it could have said it in.

Fadeeva et al. 2024, "Fact-Checking the Output of Large Language Models via Token-Level Uncertainty Quantification"
(2403.04696), as in lm-polygraph's `ClaimConditionedProbabilityClaim` with the context "fact_pref": of every token of
the claim its likeliest alternatives are read after the claim's words before it, and the engine of support says whether
they mean the same. No draw is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL, Claim, FloatArray, Matrix
from hedge_tasks.claims.entailment import SupportQuery
from hedge_tasks.claims.tokens import token_places
from hedge_tasks.data.answers import Answer

_FUNCTION_WORDS = (
    "a an the this that these those it its he him his she her they them their we our you your i my is are was were be",
    "been being am has have had do does did will would can could may might shall should of in on at by to from for",
    "with as and or but so than then there here which who whom whose what where when how into onto over under about",
)
FUNCTION_WORDS = frozenset(word for line in _FUNCTION_WORDS for word in line.split())
"""Words whose alternatives say nothing else. Unlike in NLTK's list, which lm-polygraph uses, words that deny are none
of them: "no" is what a finding hangs on."""

_INNER = re.compile(r"\w")


@dataclass(frozen=True)
class TokenChoice:
    """A token of a claim with the others in its place.

    Attributes:
        said: the claim's words up to the token, with it.
        others: the same with each other token.
        logprobs: of the token, then of the others, shape (1 + k,).
    """

    said: str
    others: tuple[str, ...]
    logprobs: FloatArray


def token_choices(answer: Answer, claims: Sequence[Claim]) -> list[list[TokenChoice]] | None:
    """The tokens of each claim that could have said something else.

    Left out are function words and tokens without a letter or a digit: lm-polygraph counts all of their alternatives as
    equal, which is no uncertainty.

    Returns:
        None where tokens or alternatives are not known.
    """
    places = token_places(answer)
    if places is None or answer.tokens is None or answer.alternatives is None:
        return None
    choices: list[list[TokenChoice]] = []
    for claim in claims:
        own = []
        for (start, end, logprob), others in zip(places, answer.alternatives, strict=True):
            token = answer.text[start:end]
            if not (start < claim.end and end > claim.start and end > start):
                continue
            if token.casefold() in FUNCTION_WORDS or not _INNER.search(token):
                continue
            before = answer.text[claim.start : start]
            different = [(before + text.strip(), p) for text, p in others if text.strip() != token]
            logprobs = np.array([logprob, *(p for _, p in different)])
            own.append(TokenChoice(before + token, tuple(text for text, _ in different), logprobs))
        choices.append(own)
    return choices


def questions(choice: TokenChoice) -> tuple[SupportQuery, SupportQuery]:
    """Return what an engine is asked of one token: the others given the token, and the token given the others."""
    return SupportQuery(choice.others, (choice.said,)), SupportQuery((choice.said,), choice.others)


def token_ccp(choice: TokenChoice, by_token: Matrix, reverse: Matrix) -> float:
    r"""Log-probability that the token means what it means, among those that mean the same or the contrary.

    .. math::
        \ln \frac{\sum_{k: x_k \equiv x} p_k}{\sum_{k: x_k \equiv x \text{ or } x_k \perp x} p_k}

    The relation of an alternative is the likelier of the two directions that is not neutral; of entailment one way and
    contradiction the other way it is neutral. The token itself means the same.

    Args:
        by_token: support of the others by the token, shape (k, 1, 3).
        reverse: support of the token by the others, shape (1, k, 3).

    Returns:
        At most 0; NaN where the engine does not tell.
    """
    if not choice.others:
        return 0.0
    forward, backward = by_token[:, 0, :], reverse[0, :, :]
    if np.isnan(forward).any() or np.isnan(backward).any():
        return float("nan")
    kinds = [_combined(a, b) for a, b in zip(forward.argmax(-1).tolist(), backward.argmax(-1).tolist(), strict=True)]
    is_same = np.array([True, *(kind == ENTAILMENT for kind in kinds)])
    counted = is_same | np.array([True, *(kind == CONTRADICTION for kind in kinds)])
    return float(np.logaddexp.reduce(choice.logprobs[is_same]) - np.logaddexp.reduce(choice.logprobs[counted]))


def claim_ccp(tokens: Sequence[float]) -> float:
    """The product over a claim's tokens, in [0, 1]; 1 for a claim without tokens that could say something else."""
    return float(np.exp(np.sum(tokens)))


def _combined(forward: int, backward: int) -> int:
    if {forward, backward} == {ENTAILMENT, CONTRADICTION}:
        return NEUTRAL
    return backward if forward == NEUTRAL else forward
