"""How often a promised risk is broken, and how much is let through: many splits into calibration and truth.

    python benchmarks/guarantee.py RUN... [--detectors radflag,msp] [--risks 0.05,0.1,0.2]
    python benchmarks/guarantee.py --cells                 # made-up documents: errors depend on the sizes of groups
    python benchmarks/guarantee.py --from FILE...          # the tables of --json files

RUN is whatever `hedge report` reads: results of lmms-eval, run files, runs that `hedge import options` made. Each split
takes so many labelled documents (whole images, where questions share them) for `control_risk`, and counts what is
hallucinated among the accepted of all others. A promise counts as broken where that share is above the risk. It is a
count of a finite rest, so that a threshold of exactly the promised risk would be broken in half of the splits.

Scores are those that a guard sees (`hedge_tasks.guard.seen`). Beside it: a threshold read off the calibration
documents' own curve, the way papers do it; LTT (Angelopoulos et al. 2021) by fixed sequences from five starts with
Hoeffding-Bentkus p-values, of whole groups where there are some; where every document stands for itself, SGR (Geifman &
El-Yaniv 2017); *best*, the widest threshold whose risk holds on all documents; and *one test*, the best that a single
test reaches at a threshold fixed with that knowledge.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.guard.seen import columns
from hedge_tasks.judging.outcomes import DECLINED, outcome_of
from hedge_tasks.runs.run_files import Run, load_runs
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import wilson_interval
from hedge_tasks.statistics.grouped_risk import GroupedTest
from hedge_tasks.statistics.risk_control import binomial_p_value, control_risk


@dataclass(frozen=True)
class Outcome:
    """One detector of one run at one risk.

    Attributes:
        detector: its name, with `~EPSILON` for a predicted end.
        labels: of a split's calibration.
        given: splits with a promise; of those `broken` ones where it does not hold on the other documents.
        curve_broken: splits where a threshold off the calibration documents' curve breaks the risk.
        accepted: mean share let through, a split without a promise counting as none.
        sgr, sgr_broken: share that SGR lets through, and splits where it breaks the risk; None where there are groups.
        ltt, ltt_broken: the same of LTT.
        best: share of the widest threshold whose risk holds on all documents.
        one_test: greatest mean share of one test of one threshold, chosen with knowledge of all documents.
    """

    task: str
    model: str
    detector: str
    risk: float
    labels: int
    grouped: bool
    splits: int
    given: int
    broken: int
    curve_broken: int
    accepted: float
    sgr: float | None = None
    sgr_broken: int | None = None
    ltt: float | None = None
    ltt_broken: int | None = None
    best: float | None = None
    one_test: float | None = None


@dataclass(frozen=True)
class Data:
    """A detector's scores of the labelled documents."""

    scores: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    grouped: bool


def data_of(run: Run, scorer: Scorer, asked: Sequence[str], declined: str) -> dict[str, Data]:
    declining = {a.id for a in run.answer_sets if a.label is None and outcome_of(run.verdicts.get(a.id)) == DECLINED}
    sets = [a for a in run.answer_sets if a.label is not None or a.id in declining]
    names = [a.group if a.group is not None else f"document {i}" for i, a in enumerate(sets)]
    codes = np.unique(names, return_inverse=True)[1]
    declines = np.array([a.id in declining for a in sets])
    about = (np.array([1 if a.label is None else a.label for a in sets], float), codes, len(set(codes)) < len(codes))
    found = columns(sets, scorer, list(dict.fromkeys(asked)))
    # A guard lets no declined answer through: no threshold is as high.
    kept = {
        name: np.where(
            declines & (declined != "wrong"), math.inf, [math.nan if s[name] is None else s[name] for s in of.scores]
        )
        for name, of in found.items()
    }
    return {name: Data(kept[name], *about) for name in asked if not np.isnan(kept[name]).all()}


def splits_of(data: Data, n_labels: int, n_splits: int) -> Iterator[np.ndarray]:
    """Masks of the documents of calibration: whole groups."""
    names, sizes = np.unique(data.groups, return_counts=True)
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(names))
        n_taken = int(np.searchsorted(np.cumsum(sizes[order]), n_labels)) + 1
        taken = np.zeros(len(names), bool)
        taken[order[:n_taken]] = True
        yield taken[data.groups]


