"""How likely the test of draws would have seen a deviation, from the draws of the run at hand.

The draws of a document and their probabilities are read as a tree of words: what was drawn has the probability that its
log-probability tells, and what is left over is in other answers, each no likelier than the rarest that was drawn. Every
deviation acts on the choices of that tree as it acts on those of tokens. Under it the number of repeats of a document
has a known mean and variance (a sum over pairs of draws, Hoeffding 1948), and so has the test's statistic.

An estimate: words are not tokens, and what was never drawn is guessed. benchmarks/draws_power.py compares it with the
power on a model whose distributions are known.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.data.answers import Answer, log_probability
from hedge_tasks.statistics.base import FloatArray, IntArray, quantile_of

MOST_DOCUMENTS = 100
"""Documents that the power is estimated from, evenly spread; its moments need no more."""

_MOST_OTHERS = 200
_END = "\0"

Choose = Callable[[FloatArray], FloatArray]
"""Probabilities of the next word -> those under a deviation."""


@dataclass(frozen=True)
class Told:
    """Distribution that the draws of a document come from under a deviation.

    Attributes:
        text: number of the text of each outcome, shape `(m,)`; two outcomes may have one text.
        q: probability of each.
        p: the probability that it tells.
    """

    text: IntArray
    q: FloatArray
    p: FloatArray


def at_temperature(temperature: float) -> Choose:
    return lambda p: p ** (1 / temperature)


def among_likeliest(top_k: int) -> Choose:
    def choose(p: FloatArray) -> FloatArray:
        if len(p) <= top_k:
            return p
        # Of equals the first ones, as many as there is room for.
        likeliest = np.argsort(-p, kind="stable")[:top_k]
        chosen = np.zeros_like(p)
        chosen[likeliest] = p[likeliest]
        return chosen

    return choose


def in_nucleus(top_p: float) -> Choose:
    def choose(p: FloatArray) -> FloatArray:
        order = np.argsort(-p, kind="stable")
        before = np.cumsum(p[order]) - p[order]
        chosen = np.zeros_like(p)
        nucleus = order[before < top_p]
        chosen[nucleus] = p[nucleus]
        return chosen

    return choose


def _both(first: Choose, then: Choose) -> Choose:
    def choose(p: FloatArray) -> FloatArray:
        cut = first(p)
        return then(cut / cut.sum())

    return choose


CHOICES: Mapping[str, Choose] = {
    "T 0.7": at_temperature(0.7),
    "T 1.3": at_temperature(1.3),
    "top_k 2": among_likeliest(2),
    "top_k 40 with top_p .95": _both(among_likeliest(40), in_nucleus(0.95)),
    "top_p .8": in_nucleus(0.8),
}
"""Deviations of the sampling, by name."""

BASE_10, MIXTURE = "base 10", "two models"

DEVIATIONS = (*CHOICES, BASE_10, MIXTURE)
"""That the power is told against. `two models`: half of the replies come from one that prefers the same answers in the
opposite order."""


def power_of(draws: Sequence[Sequence[Answer]], *, two_sided: bool, alpha: float, n_documents: int) -> dict[str, float]:
    """Probability that the test contradicts, by deviation.

    Args:
        draws: clean draws of each document that was tested.
        two_sided: whether the log-probabilities of end tokens are known.
        alpha: level of the test.
        n_documents: that were tested.

    Returns:
        By name, as in `DEVIATIONS`; empty where the draws tell nothing.
    """
    step = max(1, -(-len(draws) // MOST_DOCUMENTS))
    by_deviation: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for answers in draws[::step]:
        outcomes = _outcomes(answers, two_sided)
        if outcomes is None:
            continue
        n, texts, p = outcomes
        for name, deviation in deviated(texts, p).items():
            by_deviation[name].append(moments(deviation, n))
    return {name: _power(np.array(values), two_sided, alpha, n_documents) for name, values in by_deviation.items()}


def deviated(texts: Sequence[tuple[str, ...]], p: FloatArray) -> dict[str, Told]:
    """The outcomes of a document under every deviation.

    Args:
        texts: words of each of them, with what tells equal ones apart.
        p: probability of each, shape `(m,)`; they add up to 1.
    """
    number = np.arange(len(p))
    by_name = {name: Told(number, of_tree(texts, p, choose), p) for name, choose in CHOICES.items()}
    by_name[BASE_10] = Told(number, p, p ** (1 / math.log(10)))
    order = np.argsort(-p, kind="stable")
    cooler = np.empty_like(p)
    cooler[order] = p[order[::-1]]
    half = np.concatenate([p, cooler]) / 2
    by_name[MIXTURE] = Told(np.concatenate([number, number]), half, np.concatenate([p, cooler]))
    return by_name


def of_tree(texts: Sequence[tuple[str, ...]], p: FloatArray, choose: Choose) -> FloatArray:
    """The probabilities of texts whose next words are chosen otherwise, shape `(m,)`."""
    q = np.zeros_like(p)

    def descend(members: Sequence[int], depth: int, mass: float) -> None:
        if len(members) == 1:
            q[members[0]] = mass
            return
        branches: dict[str, list[int]] = defaultdict(list)
        for i in members:
            branches[texts[i][depth]].append(i)
        if len(branches) == 1:
            descend(members, depth + 1, mass)
            return
        shares = np.array([p[branch].sum() for branch in branches.values()])
        chosen = choose(shares / shares.sum())
        for share, branch in zip(chosen / chosen.sum(), branches.values(), strict=True):
            if share > 0:
                descend(branch, depth + 1, mass * float(share))

    descend(range(len(p)), 0, 1.0)
    return q


def moments(deviation: Told, n: int) -> tuple[float, float, float]:
    """Mean and variance of a document's deviation, and the variance that the test would state.

    Args:
        told: what may be drawn.
        n: draws.
    """
    q, p = deviation.q, deviation.p
    text_probability = np.bincount(deviation.text, q)[deviation.text]  # probability of each one's text
    mean_p = float(q @ p)
    mean = float(q @ text_probability) - mean_p
    # Of h(x, y) = [x is y] - (p(x) + p(y)) / 2 over pairs of draws, and of its mean over y.
    square = float(q @ text_probability) - 2 * float(q @ (p * text_probability)) + (float(q @ p**2) + mean_p**2) / 2
    pair, single = square - mean**2, float(q @ (text_probability - (p + mean_p) / 2 - mean) ** 2)
    second, third = mean_p, float(q @ p**2)
    stated = (max(second - 1.5 * third + second**2 / 2, 0.0), max(third - second**2, 0.0) / 4)
    return (n - 1) * mean, _variance(max(pair, 0.0), single, n), _variance(*stated, n)


def _variance(pair: float, single: float, n: int) -> float:
    return (2 * n * (n - 1) * pair + 4 * n * (n - 1) * (n - 2) * single) / n**2


def _power(values: FloatArray, two_sided: bool, alpha: float, n: int) -> float:
    """Of the t-test over documents, its statistic normal with the spread that the deviation has.

    Args:
        found: moments of each document, shape `(d, 3)`.
        n: documents of the test.
    """
    from scipy.special import ndtr

    mean = float(values[:, 0].mean())
    spread = float(values[:, 1].mean() + values[:, 0].var())
    scale = max(spread, float(values[:, 2].mean()))
    if scale <= 0:
        return 0.0
    critical = quantile_of(1 - alpha, n - 1) * math.sqrt(scale / n)
    stderr = math.sqrt(max(spread, 1e-300) / n)
    above = float(ndtr((mean - critical) / stderr))
    return min(above + (float(ndtr((-mean - critical) / stderr)) if two_sided else 0.0), 1.0)


def _outcomes(draws: Sequence[Answer], two_sided: bool) -> tuple[int, list[tuple[str, ...]], FloatArray] | None:
    """Number of draws, the words of what may be drawn, and its probabilities; None where none is known."""
    by_text: dict[tuple[str, ...], list[float]] = defaultdict(list)
    counts = Counter[tuple[str, ...]]()
    for answer in draws:
        logp = log_probability(answer, with_end=two_sided)
        if logp is not None:
            # Equal texts of other tokens are other draws.
            words = (*answer.text.split(), _END, f"{answer.text} {answer.n_tokens} {answer.finish}")
            by_text[words].append(math.exp(logp))
            counts[words] += 1
    n = counts.total()
    if n < 2:
        return None
    seen = np.array([float(np.mean(logprobs)) for logprobs in by_text.values()])
    left = 1 - float(seen.sum())
    if left <= 0:
        return n, list(by_text), seen / seen.sum()
    m = min(max(math.ceil(left / float(seen.min())), 1), _MOST_OTHERS) if seen.min() > 0 else _MOST_OTHERS
    others = [(_END, str(i)) for i in range(m)]
    return n, [*by_text, *others], np.concatenate([seen, np.full(m, left / m)])
