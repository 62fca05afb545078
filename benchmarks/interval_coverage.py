"""How often do 95 % intervals of an AUROC hold, and how long are they, with few of a class and with groups?

    python benchmarks/interval_coverage.py [--samples 2000] [--seed 0]

Scores are binormal, rounded to tenths of a standard deviation (ties), with a part that the documents of a group share;
labels are beta-binomial by group. "DeLong, logit" is the interval of all sizes before, "now" is `estimate_auroc`.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import norm

from hedge_tasks.statistics import estimate_auroc
from hedge_tasks.statistics.base import FloatArray, IntArray, logit_interval
from hedge_tasks.statistics.placements import degrees_of_freedom

RHO, ALIKE = 0.4, 0.3

CELLS = [
    # documents, share hallucinated, AUROC, documents a group
    *((n, share, area, 1) for n, share in ((60, 0.1), (60, 0.2), (200, 0.1), (100, 0.3)) for area in (0.6, 0.8, 0.95)),
    *((100, 0.3, area, 4) for area in (0.6, 0.8, 0.95)),
    *((400, 0.3, area, 8) for area in (0.6, 0.8, 0.95)),
]


def sample(
    n: int, share: float, area: float, size: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, IntArray]:
    groups = np.arange(n) // size
    rates = rng.beta(share * (1 / ALIKE - 1), (1 - share) * (1 / ALIKE - 1), n) if size > 1 else np.full(n, share)
    y = (rng.random(n) < rates[groups]).astype(np.int64)
    common = RHO if size > 1 else 0.0
    noise = common**0.5 * rng.normal(size=n)[groups] + (1 - common) ** 0.5 * rng.normal(size=n)
    return np.round(noise + norm.ppf(area) * 2**0.5 * y, 1), y, groups


def row(cell: tuple[int, float, float, int], samples: int, seed: int) -> str:
    rng, rarer, seen = np.random.default_rng(seed), [], []
    while len(seen) < samples:
        x, y, groups = sample(*cell, rng)
        named = groups.tolist() if cell[3] > 1 else None
        now = estimate_auroc(x, y, groups=named)
        if now.value is None or now.interval is None or now.stderr is None:
            continue
        degrees = degrees_of_freedom(y == 1, None if named is None else groups)
        inside = now.stderr > 0 and 0 < now.value < 1
        before = logit_interval(now.value, now.stderr, 0.95, degrees) if inside else now.interval
        rarer.append(min(y.sum(), (1 - y).sum()))
        seen.append(
            [*(low <= cell[2] <= high for low, high in (before, now.interval)), np.ptp(before), np.ptp(now.interval)]
        )
    numbers = " | ".join(f"{float(value):.3f}" for value in np.mean(np.array(seen, dtype=float), axis=0))
    return f"| {' | '.join(map(str, cell))} | {np.mean(rarer):.0f} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| documents | share | AUROC | a group | rarer | holds, DeLong | holds, now | length, DeLong | length, now |")
    print("|" + "---|" * 9)
    for cell in CELLS:
        print(row(cell, arguments.samples, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