def outcomes(about: tuple[str, str], name: str, data: Data, arguments: argparse.Namespace) -> list[Outcome]:
    risks = [float(risk) for risk in arguments.risks.split(",")]
    labels = min(arguments.labels, int(0.6 * len(data.labels)))
    tallies: dict[float, dict[str, list[float]]] = {risk: defaultdict(list) for risk in risks}
    fixed = np.unique(np.quantile(data.scores[np.isfinite(data.scores)], np.arange(1, 51) / 50, method="inverted_cdf"))
    for seed, chosen in enumerate(splits_of(data, labels, arguments.splits)):
        x, y, groups = data.scores[chosen], data.labels[chosen], data.groups[chosen] if data.grouped else None
        rest = data.scores[~chosen], data.labels[~chosen]
        seen = (x, y, groups)
        if arguments.unlabelled:
            every = data.groups if data.grouped else None
            seen = (data.scores, np.where(chosen, data.labels, math.nan), every)
        for risk in risks:
            found = control_risk(
                *seen[:2], groups=seen[2], risk=risk, confidence=arguments.confidence, seed=seed
            ).chosen
            threshold = -math.inf if found is None else found.threshold
            tally = tallies[risk]
            tally["given"].append(found is not None)
            tally["broken"].append(exceeds(*rest, threshold, risk))
            tally["curve"].append(exceeds(*rest, off_the_curve(x, y, risk), risk))
            tally["accepted"].append((rest[0] <= threshold).mean())
            if groups is None:
                peer = sgr(x, y, risk, 1 - arguments.confidence)
                tally["sgr"].append((rest[0] <= peer).mean())
                tally["sgr_broken"].append(exceeds(*rest, peer, risk))
            peer = ltt(x, y, groups, fixed, risk, 1 - arguments.confidence)
            tally["ltt"].append((rest[0] <= peer).mean())
            tally["ltt_broken"].append(exceeds(*rest, peer, risk))
            tally["one_test"].append(rejected(x, y, groups, fixed, risk, 1 - arguments.confidence))
    return [_outcome(about, name, data, risk, labels, arguments.splits, tallies[risk], fixed) for risk in risks]


def _outcome(
    names: tuple[str, str],
    name: str,
    data: Data,
    risk: float,
    labels: int,
    splits: int,
    tally: Mapping[str, list[Any]],
    fixed: np.ndarray,
) -> Outcome:
    given, broken, curve = (int(sum(tally[key])) for key in ("given", "broken", "curve"))
    about = (*names, name, risk, labels, data.grouped, splits, given, broken, curve)
    shares = np.array([(data.scores <= t).mean() for t in fixed])
    holds = np.array([not exceeds(data.scores, data.labels, t, risk) for t in fixed])
    peer = {"sgr": float(np.mean(tally["sgr"])), "sgr_broken": int(sum(tally["sgr_broken"]))} if tally["sgr"] else {}
    return Outcome(
        *about,
        accepted=float(np.mean(tally["accepted"])),
        best=float((shares * holds).max()),
        one_test=float((np.mean(tally["one_test"], axis=0) * shares * holds).max()),
        ltt=float(np.mean(tally["ltt"])),
        ltt_broken=int(sum(tally["ltt_broken"])),
        **peer,
    )


def rejected(
    x: np.ndarray, y: np.ndarray, groups: np.ndarray | None, fixed: np.ndarray, risk: float, level: float
) -> np.ndarray:
    """By threshold, whether one test at the whole level rejects that its risk is too high."""
    order = np.argsort(x, kind="stable")
    counts = np.searchsorted(x[order], fixed, side="right")
    if groups is None:
        wrong = np.concatenate([[0], np.cumsum(y[order])])
        return np.array([binomial_p_value(int(n), int(wrong[n]), risk) <= level for n in counts])
    test = GroupedTest(y[order] == 1, groups[order], risk, seed=0)
    return np.asarray(test.p_values(counts, level) <= level)


