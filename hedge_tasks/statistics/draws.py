"""Do draws come as often as their own log-probabilities say: the one test of sampling that costs no request.

A text drawn with probability p comes again among the n - 1 other draws of its prompt in (n - 1) p cases in the mean. So
the deviation of each draw has the mean 0 whatever the others are, and draws whose probability is not known may be left
out. A server that cuts, sharpens or mixes distributions, or that tells other log-probabilities, deviates.

Never "verified": a deviation may be too small for the number of documents.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from hedge_tasks.data.answers import Answer, log_probability
from hedge_tasks.numbers import count_of
from hedge_tasks.statistics.base import two_sided_p

ALPHA = 0.01
FEWEST_DOCUMENTS = 10
FEWEST_REPEATS = 10.0
"""Expected pairs of equal draws, below which their number is too skewed for a t-test."""
FEWEST_UNLIKE = 20.0
"""Expected documents with different draws, below which there are too few for one, unless half of all have them."""

EXACT, INEXACT = 0.001, 0.1
"""Nats a token by which the log-probabilities of the same tokens may differ: of an engine that gives the same numbers
whatever else is in the batch, and at most, in half precision."""

_MOST, _FEWEST_OVER = 1.25, 3
"""Sum of probabilities that no rounding makes of 1, and documents that have such a one."""

State = Literal["contradicted", "not contradicted", "not verifiable"]


@dataclass(frozen=True)
class DrawsVerdict:
    """Of the test of draws against their own log-probabilities.

    Attributes:
        state: the verdict.
        reason: why it is not verifiable, or what else contradicts; None otherwise.
        documents: that were tested.
        repeats: mean number of other draws with the text of a draw.
        expected: the same, as the log-probabilities have it.
        t: deviation in standard errors.
        p_value: of t, two-sided. Where the end token is not known, fewer repeats are of draws that begin with the text.
        two_sided: whether the log-probability of the end token is known.
    """

    state: State
    reason: str | None = None
    documents: int = 0
    repeats: float | None = None
    expected: float | None = None
    t: float | None = None
    p_value: float | None = None
    two_sided: bool = True


@dataclass(frozen=True)
class _Document:
    repeats: float
    expected: float
    variance: float
    """Of their difference, if the log-probabilities are true."""
    pairs: float
    """Expected pairs of equal draws."""
    differ: bool
    """Whether any two draws differ."""
    unlike: float
    """The probability that any two differ, by the texts whose probability is known."""
    begun: float
    """Mean number of other draws that begin with the text of a draw: without its end at least `expected`."""


def verdict_on(draws: Sequence[Sequence[Answer]], decoding: Mapping[str, Any], alpha: float = ALPHA) -> DrawsVerdict:
    """Test draws against their own log-probabilities.

    Args:
        draws: the clean draws of each document, of one prompt each.
        decoding: what was asked for, as a run has it under `sampled`; only pure sampling at temperature 1 is tested.
        alpha: level of the test.
    """
    with_logprobs = [[a for a in answers if a.mean_logprob is not None and a.n_tokens is not None] for answers in draws]
    if not any(with_logprobs):
        return DrawsVerdict("not verifiable", "there are no log-probabilities")
    if (reason := _impossible(with_logprobs)) is not None:
        return DrawsVerdict("contradicted", reason)
    if decoding.get("restricted"):
        return DrawsVerdict("not verifiable", "the answers were constrained, cut or contrasted, as was asked for")
    if decoding.get("asked") != "pure" or decoding.get("temperature") != 1:
        return DrawsVerdict("not verifiable", "the draws are not known to be pure samples at temperature 1")
    apart = _apart(draws)
    ended = [counted for answers in draws if (counted := _counted(answers, apart, with_end=True)) is not None]
    two_sided = len(ended) >= FEWEST_DOCUMENTS
    documents = ended if two_sided else [d for a in draws if (d := _counted(a, apart, with_end=False)) is not None]
    if len(documents) < FEWEST_DOCUMENTS:
        return DrawsVerdict(
            "not verifiable", f"only {count_of(len(documents), 'document')} with repeated draws and log-probabilities"
        )
    return _tested(documents, two_sided, alpha)


def _impossible(draws: Sequence[Sequence[Answer]]) -> str | None:
    """Why no sampling whatever gives these log-probabilities."""
    zeros = all(a.mean_logprob == 0 for answers in draws for a in answers)
    if zeros and any(len({a.text for a in answers}) > 1 for answers in draws):
        return "all log-probabilities are 0, although the draws differ"
    over = sum(_added_up(answers) > _MOST for answers in draws)
    return f"in {over} documents different draws add up to more than 1" if over >= _FEWEST_OVER else None


def _added_up(draws: Sequence[Answer]) -> float:
    """The sum of the probabilities of different draws, none of which begins with another one: at most 1."""
    shares: dict[str, float] = {}
    for answer in sorted(draws, key=lambda answer: len(answer.text)):
        if answer.text in shares or not any(answer.text.startswith(text) for text in shares):
            logp = log_probability(answer, with_end=False)
            shares[answer.text] = max(shares.get(answer.text, 0.0), 0.0 if logp is None else math.exp(logp))
    return sum(shares.values())


def _spelled(answer: Answer) -> Hashable:
    """Return all that is known of an answer's tokens but their log-probability.

    One that a stop text ended has no end token, and is another one than the same text that the model ended.
    """
    return answer.text, answer.n_tokens, answer.finish, answer.thought is None, answer.end_logprob is None


def _by_key(pair: tuple[Hashable, float]) -> tuple[str, float]:
    return repr(pair[0]), pair[1]


def _apart(draws: Sequence[Sequence[Answer]]) -> float:
    """Return the nats a token beyond which equal texts are of other tokens: more than an engine's numbers vary by."""
    steps = []
    for answers in draws:
        spelled = sorted(((_spelled(a), a.mean_logprob) for a in answers if a.mean_logprob is not None), key=_by_key)
        near = (abs(a - b) for (first, a), (second, b) in pairwise(spelled) if first == second)
        steps += [step for step in near if step <= INEXACT]
    return min(max(EXACT, 4 * float(np.median(steps))), INEXACT) if steps else EXACT


