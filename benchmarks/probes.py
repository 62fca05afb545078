"""Whether the interval of a cross-fitted ROC-AUC covers what the detector is worth, fitting included.

    python benchmarks/probes.py [--runs 200] [--jobs 2]

States are normal, of `width` dimensions, one of which moves with the label by `shift`; documents share images by fours,
and images share a part of both state and label. What the detector is worth is the mean of its ROC-AUC over runs of the
same size: the interval is of one run. Useless states (`shift` 0) are worth 0.5.
"""

from __future__ import annotations

import argparse
import itertools
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from hedge_tasks.detectors.pipeline import Scores, detection_auroc
from hedge_tasks.probes.crossfit import cross_fitted, shuffled
from hedge_tasks.probes.registry import fitted

CELLS = [
    *itertools.product(("linear_probe",), (120,), (0.0, 0.5, 1.5)),
    *itertools.product(("linear_probe",), (400,), (0.0, 0.5)),
    *itertools.product(("relative_mahalanobis",), (120,), (0.0, 1.5)),
]
WIDTH, IMAGE = 24, 4


def one_run(cell: tuple[str, int, float], seed: int) -> tuple[float, float, float] | None:
    """ROC-AUC and interval of one simulated run; None where it is undefined."""
    name, n, shift = cell
    rng = np.random.default_rng([seed, n, round(shift * 10)])
    images = np.arange(n) // IMAGE
    of_image = rng.normal(size=n // IMAGE)[images]
    labels = (0.6 * of_image + rng.normal(size=n) > 0.6).astype(np.int64)
    states = rng.normal(size=(n, 1, WIDTH)) + 0.5 * rng.normal(size=(n // IMAGE, 1, WIDTH))[images]
    states[:, 0, 0] += shift * labels
    groups = [str(i) for i in images]
    values = cross_fitted(fitted(name), states, labels, labels, groups, seed=seed)
    error = shuffled(fitted(name), states, labels, labels, groups, seed=seed).error
    scores = [
        Scores(str(i), int(y), g, None, {name: float(v)}, "uniform", (0,), choice_errors={name: error})
        for i, (y, g, v) in enumerate(zip(labels, groups, values, strict=True))
    ]
    estimate = detection_auroc(scores, name)
    if estimate.value is None or estimate.interval is None:
        return None
    return estimate.value, *estimate.interval


def cell_row(cell: tuple[str, int, float], runs: int) -> str:
    """A row of the table."""
    found = [one for seed in range(runs) if (one := one_run(cell, seed)) is not None]
    values, low, high = np.array(found).T
    worth = 0.5 if cell[2] == 0 else values.mean()
    below, above = (high < worth).mean(), (low > worth).mean()
    name, n, shift = cell
    inside = 1 - below - above
    error = np.sqrt(inside * (1 - inside) / len(found))
    return f"| {name} | {n} | {shift} | {values.mean():.3f} | {inside:.3f} +- {error:.3f} | {above:.3f} | {below:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print("| detector | documents | shift | mean ROC-AUC | covered (of .95) | interval above | interval below |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(cell_row, CELLS, itertools.repeat(arguments.runs)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
