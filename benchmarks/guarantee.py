"""How often a promised risk is broken, and how much is let through: many splits into calibration and truth.

    python benchmarks/guarantee.py RUN... [--detectors msp,radflag] [--risks 0.05,0.1,0.2] [--labels 500]

RUN is whatever `hedge report` reads: results of lmms-eval, run files, runs that `hedge import options` made. Each split
takes so many labelled documents (whole images, where questions share them) for `control_risk`, and counts what is
hallucinated among the accepted of all others. A promise counts as broken where that share is above the risk. It is a
count of a finite rest, so that a threshold of exactly the promised risk would be broken in half of the splits.

Beside it: a threshold read off the calibration documents' own curve, the way papers do it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from hedge_tasks.detectors.registry import get
from hedge_tasks.runs.run_files import Run, load_runs
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import wilson_interval
from hedge_tasks.statistics.risk_control import control_risk


@dataclass(frozen=True)
class Outcome:
    """One detector of one run at one risk."""

    task: str
    model: str
    detector: str
    risk: float
    splits: int
    given: int
    broken: int
    curve_broken: int
    accepted: float


@dataclass(frozen=True)
class Data:
    scores: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    grouped: bool


def data_of(run: Run, detector: str, filter_name: str | None) -> Data:
    scorer = scorer_of(run, filter_name)
    scores = [s for s in scorer.with_detectors([detector]).score(run.answer_sets) if s.label is not None]
    names = [s.group if s.group is not None else f"document {i}" for i, s in enumerate(scores)]
    codes = np.unique(names, return_inverse=True)[1]
    values = [math.nan if s[detector] is None else s[detector] for s in scores]
    return Data(np.array(values), np.array([s.label for s in scores], float), codes, len(set(codes)) < len(codes))


def outcome(run: Run, detector: str, data: Data, risk: float, arguments: argparse.Namespace) -> Outcome:
    given = broken = curve = 0
    shares = []
    for split in range(arguments.splits):
        chosen = calibration(data, arguments.labels, split)
        x, y, groups = data.scores[chosen], data.labels[chosen], data.groups[chosen] if data.grouped else None
        found = control_risk(x, y, risk=risk, confidence=arguments.confidence, groups=groups, seed=split).chosen
        curve += exceeds(data, chosen, off_the_curve(x, y, risk), risk)
        if found is not None:
            given += 1
            broken += exceeds(data, chosen, found.threshold, risk)
        shares.append(0.0 if found is None else float((data.scores[~chosen] <= found.threshold).mean()))
    about = (run.task, run.model, detector, risk, arguments.splits)
    return Outcome(*about, given, broken, curve, float(np.mean(shares)))


def calibration(data: Data, n_labels: int, seed: int) -> np.ndarray:
    names, sizes = np.unique(data.groups, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    n_taken = int(np.searchsorted(np.cumsum(sizes[order]), n_labels)) + 1
    return np.isin(data.groups, names[order[:n_taken]])


def exceeds(data: Data, chosen: np.ndarray, threshold: float, risk: float) -> bool:
    accepted = ~chosen & (data.scores <= threshold)
    return bool(accepted.any() and data.labels[accepted].mean() > risk)


def off_the_curve(x: np.ndarray, y: np.ndarray, risk: float) -> float:
    """The largest threshold whose share of hallucinations on the same documents is at most the risk."""
    order = np.argsort(x, kind="stable")
    ends = np.append(x[order][1:] != x[order][:-1], True)
    risks = np.cumsum(y[order]) / np.arange(1, len(x) + 1)
    fine = np.flatnonzero(ends & (risks <= risk))
    return float(x[order][fine[-1]]) if len(fine) else -math.inf


def text(outcomes: Sequence[Outcome]) -> str:
    lines = ["| task | model | detector | risk | promised in | broken | off the curve | let through |"]
    lines.append("|---|---|---|--:|--:|--:|--:|--:|")
    for o in outcomes:
        low, high = wilson_interval(o.broken, o.splits)
        lines.append(
            f"| {o.task} | {o.model} | {o.detector} | {o.risk:g} | {o.given / o.splits:.1%} | "
            f"{o.broken / o.splits:.1%} [{low:.1%}, {high:.1%}] | {o.curve_broken / o.splits:.1%} | {o.accepted:.1%} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--detectors", default="msp,radflag")
    parser.add_argument("--filter", help="clustering filter of the runs (default: their first)")
    parser.add_argument("--risks", default="0.05,0.1,0.2")
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--splits", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    outcomes = []
    for path in arguments.runs:
        for run in load_runs(path, trust=True):
            for detector in arguments.detectors.split(","):
                data = data_of(run, get(detector).name, arguments.filter)
                risks = map(float, arguments.risks.split(","))
                outcomes += [outcome(run, detector, data, risk, arguments) for risk in risks]
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
    print(text(outcomes))


if __name__ == "__main__":
    main()
