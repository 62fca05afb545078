"""Does the interval of `hedge audit apply` hold the AUROC and the rate against experts?

    python benchmarks/audit_coverage.py [--samples 2000] [--labels 50 100 200] [--jobs 1]
    python benchmarks/audit_coverage.py --area 0.9 --images equal many       # another detector, more answers
    python benchmarks/audit_coverage.py --curves auprc aurc          # AUPRC and AURC in place of the AUROC
    python benchmarks/audit_coverage.py --wikibio wikibio_gpt3_half.jsonl --triviaqa triviaqa_llama13b_500x20.jsonl

Draws runs of 600 answers whose truth is known. Scores are binormal with AUROC .75, rounded to thirds of a standard
deviation; answers about one image share 40 % of the variance of the score and 30 % of that of the label. Images are
equal (200 of three answers; `many`: 600) or heavy (sizes from 60 down to 1); `whole`: equal ones, drawn whole. Judges:

- `at random`: sensitivity .92, specificity .85, errors at random.
- `unsure`: the same, but errs where the score is in the middle.
- `follows`: sensitivity .65, specificity .90; misses what has a low score and sees what has a high one, as a judge does
  that goes by consistency.
- `nearly right`: sensitivity .97, specificity .98, errors at random: most samples have no error in them.

Of each run, labels are planned and drawn as `hedge audit plan` does. "held": how often the 95 % interval holds this
run's own AUROC, in brackets the lower 97.5 % limit of that share by Monte Carlo; "like these": how often that of
documents like these holds the AUROC of a million documents. "alone": the same number of labels as a simple random
sample without a judge, `estimate_auroc`. It has no interval where one class has less than five labels: "alone: width"
is of those samples that have one, and in "any sample" the others count with the whole range. "worth": labels of such a
sample that have the same mean squared error, of samples in which there are both classes.

With files, the same on real answers that are judged; what is drawn anew is who is asked. `--wikibio`: sentences of
biographies by GPT-3, by people (truth), by a consistency judge (one model says of most draws that they do not support
the sentence) and with a score of another model (share of draws that do not); the biography is the group.
`--triviaqa`: the truth is the rule judge's, which is no person's (names that it does not know are wrong); the judge
takes an answer for right where it is the reference word for word; the score is the number of different answers. See
`real_answers.py` for the files.
"""

from __future__ import annotations

import argparse
import math
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from real_answers import name_labels, rows_of
from scipy.special import ndtr, ndtri

from hedge_tasks.judging.strata import strata_of
from hedge_tasks.statistics import auroc, estimate_auroc
from hedge_tasks.statistics.base import wilson
from hedge_tasks.statistics.curves import area_under_risk_coverage, average_precision
from hedge_tasks.statistics.designs import Design, allocate, simple_random
from hedge_tasks.statistics.verified import (
    audited_auroc,
    audited_precision,
    audited_rate,
    audited_risk_coverage,
    verified,
)

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator
AREA, SHARED_SCORE, SHARED_LABEL = 0.75, 0.4, 0.3
SIZES = {
    "equal": [3] * 200,
    "many": [3] * 600,
    "whole": [3] * 200,
    "heavy": [60, 60, 40, 40, 30, 30, 20, 20] + [10] * 10 + [4] * 25 + [2] * 40 + [1] * 20,
}
JUDGES = {"at random": (0.92, 0.85), "unsure": (0.92, 0.85), "follows": (0.65, 0.90), "nearly right": (0.97, 0.98)}


@dataclass(frozen=True)
class Cell:
    groups: str
    prevalence: float
    judge: str
    labels: int
    area: float = field(default=AREA, repr=False)


@dataclass(frozen=True)
class Answers:
    """Scores, truth, the judge's labels and the image of each answer."""

    scores: Floats
    truth: Floats
    judged: Floats
    images: npt.NDArray[np.int64]


