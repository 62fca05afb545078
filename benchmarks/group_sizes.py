"""Do intervals and comparisons by group hold where groups differ in size, are few, or hold few of a class?

    python benchmarks/group_sizes.py [--samples 1000] [--family 400] [--seed 0]

Scores are binormal with a part that the documents of a group share; labels are beta-binomial by group. "Before" is the
clustered variance of Obuchowski 1997 with Student's quantiles for the groups of the rarer class, "now" is
`estimate_auroc` (each group deleted in turn, on the logit, effective number of groups). Error: how often the 95 %
interval misses the true AUROC. Family: how often any of several detectors without a difference to the first is called
different at .05, and how often a better one is found, with Holm and with `max_t`.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from hedge_tasks.statistics import compare_scores, estimate_auroc, holm, max_t
from hedge_tasks.statistics.placements import auroc_components

Floats = npt.NDArray[np.float64]
Sample = tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]
RHO, ALIKE = 0.4, 0.3

CELLS = [
    # groups, sizes, AUROC, share hallucinated
    (30, "Pareto", 0.7, 0.3),
    (30, "Pareto", 0.9, 0.3),
    (60, "Pareto", 0.8, 0.3),
    (60, "Pareto", 0.8, 0.07),
    (15, "4", 0.8, 0.3),
    (30, "4", 0.9, 0.3),
    (60, "4", 0.8, 0.05),
    (200, "Pareto", 0.8, 0.1),
]


def sizes_of(groups: int, kind: str, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    if kind == "Pareto":
        return np.minimum(np.ceil(rng.pareto(1.0, groups) + 0.5), 60).astype(np.int64)
    return np.full(groups, int(kind))


def sample(groups: int, kind: str, area: float, rate: float, rng: np.random.Generator) -> Sample:
    codes = np.repeat(np.arange(groups), sizes_of(groups, kind, rng))
    share = rng.beta(rate * (1 / ALIKE - 1), (1 - rate) * (1 / ALIKE - 1), groups)
    labels = (rng.random(len(codes)) < share[codes]).astype(np.int64)
    noise = RHO**0.5 * rng.normal(size=groups)[codes] + (1 - RHO) ** 0.5 * rng.normal(size=len(codes))
    return norm.ppf(area) * 2**0.5 * labels + noise, labels, codes


def before(x: Floats, y: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> tuple[float, float]:
    """The interval by Obuchowski's variance."""
    positive = y == 1
    area, c = auroc_components(x, positive)
    n = int(groups.max()) + 1
    a, b = np.bincount(groups[positive], c[positive], n), np.bincount(groups[~positive], c[~positive], n)
    with_a, with_b = len(np.unique(groups[positive])), len(np.unique(groups[~positive]))
    parts = [(with_a, a @ a), (with_b, b @ b), (n, 2 * (a @ b))]
    stderr = max(0.0, sum(k / (k - 1) * part for k, part in parts)) ** 0.5
    half = student.ppf(0.975, min(with_a, with_b) - 1) * stderr / (area * (1 - area)) if 0 < area < 1 else np.inf
    middle = logit(np.clip(area, 1e-9, 1 - 1e-9))
    return float(expit(middle - half)), float(expit(middle + half))


def coverage(samples: int, seed: int) -> Iterator[str]:
    yield "| groups | sizes | AUROC | share | error before | error now | width before | width now | no interval |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for cell in CELLS:
        rng = np.random.default_rng(seed)
        found, without = [], 0
        for _ in range(samples):
            x, y, groups = sample(*cell, rng)
            now = estimate_auroc(x, y, groups=groups.tolist()).interval
            if now is None:
                without += 1
                continue
            then = before(x, y, groups)
            found.append(
                [not low <= cell[2] <= high for low, high in (then, now)] + [then[1] - then[0], now[1] - now[0]]
            )
        numbers = " | ".join(f"{number:.3f}" for number in np.mean(found, axis=0))
        yield f"| {' | '.join(map(str, cell))} | {numbers} | {without / samples:.3f} |"


def family(samples: int, seed: int) -> Iterator[str]:
    """Detectors that share much of their noise with a reference, none or one of them better than it."""
    yield "| groups | sizes | detectors | of them equal to the reference | error, Holm | max-T | found, Holm | max-T |"
    yield "|---|---|---|---|---|---|---|---|"
    for groups, kind, many, copies in (
        (200, "1", 8, 0),
        (60, "4", 8, 0),
        (60, "4", 20, 0),
        (15, "4", 8, 0),
        (60, "4", 8, 3),
    ):
        rng, wrong, right = np.random.default_rng(seed), [], []
        for _ in range(samples):
            x, y, codes = sample(groups, kind, 0.75, 0.35, rng)
            if min(y.sum(), (1 - y).sum()) < 5:
                continue
            common = rng.normal(size=len(x))  # of all detectors but the reference
            others = [x + 0.7 * common + 0.4 * rng.normal(size=len(x)) for _ in range(many)]
            reference = x + 0.7 * rng.normal(size=len(x)) + 0.4 * rng.normal(size=len(x))
            others[:copies] = [2 * reference] * copies
            better = [*others[:-1], others[-1] + 0.55 * y]
            for kept, scores in ((wrong, others), (right, better)):
                by = None if kind == "1" else codes.tolist()
                tests = [compare_scores(one, reference, y, groups=by).of(range(len(y))) for one in scores]
                plain, joint = holm([one.p_value for one in tests]), max_t(tests)
                tested = slice(None) if kept is wrong else slice(-1, None)
                kept.append([any(p is not None and p < 0.05 for p in ps[tested]) for ps in (plain, joint)])
        numbers = " | ".join(f"{share:.3f}" for share in (*np.mean(wrong, axis=0), *np.mean(right, axis=0)))
        yield f"| {groups} | {kind} | {many} | {copies} | {numbers} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1000, help="data sets a row of intervals")
    parser.add_argument("--family", type=int, default=400, help="data sets a row of comparisons")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows = coverage(arguments.samples, arguments.seed), [""], family(arguments.family, arguments.seed)
    for line in itertools.chain.from_iterable(rows):
        print(line, flush=True)


if __name__ == "__main__":
    main()
