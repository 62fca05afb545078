"""How often do intervals of an audit hold, how long are they beside those of labels alone, and what is a label worth?

    python benchmarks/audit_coverage.py [--samples 1000] [--labels 50] [--documents 400]

A run has binormal scores and a judge who errs in a share of its labels, at random or where scores are near each other.
`hedge audit plan` draws in proportion to its labels; "alone" is a simple random sample with no judge. Worth: labels of
such a sample that would be as sure, as the audit states it, and as the spread of its numbers over the samples has it.
"""

from __future__ import annotations

import argparse
import random
from itertools import product

import numpy as np
from scipy.stats import norm

from hedge_tasks.judging.strata import strata_of
from hedge_tasks.statistics import estimate_auroc, estimate_rate
from hedge_tasks.statistics.base import FloatArray, IntArray
from hedge_tasks.statistics.experts import audited_rate

AREAS, SHARES, ERRORS = (0.6, 0.75, 0.9, 0.98), (0.1, 0.3, 0.5), (0.02, 0.15, 0.35)


def run_of(
    area: float, share: float, error: float, n: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, IntArray]:
    y = (rng.random(n) < share).astype(np.int64)
    x = rng.normal(size=n) + norm.ppf(area) * 2**0.5 * y
    return x, y, y ^ (rng.random(n) < error)


def row(area: float, share: float, error: float, samples: int, labels: int, documents: int) -> str:
    rng, of_auroc, of_rate = np.random.default_rng(0), [], []
    for seed in range(samples):
        x, y, judged = run_of(area, share, error, documents, rng)
        strata = strata_of(judged.tolist(), labels)
        drawn = np.array(strata.drawn(random.Random(seed)))
        plain = rng.choice(documents, labels, replace=False)
        both = [estimate_auroc(x[i], y[i]) for i in (drawn, plain)]
        if all(number.interval is not None for number in both):
            of_auroc.append(
                [
                    both[0].interval[0] <= area <= both[0].interval[1],
                    *(np.ptp(b.interval) for b in both),
                    both[0].value,
                    both[1].value,
                ]
            )
        rate = audited_rate(y[drawn], strata.stratum[drawn], np.bincount(strata.stratum))
        alone = estimate_rate(y[plain])
        of_rate.append(
            [
                rate.interval[0] <= share <= rate.interval[1],
                *(np.ptp(b.interval) for b in (rate, alone)),
                rate.value,
                alone.value,
                rate.n_effective,
            ]
        )
    cells = [f"{area}", f"{share}", f"{error}", f"{len(of_auroc) / samples:.2f}"]
    for seen in (np.array(of_auroc, dtype=float), np.array(of_rate, dtype=float)):
        holds, length, alone, *_ = seen.mean(axis=0)
        stated = seen[:, 5].mean() if seen.shape[1] > 5 else labels
        true = labels * seen[:, 4].var() / seen[:, 3].var()
        cells += [f"{holds:.3f}", f"{length:.3f}", f"{length / alone:.2f}", f"{stated:.0f}", f"{true:.0f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--documents", type=int, default=400)
    arguments = parser.parse_args()
    of_number = "holds | length | : alone | worth | true"
    print(f"| AUROC | share | judge errs | has one | {of_number} | rate {of_number} |")
    print("|" + "---|" * 14)
    for cell in product(AREAS, SHARES, ERRORS):
        print(row(*cell, arguments.samples, arguments.labels, arguments.documents), flush=True)


if __name__ == "__main__":
    main()
