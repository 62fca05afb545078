"""How far p(option) by letters is from the truth, with one order of the options and with two.

    python benchmarks/letter_orders.py [--questions 2000]

A model believes q in its options (uniform over the simplex) and likes letters: the logit of each letter has an addition
of its own, normal with a standard deviation, the same for all questions of a model; there are 20 models. Its letters
are told exactly, as by a chat server that keeps it to them. Error: total variation from q, in the mean over questions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from hedge_tasks.models.first_token import by_letters

_LETTERS = "ABCDEF"


def told(q: np.ndarray, likings: np.ndarray) -> list[tuple[str, float]]:
    """Letters with their log-probabilities where the options stand in the order of `q`."""
    logits = np.log(q) + likings
    logits -= logits.max() + math.log(np.exp(logits - logits.max()).sum())
    return list(zip(_LETTERS, logits.tolist(), strict=False))


def errors(k: int, deviation: float, questions: int, dice: np.random.Generator) -> tuple[float, float]:
    """Mean total variation from the truth with one order, and with two."""
    one, two = [], []
    for repetition in np.array_split(np.arange(questions), 20):
        likings = dice.normal(0, deviation, k)
        for _ in repetition:
            q = np.maximum(dice.dirichlet(np.ones(k)), 1e-6)
            q /= q.sum()
            given = told(q, likings)
            found = by_letters([given, told(q[::-1], likings)], [f"option {i}" for i in range(k)])
            assert not isinstance(found, str), found
            both = np.exp([answer.mean_logprob or 0.0 for answer in found.values()])
            one.append(np.abs(np.exp([p for _, p in given]) - q).sum() / 2)
            two.append(np.abs(both - q).sum() / 2)
    return float(np.mean(one)), float(np.mean(two))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=2000)
    given = parser.parse_args(arguments)
    dice = np.random.default_rng(0)
    print("| options | liking of letters, sd in nats | error, one order | error, two orders |\n|--:|--:|--:|--:|")
    for k in (2, 3, 4, 6):
        for deviation in (0.5, 1.0, 2.0):
            one, two = errors(k, deviation, given.questions, dice)
            print(f"| {k} | {deviation:g} | {one:.3f} | {two:.3f} |")


if __name__ == "__main__":
    main()
