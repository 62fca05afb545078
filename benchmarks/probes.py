"""Whether the interval of a cross-fitted ROC-AUC covers what the detector is worth, fitting included.

    python benchmarks/probes.py [--runs 200] [--cells 0,1] [--kept RUNS.jsonl]
    python benchmarks/probes.py --seconds

States are normal, of `width` dimensions at `depths` depths, one of which moves with the label by `shift`; images share
a part of both state and label. What the detector is worth is the mean of its ROC-AUC over runs of the same size: the
interval is of one run. Useless states (`shift` 0) are worth 0.5. "Plain" intervals leave out the error of fitting.
"Within" compares only documents of one image. "Found" is the share of runs whose interval is above 0.5 as a whole.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.detectors.probes.crossfit import REPEATS, SHUFFLES, cross_fitted, shuffled
from hedge_tasks.detectors.probes.registry import fitted
from hedge_tasks.errors import DataError
from hedge_tasks.measures.probe_table import CONTROLS
from hedge_tasks.statistics import estimate_auroc, stratified_auroc


@dataclass(frozen=True)
class Cell:
    """A setting.

    Attributes:
        detector, documents, width, depths, shift: as above.
        cut: of the hidden number that is a label above it; 0 is half of the documents.
        most: documents of an image, one to so many.
        decay: whether dimension k of the states has variance 1 / k^2, turned at random: few directions carry all.
    """

    detector: str
    documents: int
    shift: float
    width: int = 24
    depths: int = 1
    cut: float = 0.6
    most: int = 7
    decay: bool = False

    @property
    def about(self) -> str:
        """The settings that are not the usual ones, in words."""
        words = [f"width {self.width}"] if self.width != 24 else []
        words += [f"{self.depths} depths"] if self.depths > 1 else []
        words += ["one document an image"] if self.most == 1 else []
        words += ["rare errors"] if self.cut > 1 else []
        words += ["few directions"] if self.decay else []
        return ", ".join(words)


LINEAR, DISTANCE = "linear_probe", "relative_mahalanobis"
CELLS = [
    Cell(LINEAR, 120, 0.0),
    Cell(DISTANCE, 120, 0.0),
    Cell(LINEAR, 120, 0.0, width=60, decay=True),
    Cell(LINEAR, 120, 1.5),
    Cell(LINEAR, 120, 4.0),
    Cell(DISTANCE, 120, 4.0),
    Cell(LINEAR, 200, 0.0, cut=1.5),
    Cell(LINEAR, 120, 0.0, width=1),
    Cell(LINEAR, 120, 0.0, most=1, cut=0.0),
    Cell(LINEAR, 120, 0.0, depths=3),
    Cell(DISTANCE, 120, 1.5),
    Cell(LINEAR, 400, 0.0),
    Cell(LINEAR, 400, 0.5),
    Cell(LINEAR, 120, 0.0, width=200),
    Cell(LINEAR, 120, 1.5, most=1, cut=0.0),
    Cell(LINEAR, 120, 0.5),
]


def one_run(cell: Cell, seed: int) -> dict[str, Any]:
    """ROC-AUCs and intervals of one simulated run; empty where they are undefined."""
    n, width = cell.documents, cell.width
    rng = np.random.default_rng([seed, n, round(cell.shift * 10), width, cell.depths])
    images = np.repeat(np.arange(n), rng.integers(1, cell.most + 1, size=n))[:n]
    hidden = 0.6 * rng.normal(size=n)[images] + rng.normal(size=n)
    labels = (hidden > cell.cut).astype(np.int64)
    shape = (n, cell.depths, width)
    states = rng.normal(size=shape) + (0.5 * rng.normal(size=shape)[images] if cell.most > 1 else 0.0)
    states[:, -1, 0] += cell.shift * labels
    if cell.decay:
        turn = np.linalg.qr(np.random.default_rng(0).normal(size=(width, width)))[0]
        states = states / (1 + np.arange(width)) @ turn
    groups, detector = [str(i) for i in images], fitted(cell.detector)
    try:
        values = cross_fitted(detector, states, labels, labels, groups, seed=seed)
        control = shuffled(detector, states, labels, labels, groups, strata=groups, seed=seed)
    except DataError:
        return {}
    found: dict[str, Any] = {"inflation": control.inflation, "inflation_within": control.within}
    for name, factor in (("plain", 1.0), ("pooled", control.inflation)):
        number = estimate_auroc(values, labels, groups=groups, inflation=factor)
        found[name] = None if number.value is None or number.interval is None else [number.value, *number.interval]
    for name, factor in (("plain_within", 1.0), ("within", control.within)):
        number = stratified_auroc(values, labels, groups, groups=groups, inflation=factor, each=False)
        found[name] = None if number.value is None or number.interval is None else [number.value, *number.interval]
    return found


def runs_of(cell: Cell, runs: int, kept: Path | None) -> list[dict[str, Any]]:
    """The runs of a cell; those that a file has are not made again."""
    known: dict[int, dict[str, Any]] = {}
    if kept is not None and kept.exists():
        lines = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
        known = {line["seed"]: line["run"] for line in lines if line["cell"] == repr(cell)}
    for seed in range(runs):
        if seed not in known:
            known[seed] = one_run(cell, seed)
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"cell": repr(cell), "seed": seed, "run": known[seed]}) + "\n")
    return [known[seed] for seed in range(runs)]


def covered(intervals: npt.NDArray[np.float64], worth: float) -> float:
    """Share of intervals, rows of (value, low, high), that hold a number; NaN where there are none."""
    return (
        float("nan") if not len(intervals) else float(((intervals[:, 1] <= worth) & (worth <= intervals[:, 2])).mean())
    )


def cell_row(cell: Cell, runs: Sequence[dict[str, Any]]) -> str:
    """A row of the table."""
    columns = {
        name: np.array([run[name] for run in runs if run.get(name)], dtype=np.float64).reshape(-1, 3)
        for name in ("pooled", "plain", "within", "plain_within")
    }
    pooled = columns["pooled"]
    worth = {name: 0.5 if cell.shift == 0 or not len(of) else float(of[:, 0].mean()) for name, of in columns.items()}
    share = {name: covered(of, worth[name]) for name, of in columns.items()}
    error = np.sqrt(share["pooled"] * (1 - share["pooled"]) / len(pooled))
    factor = np.mean([run["inflation"] for run in runs if run])
    plain = columns["plain"]
    cells = [
        *(cell.detector, str(cell.documents), f"{cell.shift:g}", cell.about, str(len(pooled))),
        *(f"{pooled[:, 0].mean():.3f}", f"{share['pooled']:.3f} ± {error:.3f}", f"{share['plain']:.3f}"),
        *(f"{np.median(of[:, 2] - of[:, 1]):.3f}" for of in (pooled, plain)),
        *(f"{factor:.2f}", f"{(pooled[:, 1] > 0.5).mean():.3f}"),
        *("" if np.isnan(share[name]) else f"{share[name]:.3f}" for name in ("within", "plain_within")),
    ]
    return f"| {' | '.join(cells)} |"


def seconds() -> str:
    """CPU time of one partition on as much as VQA-RAD has, at the width of a model of 7 billion parameters."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(451, 3, 4096)).astype(np.float32)
    labels, groups = rng.integers(0, 2, 451), [str(i // 2) for i in range(451)]
    lines = []
    for name in (LINEAR, DISTANCE):
        start = time.process_time()
        cross_fitted(fitted(name), states, labels, labels, groups, repeats=1)
        taken = time.process_time() - start
        whole = REPEATS * (1 + SHUFFLES) + CONTROLS
        lines.append(f"{name}: {taken:.1f} s a partition; {whole} partitions with all controls: {whole * taken:.0f} s")
    return "\n".join(lines)


HEADS = (
    *("detector", "documents", "shift", "states", "runs", "mean ROC-AUC", "covered (of .95)", "plain covered"),
    *("median width", "plain width", "variance times", "found", "within: covered", "within: plain covered"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--cells", help="numbers of cells, with commas between, from 0 (default: all)")
    parser.add_argument(
        "--kept", type=Path, help="a file of runs: what is there is not made again, what is new is added"
    )
    parser.add_argument("--seconds", action="store_true", help="time fitting at the usual size, and stop")
    arguments = parser.parse_args()
    if arguments.seconds:
        print(seconds())
        return
    chosen = [CELLS[int(i)] for i in arguments.cells.split(",")] if arguments.cells else CELLS
    print(f"| {' | '.join(HEADS)} |\n|---|--:|--:|---|{'--:|' * (len(HEADS) - 4)}")
    for cell in chosen:
        print(cell_row(cell, runs_of(cell, arguments.runs, arguments.kept)), flush=True)


if __name__ == "__main__":
    main()