def ltt(x: np.ndarray, y: np.ndarray, groups: np.ndarray | None, fixed: np.ndarray, risk: float, level: float) -> float:
    """Angelopoulos et al. 2021: fixed sequences over fixed thresholds, from five starts that share the level."""
    codes = np.arange(len(x)) if groups is None else np.unique(groups, return_inverse=True)[1]
    largest = np.bincount(codes).max()
    below = x[:, None] <= fixed
    total = (below * (y - risk)[:, None]).sum(axis=0)
    n = np.array([len(np.unique(codes[column])) for column in below.T])
    losses = (total + risk * largest * n) / largest  # of each group in [0, 1], risk in the mean at most
    passed = [hoeffding_bentkus(int(k), float(sum_), risk) <= level / 5 for k, sum_ in zip(n, losses, strict=True)]
    found = -math.inf
    for start in range(0, len(fixed), max(1, math.ceil(len(fixed) / 5))):
        ends = [i for i in range(start, len(fixed)) if not passed[i]]
        end = min(ends, default=len(fixed))
        found = max(found, float(fixed[end - 1])) if end > start else found
    return found


def hoeffding_bentkus(n: int, total: float, risk: float) -> float:
    """P-value for a mean of at least the risk, of n values in [0, 1] with that sum (LTT, proposition 1)."""
    if n == 0 or total >= n * risk:
        return 1.0
    mean = max(total / n, 1e-12)
    entropy = mean * math.log(mean / risk) + (1 - mean) * math.log((1 - mean) / (1 - risk))
    return min(math.exp(-n * entropy), math.e * binomial_p_value(n, math.ceil(total), risk))


def sgr(x: np.ndarray, y: np.ndarray, risk: float, level: float) -> float:
    """Geifman & El-Yaniv 2017, algorithm 2: a binary search whose steps share the level; -inf where nothing holds."""
    order = np.argsort(x, kind="stable")
    xs, wrong = x[order], np.concatenate([[0], np.cumsum(y[order])])
    steps = math.ceil(math.log2(len(x)))
    low, high, found = 0, len(x) - 1, -math.inf
    for _ in range(steps):
        middle = (low + high + 1) // 2
        n = int(np.searchsorted(xs, xs[middle], side="right"))
        if binomial_p_value(n, int(wrong[n]), risk) <= level / steps:
            found, low = max(found, float(xs[middle])), middle
        else:
            high = middle - 1 if high > low else middle
    return found


def exceeds(scores: np.ndarray, labels: np.ndarray, threshold: float, risk: float) -> bool:
    accepted = scores <= threshold
    return bool(accepted.any() and labels[accepted].mean() > risk)


def off_the_curve(x: np.ndarray, y: np.ndarray, risk: float) -> float:
    """The largest threshold whose share of hallucinations on the same documents is at most the risk."""
    order = np.argsort(x, kind="stable")
    ends = np.append(x[order][1:] != x[order][:-1], True)
    risks = np.cumsum(y[order]) / np.arange(1, len(x) + 1)
    fine = np.flatnonzero(ends & (risks <= risk))
    return float(x[order][fine[-1]]) if len(fine) else -math.inf


def cells() -> Iterator[tuple[str, Data]]:
    """Documents whose errors depend on the size of their group, 20,000 groups each; the risk grows with the score.

    *Large groups are worse*: no error in groups of one, in groups of five the more the greater the score. *Small groups
    are worse*: the other way round. *Patients*: as many documents as a Pareto distribution says, at most 20; their
    answers are alike, and oftener wrong where there are many.
    """
    rng, n = np.random.default_rng(1), 20_000
    sizes = np.where(rng.random(n) < 0.8, 1, 5)
    codes = np.repeat(np.arange(n), sizes)
    scores, chance = rng.random(len(codes)), rng.random(len(codes))
    for name, worse in (("large groups are worse", sizes == 5), ("small groups are worse", sizes == 1)):
        yield name, Data(scores, (chance < 1.1 * scores * worse[codes]).astype(float), codes, True)
    sizes = np.minimum(np.ceil(rng.pareto(1.2, n) + 1e-9), 20).astype(int)
    codes = np.repeat(np.arange(n), sizes)
    scores = np.clip(rng.random(n)[codes] + rng.normal(0, 0.1, len(codes)), 0, 1)
    wrong = rng.random(n)[codes] < np.minimum(1, 0.1 * scores * np.sqrt(sizes[codes]) + 0.3 * scores**2)
    yield "patients", Data(scores, wrong.astype(float), codes, True)


# --- tables -----------------------------------------------------------------------------------------------------------


def text(found: Sequence[Outcome]) -> str:
    """One table of promises; runs of several models on one task are one row."""
    return _promises(found)


