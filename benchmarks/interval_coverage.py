"""Do the 95 % intervals of `hedge_tasks.statistics` hold the true number 93-97 % of the time?

    python benchmarks/interval_coverage.py [--samples 1000] [--resamples 300] [--jobs 1] [--only TEXT] [--quick]

Draws many data sets of which the true AUROC (or difference, or share) is known, and counts how often the interval
holds it. Scores are binormal: supported answers N(0, 1), hallucinated N(d, 1), so that the AUROC is Phi(d / sqrt 2);
30 % are hallucinated. "Ties" rounds the scores to whole numbers (six or so distinct ones, as sampled answers give);
the true AUROC is then that of the rounded scores. "By image": four questions share an image, an image's questions share
40 % of the variance of the score, and their hallucinations are correlated (beta-binomial, 0.2). A number in the table
is uncertain itself, by 0.7 percentage points (one standard error) with 1000 samples. Columns in parentheses are there
to compare with. Takes 40 minutes on one core, with `--quick` two. `--only` changes no number: rows have seeds of
their own.

Where an interval is undefined (one hallucinated answer or none) the sample is left out, and counted in the last column.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from hedge_tasks.detectors.thresholds import DocumentProfile, ThresholdChoice, choose, with_errors
from hedge_tasks.statistics import (
    auroc,
    compare_runs,
    compare_scores,
    compare_sums,
    estimate_auroc,
    estimate_curves,
    estimate_of_sums,
    estimate_rate,
    stratified_auroc,
)
from hedge_tasks.statistics.resampling import group_bootstrap, group_totals, percentile_interval
from hedge_tasks.suites.medhallu.measures import f1

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
Interval = tuple[float, float] | None
IMAGE_SIZE, SHARED, RATE = 4, 0.4, 0.3
GOOD = (93.0, 97.0)


@dataclass(frozen=True)
class Case:
    """One row of a table: what is drawn, and how many samples of it."""

    table: str
    area: float
    n: int
    ties: bool
    by_image: bool
    samples: int
    resamples: int

    @property
    def title(self) -> str:
        return f"{self.area:.2f} | {self.n} | {'yes' if self.ties else 'no'}"


@dataclass(frozen=True)
class Coverage:
    case: Case
    percent: dict[str, float]
    undefined: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1000, help="data sets a row")
    parser.add_argument("--resamples", type=int, default=300, help="of each bootstrap")
    parser.add_argument("--jobs", type=int, default=1, help="processes; the numbers do not depend on it")
    parser.add_argument("--only", default="", metavar="TEXT", help="tables with this in their title")
    parser.add_argument("--n", type=int, nargs="+", help="only these numbers of documents")
    parser.add_argument("--quick", action="store_true", help="fewer rows and samples")
    parser.add_argument("--parts", action="store_true", help="of the variance at a chosen threshold, and nothing else")
    arguments = parser.parse_args()
    if arguments.parts:
        parts_of_variance(arguments.samples, tuple(arguments.n or (100,)))
        return
    samples, ns, areas = arguments.samples, (100, 200, 500), (0.6, 0.75, 0.85, 0.95)
    if arguments.quick:
        samples, ns, areas = min(samples, 300), (100, 500), (0.75, 0.95)
    ns = tuple(arguments.n or ns)
    cases = [
        Case(table, area, n, ties, by_image, samples, arguments.resamples)
        for table in TABLES
        for by_image in (False, True)
        if arguments.only in title_of(table, by_image)
        for ties in ((False, True) if table == "AUROC" else (True,))
        for n in ns
        for area in areas
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        report(pool.map(coverage, cases))
    time_of_one()


def title_of(table: str, by_image: bool) -> str:
    return f"{table}, {'by image' if by_image else 'independent documents'}"


def report(found: Iterable[Coverage]) -> None:
    heading, outside, total = "", [], 0
    for row in found:
        case = row.case
        title = title_of(case.table, case.by_image)
        if title != heading:
            heading = title
            columns = " | ".join(row.percent)
            print(f"\n### {title}\n\n| AUROC | n | ties | {columns} | undefined |")
            print("|---" * (4 + len(row.percent)) + "|", flush=True)
        cells = " | ".join(f"{percent:.1f}" for percent in row.percent.values())
        print(f"| {case.title} | {cells} | {row.undefined} of {case.samples} |", flush=True)
        # What a run reports by default; the other columns are there to compare with.
        ours = {name: percent for name, percent in row.percent.items() if not name.startswith("(")}
        total += len(ours)
        outside += [(title, case, name, p) for name, p in ours.items() if not GOOD[0] <= p <= GOOD[1]]
    print(f"\n{total - len(outside)} of {total} numbers in columns without parentheses are from 93 to 97 %.")
    for title, case, name, percent in outside:
        print(f"  outside: {title}, AUROC {case.area}, n = {case.n}: {name} {percent:.1f} %")


def coverage(case: Case) -> Coverage:
    """Share of intervals that hold the true number, by method."""
    # A seed of its own for each row: rows are independent, and the same in every run.
    rng = np.random.default_rng(zlib.crc32(repr(case).encode()))
    held: dict[str, list[bool]] = {}
    undefined = 0
    for _ in range(case.samples):
        intervals = TABLES[case.table](case, rng)
        undefined += any(interval is None for _, _, interval in intervals)
        for name, true, interval in intervals:
            if interval is not None:
                held.setdefault(name, []).append(interval[0] <= true <= interval[1])
    return Coverage(case, {name: 100 * statistics.fmean(values) for name, values in held.items()}, undefined)


# --- what is drawn ---------------------------------------------------------------------------------------------------


def images(case: Case) -> npt.NDArray[np.int64]:
    return np.arange(case.n) // (IMAGE_SIZE if case.by_image else 1)


def labels_of(case: Case, rng: Rng) -> Floats:
    """30 % hallucinations; by image with a correlation of 0.2."""
    if not case.by_image:
        return (rng.random(case.n) < RATE).astype(float)
    precision = 1 / 0.2 - 1
    of_image = rng.beta(RATE * precision, (1 - RATE) * precision, size=case.n)[images(case)]
    return (rng.random(case.n) < of_image).astype(float)


def noise_of(case: Case, rng: Rng) -> Floats:
    """N(0, 1), correlated within an image."""
    shared = rng.normal(size=case.n)[images(case)]
    return math.sqrt(SHARED) * shared + math.sqrt(1 - SHARED) * rng.normal(size=case.n)


def shift_of(area: float) -> float:
    return float(norm.ppf(area) * math.sqrt(2))


def scores_of(case: Case, labels: Floats, noise: Floats, area: float) -> Floats:
    scores = noise + shift_of(area) * labels
    return scores.round() if case.ties else scores


def true_area(area: float, *, ties: bool) -> float:
    """AUROC of the binormal scores, rounded or not."""
    if not ties:
        return area
    k = np.arange(-15, 16)
    hallucinated, supported = (norm.cdf(k + 0.5, m) - norm.cdf(k - 0.5, m) for m in (shift_of(area), 0.0))
    return float((hallucinated * (np.cumsum(supported) - supported / 2)).sum())


def groups_of(case: Case) -> list[int] | None:
    return images(case).tolist() if case.by_image else None


# --- the intervals ---------------------------------------------------------------------------------------------------


def of_auroc(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    labels = labels_of(case, rng)
    scores = scores_of(case, labels, noise_of(case, rng), case.area)
    true, groups = true_area(case.area, ties=case.ties), groups_of(case)
    estimate = partial(estimate_auroc, scores, labels, n_resamples=case.resamples)
    delong = estimate(groups=groups, method="delong")
    z = norm.ppf(0.975)
    plain = None
    if delong.value is not None and delong.stderr is not None:
        plain = (delong.value - z * delong.stderr, delong.value + z * delong.stderr)
    intervals = [
        ("DeLong, logit (default)", true, delong.interval),
        ("bootstrap, logit", true, estimate(groups=groups, method="bootstrap").interval),
        ("(percentile)", true, estimate(groups=groups, method="percentile").interval),
        ("(DeLong without logit)", true, plain),
    ]
    if groups is not None:
        intervals.append(("(DeLong as if independent)", true, estimate(method="delong").interval))
    return intervals


def of_two_scores(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    labels, groups = labels_of(case, rng), groups_of(case)
    other = case.area - 0.05
    common = noise_of(case, rng)
    mixed = [math.sqrt(0.6) * common + math.sqrt(0.4) * noise_of(case, rng) for _ in range(2)]
    a, b = (scores_of(case, labels, noise, area) for noise, area in zip(mixed, (case.area, other), strict=True))
    true = true_area(case.area, ties=case.ties) - true_area(other, ties=case.ties)
    compare = partial(compare_scores, a, b, labels, groups=groups, n_resamples=case.resamples)
    return [
        ("DeLong (default)", true, compare().interval),
        ("paired bootstrap", true, compare(method="bootstrap").interval),
    ]


def of_two_runs(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    labels_a = labels_of(case, rng)
    labels_b = np.where(rng.random(case.n) < 0.7, labels_a, labels_of(case, rng))
    other, common = case.area - 0.05, noise_of(case, rng)
    mixed = [math.sqrt(0.6) * common + math.sqrt(0.4) * noise_of(case, rng) for _ in range(2)]
    a, b = scores_of(case, labels_a, mixed[0], case.area), scores_of(case, labels_b, mixed[1], other)
    true = true_area(case.area, ties=case.ties) - true_area(other, ties=case.ties)
    compare = partial(compare_runs, a, labels_a, b, labels_b, groups=groups_of(case), n_resamples=case.resamples)
    return [
        ("jackknife (default)", true, compare().interval),
        ("paired bootstrap", true, compare(method="bootstrap").interval),
    ]


def of_strata(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    """Three kinds of questions; the score is higher for the third, and hallucinations are rarer in the first."""
    kind = np.arange(case.n) % 3
    labels = labels_of(case, rng) * ((kind > 0) | (rng.random(case.n) < 0.5))
    scores = scores_of(case, labels, noise_of(case, rng), case.area) + 5 * (kind == 2)
    found = stratified_auroc(scores, labels, kind.tolist(), groups=groups_of(case))
    return [("DeLong within strata", true_area(case.area, ties=case.ties), found.interval)]


def of_chosen_threshold(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    """A score that depends on a threshold, cross-fitted on the same documents; true is what the procedure gives on
    average."""
    profiles = profiles_of(case, rng)
    choice = ThresholdChoice()
    chosen = with_errors(choose(profiles, choice), profiles, choice)
    scores, labels = [p.at("se", chosen.thresholds[p.id]) for p in profiles], [p.label or 0 for p in profiles]
    true = mean_of_cross_fitting(case.area, case.n, case.by_image)
    estimate = partial(estimate_auroc, scores, labels, groups=groups_of(case), n_resamples=case.resamples)
    return [
        ("with the choice (default)", true, estimate(extra_stderr=chosen.errors.get("se", 0.0)).interval),
        ("(without)", true, estimate().interval),
    ]


def parts_of_variance(samples: int, ns: Iterable[int]) -> None:
    """What the AUROC at a chosen threshold varies by from data set to data set, and what is estimated for it."""
    print("| AUROC | n | variance, true | estimated: of the documents | of the choice |\n|---|---|---|---|---|")
    choice = ThresholdChoice()
    for n, area in [(n, area) for n in ns for area in (0.6, 0.75, 0.85)]:
        rng = np.random.default_rng([n, int(100 * area)])
        found = []
        for _ in range(samples):
            profiles = profiles_of(Case("", area, n, True, False, 0, 0), rng)
            chosen = with_errors(choose(profiles, choice), profiles, choice)
            scores = [p.at("se", chosen.thresholds[p.id]) for p in profiles]
            estimate = estimate_auroc(scores, [p.label or 0 for p in profiles], n_resamples=300)
            if estimate.value is not None and estimate.stderr is not None:
                found.append((estimate.value, estimate.stderr**2, chosen.errors.get("se", 0.0) ** 2))
        values, of_documents, of_choice = (np.array(column) for column in zip(*found, strict=True))
        parts = (values.var(ddof=1), of_documents.mean(), of_choice.mean())
        print(f"| {area:.2f} | {n} | {' | '.join(f'{part:.5f}' for part in parts)} |", flush=True)


@cache
def mean_of_cross_fitting(area: float, n: int, by_image: bool, samples: int = 60) -> float:
    case = Case("", area, n, True, by_image, 0, 0)
    rng = np.random.default_rng(1)
    found = []
    for _ in range(samples):
        profiles = profiles_of(case, rng)
        thresholds = choose(profiles, ThresholdChoice()).thresholds
        scores, labels = [p.at("se", thresholds[p.id]) for p in profiles], [p.label for p in profiles]
        if 0 < sum(map(bool, labels)) < n:
            found.append(auroc(scores, labels))
    return statistics.fmean(found)


def profiles_of(case: Case, rng: Rng) -> list[DocumentProfile]:
    """Scores in twenty steps between thresholds of 0.8 and 0.99; the best is at 0.9, with the AUROC of the case."""
    steps = np.linspace(0.8, 0.99, 21)[1:]
    quality = 1 - 0.6 * ((steps - 0.9) / 0.1) ** 2
    labels, noise = labels_of(case, rng), noise_of(case, rng)
    own = rng.normal(size=(case.n, len(steps)))
    mixed = math.sqrt(0.7) * noise[:, None] + math.sqrt(0.3) * own
    scores = (2 * (shift_of(case.area) * labels[:, None] * quality + mixed)).round() / 2
    image = images(case)
    return [
        DocumentProfile(f"{i:05}", int(labels[i]), str(image[i]), ("se",), np.stack([steps, scores[i]]), np.empty(0))
        for i in range(case.n)
    ]


def of_rate(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    """The share of hallucinations; here the column AUROC is read as the share of supported answers."""
    true, precision = 1 - case.area, 1 / 0.2 - 1
    share = rng.beta(true * precision, case.area * precision, size=case.n)[images(case)] if case.by_image else true
    values = (rng.random(case.n) < share).astype(float)
    return [("Wilson", true, estimate_rate(values, groups=groups_of(case)).interval)]


def of_f1(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    """F1 of verdicts on as many true as hallucinated answers; the column AUROC is read as the share of right ones.

    As many errors either way are to be expected, so that F1 is that share, too.
    """
    parts, groups = verdicts_of(case, rng, case.area), images(case).tolist()
    drawn = group_bootstrap(group_totals(groups, parts), f1, n_resamples=case.resamples)
    return [
        ("delta method, Wilson", case.area, estimate_of_sums(parts, groups, f1).interval),
        ("(percentile)", case.area, percentile_interval(drawn, 0.95)),
    ]


def of_two_f1(case: Case, rng: Rng) -> list[tuple[str, float, Interval]]:
    """The difference in F1 of two models that mostly fail on the same documents."""
    a, b = verdicts_of(case, rng, case.area, draws=2)
    return [("paired by group, t", 0.05, compare_sums(a, b, images(case).tolist(), f1).interval)]


def verdicts_of(case: Case, rng: Rng, area: float, draws: int = 1) -> Any:
    """Confusions of verdicts, a share of `area` right, the second model's 5 points less; correlated as labels are."""
    truth, hard = np.arange(case.n) % 2, noise_of(case, rng)
    found = []
    for share in (area, area - 0.05)[:draws]:
        mixed = hard if draws == 1 else math.sqrt(0.6) * hard + math.sqrt(0.4) * noise_of(case, rng)
        said = truth ^ (mixed > norm.ppf(share))
        found.append(np.eye(4)[2 * said + truth])
    return found[0] if draws == 1 else found


