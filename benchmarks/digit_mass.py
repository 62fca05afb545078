"""AUROC and bias of three estimates of MedHallu's p(1), over how much of the first token's mass the digits hold.

    python benchmarks/digit_mass.py [--questions 1000] [--repetitions 200] [--draws 10] [--masses 1,.9,.5,.2,.08]

A simulated model has a probability p of "1" against "0" for every question, the expit of a normal number whose mean
tells true from hallucinated answers; the larger its spread, the surer the model, at the same AUROC. The digits hold a
part of the mass of its first token; the rest is words. Its verdicts are guided draws, so that all are digits.

- exact: p out of the raw probabilities of both digits, as forced passes tell them;
- share: of the draws that say "1";
- earlier: p out of the raw probabilities of the digits that were drawn, with 1 - p(seen) for one that was not, as this
  package did before its version 3.3 of the task.

Bias and error are against the exact p; the AUROC is of telling hallucinated from true answers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from hedge_tasks.statistics import auroc
from hedge_tasks.suites.medhallu.measures import hallucinated_probability

ESTIMATES = ("exact", "share", "earlier")

_APART = 1.7
"""Difference of the means of the log-odds of p between both truths, in their standard deviations."""

SPREADS = (1.0, 3.0, 6.0)
"""Standard deviations of the log-odds."""


def estimates(p: np.ndarray, mass: np.ndarray, n_draws: int, dice: np.random.Generator) -> dict[str, np.ndarray]:
    """Each estimate of p for every question.

    Args:
        p: probability of "1" against "0", shape (questions,).
        mass: of the first token that both digits hold together, likewise.
        n_draws: guided verdicts a question.
    """
    ones = dice.binomial(n_draws, p)
    raw_1, raw_0 = mass * p, mass * (1 - p)
    exact = [hallucinated_probability({"0": np.log(a), "1": np.log(b)}) for a, b in zip(raw_0, raw_1, strict=True)]
    # What was not drawn gets what the other one leaves; the two then add up to 1.
    earlier = np.where(ones == 0, 1 - raw_0, np.where(ones == n_draws, raw_1, p))
    return {"exact": np.array(exact, dtype=float), "share": ones / n_draws, "earlier": earlier}


def simulated(
    mass: float, spread: float, questions: int, n_draws: int, dice: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """(AUROC, bias, mean absolute error) of each estimate on one set of questions, half of them hallucinated."""
    truth = np.arange(questions) % 2
    p = 1 / (1 + np.exp(-spread * dice.normal((truth - 0.5) * _APART)))
    found = estimates(p, np.full(questions, mass), n_draws, dice)
    return {
        name: (auroc(of, truth), float((of - p).mean()), float(np.abs(of - p).mean())) for name, of in found.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--masses", default="1,.9,.5,.2,.08")
    given = parser.parse_args(arguments)
    dice = np.random.default_rng(0)
    names = " | ".join(f"{name}: AUROC | bias | error" for name in ESTIMATES)
    print(f"| spread | mass of both digits | {names} |")
    print("|---|---|" + "---|---|---|" * len(ESTIMATES))
    for spread in SPREADS:
        for mass in map(float, given.masses.split(",")):
            runs = [simulated(mass, spread, given.questions, given.draws, dice) for _ in range(given.repetitions)]
            cells = [np.mean([run[name] for run in runs], axis=0) for name in ESTIMATES]
            row = " | ".join(f"{a:.3f} | {bias:+.3f} | {error:.3f}" for a, bias, error in cells)
            print(f"| {spread:g} | {mass:g} | {row} |")


if __name__ == "__main__":
    main()
