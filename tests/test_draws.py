"""Draws against their own log-probabilities: by hand, and on small categorical models."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from at_border import at_border
from scipy.stats import poisson
from scipy.stats import t as student

from hedge_tasks.data.answers import Answer
from hedge_tasks.statistics.draws import verdict_on

PURE = {"asked": "pure", "temperature": 1.0}


def answer(i: int, logp: float, *, end: bool = True) -> Answer:
    """A text of two tokens; the end token has a fifth of its log-probability, or is certain and not known."""
    return Answer(f"text {i}", (0.4 if end else 0.5) * logp, 2, "stop", end_logprob=0.2 * logp if end else None)


@pytest.mark.parametrize(("concentration", "end"), [(0.3, True), (3.0, True), (0.3, False)])
def test_the_test_is_that_of_its_formulas(concentration: float, end: bool) -> None:
    """Power sums of a distribution are means over its draws; one in seven draws is cut off, of unknown probability."""
    chance, n, rows, draws = np.random.default_rng(2), 5, [], []
    for _ in range(40):
        p = chance.dirichlet(np.full(6, concentration)).clip(1e-9)
        drawn, cut = chance.choice(6, n, p=p / p.sum()), chance.random(n) < 1 / 7
        logps = np.minimum(np.log(p), 0.0)
        draws.append([
            replace(answer(i, logps[i], end=end), n_tokens=None if no else 2) for i, no in zip(drawn, cut, strict=True)
        ])  # fmt: skip
        known = np.exp(logps[drawn[~cut]])
        if len(known):
            second, third = known.sum() / n, (known**2).sum() / n
            pair = max(second - 1.5 * third + second**2 / 2, 0)
            single = max((third - second**2) / 4, 0)
            same = sum(((drawn == i) & ~cut).sum() - 1 for i in drawn[~cut]) / n
            variance = (2 * n * (n - 1) * pair + 4 * n * (n - 1) * (n - 2) * single) / n**2
            rows.append((same, (n - 1) * second, variance))
    found = verdict_on(draws, PURE)
    repeats, expected, variances = np.array(rows).T
    variance = max((repeats - expected).var(ddof=1), variances.mean())
    t = (repeats - expected).mean() / math.sqrt(variance / len(rows))
    assert (found.documents, found.two_sided) == (len(rows), end)
    assert (found.repeats, found.expected) == pytest.approx((repeats.mean(), expected.mean()))
    if end or t > 0:
        assert (found.t, found.p_value) == pytest.approx((t, 2 * student.sf(abs(t), len(rows) - 1)))
    assert found.p_value is not None
    at_border(lambda alpha: verdict_on(draws, PURE, alpha).state == "contradicted", found.p_value, "001")


# --- borders ----------------------------------------------------------------------------------------------------------


def shown(*shares: float, logs: tuple[float, ...] = (), same: bool = False) -> list[Answer]:
    """Draws of such probabilities, of different texts unless they are the same."""
    return [answer(0 if same else i, v) for i, v in enumerate(logs or map(math.log, shares))]


def test_few_documents_repeats_or_differences_are_no_ground_for_a_t_test() -> None:
    def reason(*sets: list[Answer]) -> str:
        return str(verdict_on(sets, PURE).reason)

    at_border(lambda n: "only" in reason(*[shown(0.9, 0.1)] * int(n)), 10, "100")
    at_border(lambda n: "hardly ever repeat" in reason(*[shown(0.5, 0.5)] * int(n)), 20, "100")  # half a pair each
    some, sure = [shown(0.8, 0.2)] * 20, shown(0.8, 0.8, same=True)  # differ with .32 and .36
    at_border(lambda n: "nearly certain" in reason(*some, *[sure] * int(n)), 38, "100")
    half = [shown(0.5, 0.5)] * 20
    assert "nearly certain" in reason(*half, *[sure] * 19), "16.8 of 39 differ"
    assert reason(*half, *half[:18]) == "None", "half of all are enough"


@pytest.mark.parametrize("differ", [1, 6, 25])
def test_counts_that_are_too_few_for_a_t_test_are_poissons(differ: int) -> None:
    rare = [shown(0.001, 0.001, same=True)] * differ + [shown(0.001, 0.002)] * 20
    found, pairs = verdict_on(rare, PURE), 0.001 * differ + 0.0015 * 20
    p = poisson.sf(differ - 1, pairs)
    assert found.state == ("contradicted" if p < 0.01 else "not verifiable")
    assert found.p_value == (pytest.approx(p) if p < 0.01 else None)
    certain = [shown(0.9, 0.1)] * differ + [shown(0.9, 0.9, same=True)] * 60
    unlike = (1 - 0.81 - 0.01) * differ + (1 - 0.81) * 60
    p = 2 * min(poisson.cdf(differ, unlike), poisson.sf(differ - 1, unlike))
    found = verdict_on(certain, PURE)
    assert found.p_value == (pytest.approx(p) if p < 0.01 else None)


def test_equal_texts_are_told_apart_by_more_than_an_engines_numbers_vary() -> None:
    def same(step: float, usual: float) -> bool:
        """Whether two draws of one text, so many nats a token apart, are one where others usually differ by some."""
        others = [shown(logs=(-1.0, -1.0 + 2.5 * usual), same=True)] * 30
        last = shown(logs=(-1.0, -1.0 + 2.5 * step), same=True)
        repeats = [verdict_on([*others, rest], PURE).repeats for rest in (last, shown(0.3, 0.3))]
        return repeats[0] != repeats[1]

    for usual, apart in ((0.0, 0.001), (0.0002, 0.001), (0.01, 0.04), (0.03, 0.1)):
        assert [same(apart * 0.99, usual), same(apart * 1.01, usual)] == [True, False], usual


def test_what_no_sampling_gives_contradicts_at_once() -> None:
    def over(*shares: float, times: int = 3) -> bool:
        draws = [Answer(f"{i}", math.log(share), 1) for i, share in enumerate(shares)]
        return verdict_on([draws] * times, {}).state == "contradicted"

    assert [over(0.62, 0.62), over(0.64, 0.64)] == [False, True]
    assert [over(0.64, 0.64, times=times) for times in (2, 3)] == [False, True]
    zero = [Answer(text, 0.0, 1) for text in "ab"]
    assert "draws differ" in str(verdict_on([zero], {}).reason)
    assert verdict_on([zero[:1] * 2], {}).reason != verdict_on([zero], {}).reason
    pure = [[answer(0, -0.5), answer(1, -1.0)]] * 20
    assert verdict_on(pure, {**PURE, "restricted": True}).reason != verdict_on(pure, PURE).reason


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "end"), [(10, True), (30, False)])
def test_false_alarms_stay_within_the_level(documents: int, end: bool) -> None:
    chance, alarms = np.random.default_rng(7), 0
    for _ in range(150):
        shares = chance.dirichlet(np.full(12, 0.3), documents).clip(1e-12)
        draws = [
            [answer(i, min(math.log(p[i]), 0.0), end=end) for i in chance.choice(12, 10, p=p / p.sum())] for p in shares
        ]
        alarms += verdict_on(draws, PURE).state == "contradicted"
    assert alarms <= 6  # of 150 at .01, more have a probability of .001


def test_probabilities_of_different_draws_add_up_to_one_at_most() -> None:
    """Speculative decoding leaves 0 behind the first token: each of three ways on is told to be as likely as it."""
    draws = [[Answer(f"left {word}", -0.25, 2) for word in ("lung", "lobe", "side")]] * 3
    assert verdict_on(draws, {}).state == "contradicted"
    assert verdict_on(draws[:2], {}).state == "not verifiable"