TABLES: dict[str, Callable[[Case, Rng], list[tuple[str, float, Interval]]]] = {
    "AUROC": of_auroc,
    "difference of two scores": of_two_scores,
    "difference of two runs": of_two_runs,
    "AUROC within strata": of_strata,
    "AUROC at a chosen threshold": of_chosen_threshold,
    "share of hallucinations (AUROC = share of supported answers)": of_rate,
    "F1 (AUROC = share of right verdicts)": of_f1,
    "difference of two F1": of_two_f1,
}


# --- time ------------------------------------------------------------------------------------------------------------


def time_of_one(n: int = 500, repetitions: int = 15) -> None:
    """Median time of one call with the default 1000 resamples."""
    rng = np.random.default_rng(0)
    labels = (rng.random(n) < RATE).astype(float)
    a, b = (rng.normal(size=n) + labels for _ in range(2))
    groups = (np.arange(n) // IMAGE_SIZE).tolist()
    calls: dict[str, Callable[[], object]] = {
        "estimate_auroc, DeLong": lambda: estimate_auroc(a, labels),
        "estimate_auroc, bootstrap": lambda: estimate_auroc(a, labels, method="bootstrap"),
        "estimate_auroc, bootstrap by image": lambda: estimate_auroc(a, labels, groups=groups, method="bootstrap"),
        "compare_scores, DeLong": lambda: compare_scores(a, b, labels),
        "compare_runs": lambda: compare_runs(a, labels, b, labels),
        "estimate_curves, five areas": lambda: estimate_curves(a, 1 - labels),
    }
    print(f"\nmedian time of a call, n = {n}, 1000 resamples:")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(1000 * (time.perf_counter() - start))
    for name, values in times.items():
        print(f"  {name}: {statistics.median(values):.1f} ms")


if __name__ == "__main__":
    main()
