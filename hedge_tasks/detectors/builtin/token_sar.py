"""TokenSAR: a token counts by how much the answer would lose without it."""

from __future__ import annotations

from hedge_tasks.detectors.evidence import Evidence, Relevances
from hedge_tasks.detectors.registry import register


def weighted_nll(tokens: Relevances) -> float:
    r"""Negative log-probability of an answer, its tokens weighted by their relevance.

    .. math::
        -\sum_t \tilde R_t \ln p(y_t \mid y_{<t}, x), \qquad \tilde R_t = \frac{R_t}{\sum_u R_u}

    Where no token has any relevance all count alike (lm-polygraph has NaN there). An answer of no tokens is certain.

    Args:
        tokens: log-probability and relevance of each.

    Example:
        >>> weighted_nll([(-1.0, 0.25), (-3.0, 0.75)]), weighted_nll([(-1.0, 0.0), (-3.0, 0.0)])
        (2.5, 2.0)
    """
    if not tokens:
        return 0.0
    total = sum(relevance for _, relevance in tokens)
    if total == 0:
        return -sum(p for p, _ in tokens) / len(tokens)
    return -sum(p * relevance for p, relevance in tokens) / total


@register(
    "token_sar",
    "TokenSAR",
    needs=("baseline_relevance",),
    unit="nats",
    source="Duan et al. 2024 (arXiv:2307.01379)",
    experimental=True,
)
def token_sar(evidence: Evidence) -> float | None:
    r"""TokenSAR of the baseline answer; see `weighted_nll`.

    .. math::
        -\sum_t \tilde R_t \ln p(y_t \mid y_{<t}, x)

    Relevances are those of `hedge_tasks.detectors.relevance`, from an embedding; the authors and lm-polygraph take a
    cross-encoder. None for an answer of no tokens.

    Args:
        evidence: With relevances of the baseline answer's tokens.

    Example:
        >>> token_sar(Evidence(("a cyst",), 0, relevances=(((-1.0, 0.25), (-3.0, 0.75)),)))
        2.5
    """
    assert evidence.relevances is not None
    tokens = evidence.relevances[0]
    return weighted_nll(tokens) if tokens else None
