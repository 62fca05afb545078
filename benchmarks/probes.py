"""Whether the interval of a cross-fitted ROC-AUC covers what the detector is worth, fitting included.

    python benchmarks/probes.py [--runs 200] [--jobs 2]

States are normal, of `width` dimensions, one of which moves with the label by `shift`; one to seven documents share an
image, and images share a part of both state and label. What the detector is worth is the mean of its ROC-AUC over runs
of the same size: the interval is of one run. Useless states (`shift` 0) are worth 0.5. "Plain" intervals leave out the
error of fitting.
"""

from __future__ import annotations

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from hedge_tasks.probes.crossfit import cross_fitted, shuffled
from hedge_tasks.probes.registry import fitted
from hedge_tasks.statistics import estimate_auroc

CELLS = [
    *itertools.product(("linear_probe",), (120,), (0.0, 0.5, 1.5)),
    *itertools.product(("linear_probe",), (400,), (0.0, 0.5)),
    *itertools.product(("relative_mahalanobis",), (120,), (0.0, 1.5)),
]
WIDTH = 24
SIZES = range(1, 8)


def one_run(cell: tuple[str, int, float], seed: int) -> tuple[float, float, float, float, float] | None:
    """ROC-AUC, its interval and its plain interval of one simulated run; None where it is undefined."""
    name, n, shift = cell
    rng = np.random.default_rng([seed, n, round(shift * 10)])
    images = np.repeat(np.arange(n), rng.choice(SIZES, size=n))[:n]
    of_image = rng.normal(size=n)[images]
    labels = (0.6 * of_image + rng.normal(size=n) > 0.6).astype(np.int64)
    states = rng.normal(size=(n, 1, WIDTH)) + 0.5 * rng.normal(size=(n, 1, WIDTH))[images]
    states[:, 0, 0] += shift * labels
    groups = [str(i) for i in images]
    values = cross_fitted(fitted(name), states, labels, labels, groups, seed=seed)
    error = shuffled(fitted(name), states, labels, labels, groups, seed=seed).error
    found = [estimate_auroc(values, labels, groups=groups, extra_stderr=extra) for extra in (error, 0.0)]
    if any(one.value is None or one.interval is None for one in found):
        return None
    return found[0].value, *found[0].interval, *found[1].interval


def cell_row(cell: tuple[str, int, float], runs: int) -> str:
    """A row of the table."""
    found = [one for seed in range(runs) if (one := one_run(cell, seed)) is not None]
    values, low, high, plain_low, plain_high = np.array(found).T
    worth = 0.5 if cell[2] == 0 else values.mean()
    below, above = (high < worth).mean(), (low > worth).mean()
    plain = ((plain_low <= worth) & (worth <= plain_high)).mean()
    name, n, shift = cell
    inside = 1 - below - above
    error = np.sqrt(inside * (1 - inside) / len(found))
    width = np.median(high - low)
    return (
        f"| {name} | {n} | {shift} | {len(found)} | {values.mean():.3f} | {inside:.3f} +- {error:.3f} | {above:.3f} | "
        f"{below:.3f} | {width:.3f} | {plain:.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    heads = ("detector", "documents", "shift", "runs", "mean ROC-AUC", "covered (of .95)")
    print(f"| {' | '.join(heads)} | interval above | interval below | median width | plain covered |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(cell_row, CELLS, itertools.repeat(arguments.runs)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
