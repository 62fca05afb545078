"""Whether a guard should fuse several detectors: half of the labels weigh them, the other half prove the promise.

    python benchmarks/fused_guard.py RUN [RUN ...] --splits 40

Over splits of the documents by group: answers let through, and splits whose promise is broken, of one detector that is
fixed beforehand, of the best of three (corrected for having tried three), and of a logistic regression on the three
that is fitted on half of the calibration's groups (`hedge calibrate --detectors fused:se+radflag+msp`).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from guarantee import Data, data_of, exceeds, runs_of, splits_of
from sklearn.linear_model import LogisticRegression

from hedge_tasks.statistics.risk_control import control_risk

MEMBERS = ("se", "radflag", "msp")
WAYS = ("msp", "best of three", "fused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--filter")
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--splits", type=int, default=40)
    parser.add_argument("--risks", default="0.05,0.1,0.2")
    parser.add_argument("--confidence", type=float, default=0.9)
    arguments = parser.parse_args()
    arguments.triviaqa = arguments.from_ = None
    tally: dict[tuple[str, float, str], list[tuple[float, bool]]] = defaultdict(list)
    for run, scorer in runs_of(arguments):
        data = data_of(run, scorer, MEMBERS, "not-accepted")
        if len(data) == len(MEMBERS):
            for risk in map(float, arguments.risks.split(",")):
                for way, found in zip(WAYS, of_run(data, arguments, risk), strict=True):
                    tally[run.task, risk, way] += found
    print("| task | risk | way | splits | let through | broken |\n|---|--:|---|--:|--:|--:|")
    for (task, risk, way), found in tally.items():
        shares, broken = zip(*found, strict=True)
        print(f"| {task} | {risk:g} | {way} | {len(found)} | {np.mean(shares):.3f} | {np.mean(broken):.2%} |")


def of_run(data: dict[str, Data], arguments: argparse.Namespace, risk: float) -> list[list[tuple[float, bool]]]:
    """Shares let through and whether the promise was broken, by way and split."""
    one = data["msp"]
    table = np.stack([data[name].scores for name in MEMBERS], axis=1)
    found: list[list[tuple[float, bool]]] = [[] for _ in WAYS]
    for seed, chosen in enumerate(splits_of(one, min(arguments.labels, int(0.6 * len(one.labels))), arguments.splits)):
        options = {"risk": risk, "confidence": arguments.confidence, "seed": seed}
        groups = one.groups if one.grouped else None

        def promised(scores: np.ndarray, on: np.ndarray, n: int = 1) -> float:
            of = None if groups is None else groups[on]  # noqa: B023
            best = control_risk(scores[on], one.labels[on], groups=of, n_detectors=n, **options).chosen  # noqa: B023
            return -np.inf if best is None else best.threshold

        tried = [(promised(column, chosen, len(MEMBERS)), column) for column in table.T]
        calibration = max(tried, key=lambda of: float((of[1][chosen] <= of[0]).mean()))
        names = np.unique(one.groups[chosen])
        fitted = chosen & np.isin(one.groups, np.random.default_rng(seed).permutation(names)[: len(names) // 2])
        fused = _fused(table, one.labels, fitted)
        ways = [(promised(one.scores, chosen), one.scores), calibration, (promised(fused, chosen & ~fitted), fused)]
        for of, (threshold, scores) in zip(found, ways, strict=True):
            rest = scores[~chosen], one.labels[~chosen]
            of.append((float((rest[0] <= threshold).mean()), exceeds(*rest, threshold, risk)))
    return found


def _fused(table: np.ndarray, labels: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    told = np.isfinite(table).all(axis=1)
    mean, scale = table[fitted & told].mean(axis=0), table[fitted & told].std(axis=0)
    scale[scale == 0] = 1
    model = LogisticRegression(max_iter=1000).fit((table[fitted & told] - mean) / scale, labels[fitted & told])
    scores = np.full(len(labels), np.inf)  # what has no score is not let through
    scores[told] = model.decision_function((table[told] - mean) / scale)
    return scores


if __name__ == "__main__":
    main()