def draw(cell: Cell, rng: Rng, copies: int = 1) -> Answers:
    sizes = SIZES[cell.groups] * copies
    images = np.repeat(np.arange(len(sizes)), sizes)
    shared = rng.normal(size=(len(sizes), 2))[images]
    own = rng.normal(size=(len(images), 2))
    latent = math.sqrt(SHARED_LABEL) * shared[:, 0] + math.sqrt(1 - SHARED_LABEL) * own[:, 0]
    truth = (latent > ndtri(1 - cell.prevalence)).astype(np.float64)
    distance = math.sqrt(2) * ndtri(cell.area)
    x = distance * truth + math.sqrt(SHARED_SCORE) * shared[:, 1] + math.sqrt(1 - SHARED_SCORE) * own[:, 1]
    x = np.round(3 * x) / 3
    place = ndtr(x - distance / 2)
    miss, alarm = (np.ones(len(x)), np.ones(len(x)))
    if cell.judge == "unsure":
        miss = alarm = 4 * place * (1 - place)
    elif cell.judge == "follows":
        miss, alarm = 1 - place, place
    sensitivity, specificity = JUDGES[cell.judge]
    wrong = np.where(
        truth == 1,
        (1 - sensitivity) * miss / miss[truth == 1].mean(),
        (1 - specificity) * alarm / alarm[truth == 0].mean(),
    )
    flipped = rng.random(len(x)) < wrong
    return Answers(x, truth, np.where(flipped, 1 - truth, truth), images)


@cache
def area_of_all(cell: Cell) -> float:
    rng = np.random.default_rng(7)
    return float(np.mean([auroc(a.scores, a.truth) for a in (draw(cell, rng, 50) for _ in range(33))]))


def planned(answers: Answers, n: int, rng: Rng) -> Design:
    found = strata_of(answers.scores, [int(v) for v in answers.judged], [""] * len(answers.scores), n)
    drawn = np.zeros(len(answers.scores), dtype=bool)
    for stratum, take in enumerate(found.take):
        drawn[rng.choice(np.flatnonzero(found.stratum == stratum), take, replace=False)] = True
    return Design(found.stratum, np.arange(len(drawn)), drawn)


