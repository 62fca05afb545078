"""The test by which the engine tests tell whether two samplers answer alike: it holds its level, and it can fail."""

from __future__ import annotations

import random

import pytest
from engines.same_answers import p_value

WEIGHTS = {"upper left": 5, "upper right": 3, "left": 1, "no": 1}


def answers(dice: random.Random, *, power: float = 1.0, questions: int = 12, n: int = 8) -> list[list[str]]:
    weights = [weight**power for weight in WEIGHTS.values()]
    return [dice.choices(list(WEIGHTS), weights, k=n) for _ in range(questions)]


@pytest.mark.slow
def test_answers_of_one_sampler_are_seldom_called_different() -> None:
    dice = random.Random(0)
    found = [p_value(answers(dice), answers(dice), permutations=499) for _ in range(60)]
    assert 0 <= sum(p <= 0.1 for p in found) <= 14  # 6 expected; 15 or more in 1 of 1,800
    assert 0.35 < sum(found) / len(found) < 0.65


def test_greedy_and_cooler_samplers_are_called_different() -> None:
    dice = random.Random(1)
    sampled = answers(dice, questions=20, n=10)
    for power in (50, 3):  # temperatures 0.02 and 0.33
        assert p_value(sampled, answers(dice, power=power, questions=20, n=10), permutations=1999) <= 0.001


def test_p_values_by_hand() -> None:
    # Two questions, one answer each way: as different as they can be, and so is every permutation.
    assert p_value([["a"], ["a"]], [["b"], ["b"]]) == 1
    # 3 + 3 answers: of the 20 ways to deal them, 2 are as different as these.
    assert abs(p_value([["a", "a", "a"]], [["b", "b", "b"]]) - 2 / 20) < 0.01
