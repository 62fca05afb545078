"""How often is a promise broken that rests on experts' labels, and one that rests on a judge's?

    python benchmarks/audited_promise.py [--splits 1000]

Runs of 1,000 answers have scores in tenths, and a risk of hallucination of .02 + .4 score. The judge misses 35 % of the
hallucinations (`at random`), or those of low scores above all (`follows`). Labels of experts are planned as
`hedge audit plan` does, and tested as `hedge calibrate --audit` does: at most 10 % of what is let through,
with a confidence of 90 %. "broken": how often the threshold's own risk is higher; "promised": how often there is one.
"""

from __future__ import annotations

import argparse
import math
import random

import numpy as np

from hedge_tasks.guard.by_experts import drawn_alike
from hedge_tasks.judging.designed import MEANINGS, ExpertAudit
from hedge_tasks.judging.strata import strata_of
from hedge_tasks.statistics.risk_control import control_risk

N, RISK, CONFIDENCE, SENSITIVITY = 1000, 0.1, 0.9, 0.65


def broken(threshold: float) -> bool:
    grid = np.arange(0, threshold + 1e-9, 0.1)
    return float(np.mean(0.02 + 0.4 * grid)) > RISK


def row(judge: str, budget: int, splits: int) -> str:
    rng = np.random.default_rng(11)
    counts = np.zeros((2, 2))  # by experts and by the judge: promised, broken
    kept = 0
    for split in range(splits):
        x = np.floor(10 * rng.random(N)) / 10
        y = (rng.random(N) < 0.02 + 0.4 * x).astype(int)
        seen = SENSITIVITY if judge == "at random" else np.clip(SENSITIVITY * 2 * x, 0, 1)
        judged = y * (rng.random(N) < seen)
        found = strata_of(judged.tolist(), budget)
        ids = [str(i) for i in range(N)]
        said = {ids[i]: MEANINGS[0 if y[i] else 1] for i in found.drawn(random.Random(split))}
        alike = drawn_alike(ExpertAudit(dict(zip(ids, found.stratum.tolist(), strict=True)), said), split)
        kept += len(alike)
        by_experts = np.array([y[i] if id in alike else math.nan for i, id in enumerate(ids)])
        for side, labels in enumerate((by_experts, judged.astype(float))):
            chosen = control_risk(x, labels, risk=RISK, confidence=CONFIDENCE, seed=split).chosen
            if chosen is not None:
                counts[side] += 1, broken(chosen.threshold)
    experts, by_judge = counts / splits
    return (
        f"| {judge} | {budget} | {kept / splits:.0f} | {experts[0]:.3f} | {experts[1]:.3f} | {by_judge[0]:.3f} | "
        f"{by_judge[1]:.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=1000)
    splits = parser.parse_args().splits
    print("| judge | labels | tested | promised by experts | broken | promised by the judge | broken |")
    print("|---|---|---|---|---|---|---|")
    for judge in ("at random", "follows"):
        for budget in (100, 200, 400):
            print(row(judge, budget, splits), flush=True)
    print(f"Allowed: {1 - CONFIDENCE:.2f}, with two Monte Carlo errors {0.1 + 2 * math.sqrt(0.09 / splits):.3f}")


if __name__ == "__main__":
    main()