def planned_whole(answers: Answers, n: int, rng: Rng) -> Design:
    """Images with all their answers, in strata by how many of these the judge calls hallucinated."""
    wrong = np.minimum(np.bincount(answers.images, answers.judged), 1).astype(np.int64)
    sizes = np.bincount(wrong)
    take = allocate(sizes.tolist(), [1.0, 2.0], n // 3)
    drawn = np.zeros(len(wrong), dtype=bool)
    for stratum, count in enumerate(take):
        drawn[rng.choice(np.flatnonzero(wrong == stratum), count, replace=False)] = True
    return Design(wrong[answers.images], answers.images, drawn[answers.images])


def without_judge(x: Floats, y: Floats, area: float) -> tuple[float, float, float]:
    """Error, whether the interval holds, and its width, of the AUROC of a sample; nan where there is none."""
    error = auroc(x, y) - area if 0 < y.sum() < len(y) else math.nan
    few = estimate_auroc(x, y)
    if few.interval is None:
        return error, math.nan, math.nan
    low, high = few.interval
    return error, low <= area <= high, high - low


def columns_alone(ours: Floats, alone: Floats, n: int) -> list[str]:
    """Return how often labels alone hold, their width where defined and in any sample, and what ours are worth."""
    widths = alone[:, 2]
    return [
        f"{np.nanmean(alone[:, 1]):.3f}",
        f"{np.nanmean(widths):.3f}",
        f"{np.nan_to_num(widths, nan=1.0).mean():.3f}",
        f"{n * float(np.nanmean(alone[:, 0] ** 2) / (ours[:, 0] ** 2).mean()):.0f}",
    ]


def measure(cell: Cell, samples: int) -> str:
    """Return a row of the table."""
    rng = np.random.default_rng(zlib.crc32(repr(cell).encode()))
    of_all = area_of_all(cell)
    ours, rates, alone, judges = [], [], [], []
    undefined = 0
    for _ in range(samples):
        answers = draw(cell, rng)
        x, y = answers.scores, answers.truth
        area = auroc(x, y)
        design = (planned_whole if cell.groups == "whole" else planned)(answers, cell.labels, rng)
        experts = [v if d else None for v, d in zip(y.tolist(), design.drawn, strict=True)]
        labels = verified(answers.judged.tolist(), experts, design, groups=answers.images.tolist())
        judges.append(auroc(x, answers.judged) - area)
        found = audited_auroc(x, labels)
        if found.value is None or found.interval is None or found.run_interval is None:
            undefined += 1
        else:
            (low, high), (wide_low, wide_high) = found.run_interval, found.interval
            ours.append((found.value - area, low <= area <= high, wide_low <= of_all <= wide_high, high - low))
        rate = audited_rate(labels)
        low, high = rate.run_interval or (0.0, 1.0)
        rates.append(((rate.value or 0.0) - y.mean(), low <= y.mean() <= high))
        chosen = rng.choice(len(y), cell.labels, replace=False)
        alone.append(without_judge(x[chosen], y[chosen], area))
    a, r, b = (np.array(rows, dtype=np.float64) for rows in (ours, rates, alone))
    held = float(a[:, 1].mean())
    columns = [
        cell.groups,
        f"{cell.prevalence}",
        cell.judge,
        f"{cell.labels}",
        f"{np.mean(judges):+.3f}",
        f"{a[:, 0].mean():+.4f}",
        f"{held:.3f} [{wilson(held, len(a), 0.95)[0]:.3f}]",
        f"{a[:, 2].mean():.3f}",
        f"{a[:, 3].mean():.3f}",
        *columns_alone(a, b, cell.labels),
        f"{r[:, 0].mean():+.4f}",
        f"{r[:, 1].mean():.3f}",
        f"{undefined} / {int(np.isnan(b[:, 1]).sum())}",
    ]
    return f"| {' | '.join(columns)} |"


CURVES = {
    "auprc": (audited_precision, lambda x, y: average_precision(x, y)),
    "aurc": (audited_risk_coverage, lambda x, y: area_under_risk_coverage(x, 1 - y)),
}


def measure_curve(cell: Cell, samples: int, curve: str) -> str:
    """Return a row of the table of a curve; *alone* is the same estimate without a judge."""
    rng = np.random.default_rng(zlib.crc32(repr((cell, curve)).encode()))
    estimate, of_truth = CURVES[curve]
    ours, alone, judges = [], [], []
    for _ in range(samples):
        answers = draw(cell, rng)
        x, y, images = answers.scores, answers.truth, answers.images.tolist()
        true = float(of_truth(x, y))
        chosen = np.zeros(len(y), dtype=bool)
        chosen[rng.choice(len(y), cell.labels, replace=False)] = True
        judges.append(float(of_truth(x, answers.judged)) - true)
        designs = (
            (ours, planned(answers, cell.labels, rng), answers.judged.tolist()),
            (alone, simple_random(chosen), [None] * len(y)),
        )
        for rows, design, judged in designs:
            experts = [v if d else None for v, d in zip(y.tolist(), design.drawn, strict=True)]
            found = estimate(x, verified(judged, experts, design, groups=images))
            if found.value is not None and found.run_interval is not None:
                low, high = found.run_interval
                rows.append((found.value - true, low <= true <= high, high - low))
    a, b = (np.array(rows, dtype=np.float64) for rows in (ours, alone))
    held, few = float(a[:, 1].mean()), float(b[:, 1].mean())
    columns = [
        curve.upper(),
        cell.groups,
        f"{cell.prevalence}",
        cell.judge,
        f"{cell.labels}",
        f"{np.mean(judges):+.3f}",
        f"{a[:, 0].mean():+.4f}",
        f"{held:.3f} [{wilson(held, len(a), 0.95)[0]:.3f}]",
        f"{a[:, 2].mean():.3f}",
        f"{few:.3f}",
        f"{b[:, 2].mean():.3f}",
        f"{cell.labels * float((b[:, 0] ** 2).mean() / (a[:, 0] ** 2).mean()):.0f}",
        f"{samples - len(a)} / {samples - len(b)}",
    ]
    return f"| {' | '.join(columns)} |"


def wikibio(path: Path) -> Answers:
    scores, truth, judged, images = [], [], [], []
    for place, row in enumerate(rows_of(path)):
        for label, ours, others in zip(row["labels"], row["judge_qwen35_9b"], row["judge_gemma_31b"], strict=True):
            scores.append(others.count("n") / max(len(others), 1))
            truth.append(float(label != "accurate"))
            judged.append(float(2 * ours.count("n") > len(ours)))
            images.append(place)
    return Answers(np.array(scores), np.array(truth), np.array(judged), np.array(images))


def triviaqa(path: Path) -> Answers:
    rows = rows_of(path)
    kept = [(row, label) for row, label in zip(rows, name_labels(rows), strict=True) if label is not None]
    scores = [float(len({text.strip().casefold() for text in row["samples"][1:]})) for row, _ in kept]
    same = [row["samples"][0].strip().casefold() == row["reference"].strip().casefold() for row, _ in kept]
    truth = np.array([label for _, label in kept], dtype=np.float64)
    return Answers(np.array(scores), truth, 1.0 - np.array(same), np.arange(len(kept)))


def measure_real(name: str, answers: Answers, n: int, samples: int) -> str:
    """Return a row: the same answers, labels of experts drawn again and again."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {n}".encode()))
    x, y = answers.scores, answers.truth
    area, by_judge = auroc(x, y), auroc(x, answers.judged)
    ours, alone = [], []
    for _ in range(samples):
        design = planned(answers, n, rng)
        experts = [v if d else None for v, d in zip(y.tolist(), design.drawn, strict=True)]
        labels = verified(answers.judged.tolist(), experts, design, groups=answers.images.tolist())
        found = audited_auroc(x, labels)
        if found.value is not None and found.run_interval is not None:
            low, high = found.run_interval
            ours.append((found.value - area, low <= area <= high, high - low))
        chosen = rng.choice(len(y), n, replace=False)
        alone.append(without_judge(x[chosen], y[chosen], area))
    a, b = (np.array(rows, dtype=np.float64) for rows in (ours, alone))
    held = float(a[:, 1].mean())
    columns = [
        name,
        f"{len(y)}, {y.mean():.2f} wrong",
        f"{area:.3f}",
        f"{by_judge:.3f}",
        f"{n}",
        f"{a[:, 0].mean():+.4f}",
        f"{held:.3f} [{wilson(held, len(a), 0.95)[0]:.3f}]",
        f"{a[:, 2].mean():.3f}",
        *columns_alone(a, b, n),
    ]
    return f"| {' | '.join(columns)} |"


def real(arguments: argparse.Namespace) -> None:
    titles = ["set", "answers", "AUROC", "by the judge", "labels", "bias", "held", "width", "alone: held"]
    titles += ["alone: width", "any sample", "worth"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    for name, path, read in (("WikiBio", arguments.wikibio, wikibio), ("TriviaQA", arguments.triviaqa, triviaqa)):
        if path is not None:
            answers = read(path)
            for n in arguments.labels:
                print(measure_real(name, answers, n, arguments.samples), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--labels", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--images", nargs="+", choices=SIZES, default=["equal", "heavy"])
    parser.add_argument("--area", type=float, default=AREA, help="AUROC of the score")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--prevalence", type=float, nargs="+", default=[0.1, 0.3])
    parser.add_argument("--judges", nargs="+", choices=JUDGES, default=list(JUDGES))
    parser.add_argument("--curves", nargs="+", choices=CURVES, help="these in place of the AUROC and the rate")
    parser.add_argument("--wikibio", type=Path)
    parser.add_argument("--triviaqa", type=Path)
    arguments = parser.parse_args()
    if arguments.wikibio or arguments.triviaqa:
        real(arguments)
        return
    cells = [
        Cell(*each, arguments.area)
        for each in product(arguments.images, arguments.prevalence, arguments.judges, arguments.labels)
    ]
    if arguments.curves:
        titles = ["number", "images", "hallucinated", "judge", "labels", "by the judge off by", "bias", "held", "width"]
        titles += ["alone: held", "alone: width", "worth", "undefined (alone)"]
        print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
        for curve, cell in product(arguments.curves, cells):
            print(measure_curve(cell, arguments.samples, curve), flush=True)
        return
    titles = ["images", "hallucinated", "judge", "labels", "judge's AUROC off by", "bias", "held", "like these"]
    titles += ["width", "alone: held", "alone: width", "any sample", "worth", "rate: bias", "rate: held"]
    titles += ["undefined (alone)"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(partial(measure, samples=arguments.samples), cells):
            print(row, flush=True)


if __name__ == "__main__":
    main()