def _paths(draws: Sequence[Answer], apart: float) -> list[Hashable]:
    """A key for each draw: equal texts of other tokens are other draws, told apart by their log-probabilities."""
    values: dict[Hashable, list[float]] = defaultdict(list)
    for answer in draws:
        if answer.mean_logprob is not None:
            values[_spelled(answer)].append(answer.mean_logprob)
    starts = {
        key: [high for low, high in pairwise(sorted(logps)) if high - low > apart] for key, logps in values.items()
    }
    return [
        (spelled, bisect_right(starts[spelled], a.mean_logprob) if a.mean_logprob is not None else 0)
        for a in draws
        for spelled in [_spelled(a)]
    ]


def _of_few(documents: Sequence[_Document], *, two_sided: bool) -> tuple[float, str] | None:
    """Return the p-value of a count, and why a t-test says nothing, where repeats or differences are rare."""
    from scipy.special import pdtr, pdtrc

    pairs = sum(d.pairs for d in documents)
    if pairs < FEWEST_REPEATS:
        # Repeats of one document come together: documents with a repeat are counted, at most so many as pairs.
        some = sum(d.repeats > 0 for d in documents)
        return float(pdtrc(some - 1, pairs)) if some else 1.0, "answers hardly ever repeat"
    unlike, differ = sum(d.unlike for d in documents), sum(d.differ for d in documents)
    if unlike >= min(FEWEST_UNLIKE, len(documents) / 2):
        return None
    # Poisson's tails are wider than those of such a count.
    fewer = float(pdtr(differ, unlike))
    upper_tail = float(pdtrc(differ - 1, unlike)) if differ else 1.0
    p_value = min(2 * min(fewer, upper_tail), 1.0) if two_sided else fewer
    return p_value, "the model is nearly certain of every answer"


def _counted(draws: Sequence[Answer], apart: float, *, with_end: bool) -> _Document | None:
    keys = _paths(draws, apart)
    counts, n = Counter(keys), len(draws)
    usable = [
        (key, math.exp(logp))
        for key, answer in zip(keys, draws, strict=True)
        if (logp := log_probability(answer, with_end=with_end)) is not None
    ]
    if n < 2 or not usable:
        return None
    p = np.array([share for _, share in usable])
    # Of sums over pairs: power sums of the distribution are means over its draws (Hoeffding 1948).
    second, third = float(p.sum()) / n, float((p**2).sum()) / n
    pair = max(second - 1.5 * third + second**2 / 2, 0.0)
    single = max(third - second**2, 0.0) / 4
    variance = 2 * n * (n - 1) * pair + 4 * n * (n - 1) * (n - 2) * single
    repeats = sum(counts[key] - 1 for key, _ in usable) / n
    unlike = max(1 - sum(share**n for share in dict(usable).values()), 0.0)
    texts = [a.text for a in draws if log_probability(a, with_end=with_end) is not None]
    begun = sum(sum(draw.text.startswith(text) for draw in draws) - 1 for text in texts) / n
    pairs = n * (n - 1) * second / 2
    return _Document(repeats, (n - 1) * second, variance / n**2, pairs, len(counts) > 1, unlike, begun)


def _tested(documents: Sequence[_Document], two_sided: bool, alpha: float) -> DrawsVerdict:
    n = len(documents)
    repeats, expected = (float(np.mean([getattr(d, name) for d in documents])) for name in ("repeats", "expected"))
    settings: dict[str, Any] = {"documents": n, "repeats": repeats, "expected": expected, "two_sided": two_sided}
    if (few := _of_few(documents, two_sided=two_sided)) is not None:
        p_value, reason = few
        if p_value < alpha:
            return DrawsVerdict("contradicted", p_value=p_value, **settings)
        return DrawsVerdict("not verifiable", reason, **settings)
    # Without the end token p is that of all texts that begin so: too few have to be too few of these.
    upper_bound = not two_sided and repeats < expected
    deviations = np.array([(d.begun if upper_bound else d.repeats) - d.expected for d in documents])
    # Deviations that agree by chance, as where nothing repeats, say nothing of their error.
    variance = max(float(deviations.var(ddof=1)), float(np.mean([d.variance for d in documents])))
    if variance == 0:
        return DrawsVerdict("not verifiable", "the model is certain of every answer", **settings)
    stderr = math.sqrt(variance / n)
    t = float(deviations.mean()) / stderr
    if upper_bound:
        t = min(t, 0.0)
    p_value = two_sided_p(abs(t), n - 1)
    state: State = "contradicted" if p_value < alpha else "not contradicted"
    return DrawsVerdict(state, None, n, repeats, expected, t, p_value, two_sided=two_sided)
