"""Draws against their own log-probabilities: by hand, and on small categorical models."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from hedge_tasks.data.answers import Answer
from hedge_tasks.statistics.draws import DrawsVerdict, verdict_on

Shares = npt.NDArray[np.float64]
PURE = {"asked": "pure", "temperature": 1.0}


def answer(i: int, logp: float, *, end: bool = True) -> Answer:
    """A text of two tokens; the end token has a fifth of its log-probability, or is certain and not known."""
    return Answer(f"text {i}", (0.4 if end else 0.5) * logp, 2, "stop", end_logprob=0.2 * logp if end else None)


def run_of(
    chance: np.random.Generator,
    served: Callable[[Shares], Shares] = lambda p: p,
    told: Callable[[float], float] = lambda logp: logp,
    *,
    documents: int = 60,
    n: int = 10,
    end: bool = True,
    concentration: float = 0.3,
) -> DrawsVerdict:
    draws = []
    for _ in range(documents):
        p = np.maximum(chance.dirichlet(np.full(12, concentration)), 1e-12)
        p /= p.sum()
        drawn = chance.choice(len(p), n, p=served(p))
        draws.append([answer(i, told(min(math.log(p[i]), 0.0)), end=end) for i in drawn])
    verdict = verdict_on(draws, PURE)
    return verdict


def top_2(p: Shares) -> Shares:
    kept = np.where(p >= np.sort(p)[-2], p, 0)
    return np.asarray(kept / kept.sum())


def cold(p: Shares) -> Shares:
    return np.asarray(p ** (1 / 0.7) / (p ** (1 / 0.7)).sum())


def test_by_hand() -> None:
    half = math.log(0.5)
    draws = [[answer(i, half) for i in (0, 0, 1)]] * 10
    found = verdict_on(draws, PURE)
    # "text 0" comes once more for two of three draws; each is expected (3 - 1) * .5 = 1 times.
    assert found.repeats == pytest.approx(2 / 3)
    assert found.expected == pytest.approx(1)
    # Two texts of 1/2: p(x) is constant, so that pairs of draws are independent, 1 or 0 with 1/2; 6 ordered pairs of
    # variance 1/4, each counted twice, over n squared.
    stderr = math.sqrt(2 * 6 * 0.25 / 9 / 10)
    assert found.t == pytest.approx((2 / 3 - 1) / stderr)


def test_the_mean_deviation_is_zero_and_its_variance_the_stated_one() -> None:
    p, n = np.array([0.6, 0.3, 0.1]), 3
    total = squares = stated = 0.0
    for drawn in np.ndindex(3, 3, 3):
        weight = float(np.prod(p[list(drawn)]))
        deviation = sum(drawn.count(i) - 1 - (n - 1) * p[i] for i in drawn) / n
        total, squares = total + weight * deviation, squares + weight * deviation**2
    second, third = (p**2).sum(), (p**3).sum()
    pair, single = second - 1.5 * third + second**2 / 2, (third - second**2) / 4
    stated = (2 * n * (n - 1) * pair + 4 * n * (n - 1) * (n - 2) * single) / n**2
    assert total == pytest.approx(0)
    assert squares == pytest.approx(stated)


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "end"), [(10, True), (30, False)])
def test_false_alarms_stay_within_the_level(documents: int, end: bool) -> None:
    chance = np.random.default_rng(7)
    alarms = sum(run_of(chance, documents=documents, end=end).state == "contradicted" for _ in range(150))
    assert alarms <= 6  # of 150 at .01, more have a probability of .001


@pytest.mark.slow
def test_a_text_of_other_tokens_is_another_draw() -> None:
    """Twelve ways to write four texts, as a tokenizer has them; a noisy engine tells other digits each time."""
    chance = np.random.default_rng(3)
    draws, alarms = [], 0
    for _ in range(40):
        draws = []
        for _ in range(80):
            p = chance.dirichlet(np.full(12, 0.5))
            drawn = chance.choice(12, 10, p=p)
            told = [math.log(max(p[i], 1e-9)) + 0.02 * chance.uniform(-1, 1) for i in drawn]
            draws.append([replace(answer(i, min(v, 0.0)), text=f"{i % 4}") for i, v in zip(drawn, told, strict=True)])
        alarms += verdict_on(draws, PURE).state == "contradicted"
    assert alarms <= 3


def _nearly_sure(chance: np.random.Generator, n: int = 10) -> list[Answer]:
    """Draws of one question that has one other answer, of at most a twentieth."""
    other = chance.uniform(0, 0.05)
    shares = (1 - other, other)
    return [answer(int(i), math.log(shares[i])) for i in chance.choice(2, size=n, p=shares)]


@pytest.mark.slow
def test_a_nearly_sure_model_is_no_alarm() -> None:
    """Where hardly any draw differs, their number is too skewed for a t-test, which alarmed in 6 % of such runs."""
    chance = np.random.default_rng(3)
    runs = [[_nearly_sure(chance) for _ in range(12)] for _ in range(400)]
    alarms = sum(verdict_on(of, PURE).state == "contradicted" for of in runs)
    assert alarms <= 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("served", "told"),
    [
        (top_2, lambda logp: logp),
        (cold, lambda logp: logp),
        (lambda p: p, lambda logp: logp / math.log(10)),
    ],
    ids=["top_k 2", "T 0.7", "base 10"],
)
def test_deviations_are_seen(served: Callable[[Shares], Shares], told: Callable[[float], float]) -> None:
    chance = np.random.default_rng(11)
    seen = sum(
        run_of(chance, served, told, documents=120, concentration=1.0).state == "contradicted" for _ in range(20)
    )
    assert seen >= 18


def test_without_the_end_token_too_few_repeats_contradict_as_well() -> None:
    chance = np.random.default_rng(5)
    found = run_of(chance, told=lambda logp: logp / math.log(10), documents=120, concentration=1.0, end=False)
    assert found.state == "contradicted"
    higher = run_of(chance, told=lambda logp: logp * 0.8, documents=400, concentration=1.0, end=False)
    assert higher.state == "contradicted"
    assert run_of(chance, top_2, documents=120, concentration=1.0, end=False).state == "contradicted"


def test_probabilities_of_different_draws_add_up_to_one_at_most() -> None:
    """Speculative decoding leaves 0 behind the first token: each of three ways on is told to be as likely as it."""
    draws = [[Answer(f"left {word}", -0.25, 2) for word in ("lung", "lobe", "side")]] * 3
    assert verdict_on(draws, {}).state == "contradicted"
    assert verdict_on(draws[:2], {}).state == "not verifiable"


def test_what_cannot_be_verified_says_why() -> None:
    sets = [[answer(0, -0.5), answer(1, -1.0)]] * 20
    assert verdict_on([[Answer("a"), Answer("b")]] * 20, PURE).reason == "there are no log-probabilities"
    assert verdict_on(sets[:9], PURE).reason == "only 9 documents with repeated draws and log-probabilities"
    for decoding in ({}, {"asked": "model", "temperature": 1.0}, {"asked": "pure", "temperature": 0.7}):
        assert verdict_on(sets, decoding).state == "not verifiable"