def _promises(found: Sequence[Outcome]) -> str:
    header = (
        "| task | models | detector | risk | promised in | broken | most in a model | off the curve | let through "
        "| SGR | SGR broken | LTT | LTT broken | one test | best |"
    )
    lines = [header, "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for (task, detector, risk), some in _grouped(found).items():
        splits, broken = sum(o.splits for o in some), sum(o.broken for o in some)
        low, high = wilson_interval(broken, splits)
        worst = max(some, key=lambda o: o.broken / o.splits)
        bounds = wilson_interval(worst.broken, worst.splits)
        shares = [o.accepted for o in some]
        spread = f" ({min(shares):.0%} to {max(shares):.0%})" if len(some) > 1 else ""
        curve = sum(o.curve_broken for o in some) / splits
        lines.append(
            f"| {task} | {len(some)} | {detector} | {risk:g} | {sum(o.given for o in some) / splits:.0%} | "
            f"{broken / splits:.2%} [{low:.2%}, {high:.2%}] | {worst.broken / worst.splits:.1%} "
            f"[{bounds[0]:.1%}, {bounds[1]:.1%}] | {curve:.0%} | {np.mean(shares):.1%}{spread} | "
            + " | ".join(
                [
                    _mean(some, "sgr"),
                    _broken(some, "sgr"),
                    _mean(some, "ltt"),
                    _broken(some, "ltt"),
                    _mean(some, "one_test"),
                    _mean(some, "best"),
                ]
            )
            + " |"
        )
    return "\n".join(lines)


def _mean(some: Sequence[Outcome], name: str) -> str:
    values = [value for o in some if (value := getattr(o, name)) is not None]
    return f"{np.mean(values):.1%}" if values else ""


def _broken(some: Sequence[Outcome], peer: str) -> str:
    counts = [(count, o.splits) for o in some if (count := getattr(o, f"{peer}_broken")) is not None]
    return f"{sum(b for b, _ in counts) / sum(n for _, n in counts):.2%}" if counts else ""


def _grouped(found: Sequence[Outcome]) -> dict[tuple[str, str, float], list[Outcome]]:
    groups: dict[tuple[str, str, float], list[Outcome]] = {}
    for o in found:
        groups.setdefault((o.task, o.detector, o.risk), []).append(o)
    return groups


def runs_of(arguments: argparse.Namespace) -> Iterator[tuple[Run, Scorer]]:
    for path in arguments.runs:
        for run in load_runs(path, trust=True):
            yield run, scorer_of(run, arguments.filter)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--cells", action="store_true", help="made-up documents in groups")
    parser.add_argument("--detectors", default="msp,radflag,radflag~0.01,discrete_se,se,n_clusters")
    parser.add_argument("--filter", help="clustering filter of the runs (default: their first)")
    parser.add_argument("--risks", default="0.05,0.1,0.2")
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument(
        "--declined",
        choices=("not-accepted", "wrong"),
        default="not-accepted",
        help='"I don\'t know": never let through, as a guard does, or an answer that is wrong',
    )
    parser.add_argument("--labels", type=int, default=500, help="of a calibration; at most 60 %% of the documents")
    parser.add_argument(
        "--unlabelled", action="store_true", help="the documents without labels place the starts, by their scores"
    )
    parser.add_argument("--splits", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--from", type=Path, nargs="+", dest="given", metavar="FILE")
    arguments = parser.parse_args()
    found: list[Outcome] = []
    for file in arguments.given or ():
        rows: list[dict[str, Any]] = json.loads(file.read_text())
        found += [Outcome(**row) for row in rows]
    for task, data in cells() if arguments.cells else ():
        found += outcomes((task, "made up"), "score", data, arguments)
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(o) for o in found], indent=1))
    for run, scorer in runs_of(arguments):
        started = time.process_time()
        for name, data in data_of(run, scorer, arguments.detectors.split(","), arguments.declined).items():
            found += outcomes((run.task, run.model), name, data, arguments)
        if arguments.json:  # after every run: a killed one loses little
            arguments.json.write_text(json.dumps([asdict(o) for o in found], indent=1))
        print(f"<!-- {run.task} of {run.model}: {time.process_time() - started:.0f} s of CPU time -->", flush=True)
    print(text(found))


if __name__ == "__main__":
    main()
