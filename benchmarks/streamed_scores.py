"""A store that is larger than the memory: labelled, clustered and scored block by block, by `hedge rescore STORE`.

    python benchmarks/streamed_scores.py [--questions 10000 100000 1000000] [--n 10] [--jobs 50] [--folder .]

As many jobs as `--jobs` says write a slice of synthetic documents each and make segments of it, as the jobs of an array
do. Then, in a process of its own each: `exact` clusters, and `embed` with a fixed threshold and a made-up encoder, so
that no model's time is in it. Prints seconds of CPU time, the largest memory and how both grow.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from scale import fill, made_up

from hedge_tasks.clustering import EmbeddingClustering, ExactClustering
from hedge_tasks.detectors.pipeline import summarise
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.from_store import run_from_store, stored_blocks
from hedge_tasks.runs.parts import score_parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="where the stores are made (default: the temporary folder)")
    parser.add_argument("--most-whole", type=int, default=10_000, help="questions up to which all is read at once, too")
    parser.add_argument("--most-embed", type=int, default=100_000, help="questions up to which `embed` is measured")
    parser.add_argument("--score", nargs=2, metavar=("BACKEND", "HOW"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.score is not None:
        print(json.dumps(scored(arguments.folder, *arguments.score)))
        return
    rows: list[dict[str, Any]] = []
    for questions in arguments.questions:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            store = Path(folder) / "store"
            size = questions // arguments.jobs
            for job in range(arguments.jobs):
                fill(store, range(job * size, (job + 1) * size), arguments.n)
            row: dict[str, Any] = {"questions": questions}
            row["MB"] = sum(file.stat().st_size for file in store.iterdir()) / 1e6
            for backend in ("exact", "embed") if questions <= arguments.most_embed else ("exact",):
                row |= {f"{backend} {name}": value for name, value in measured(store, backend, "blocks").items()}
            if questions <= arguments.most_whole:
                row |= {f"exact whole {name}": value for name, value in measured(store, "exact", "whole").items()}
                assert row["exact SE"] == row["exact whole SE"], "another number than at once"
            rows.append(row)
            print(json.dumps(row), flush=True)
    for before, after in pairwise(rows):
        steps = math.log(after["questions"] / before["questions"])
        both = [name for name in after if name in before and name.endswith((" s", " MB"))]
        grown = {name: math.log(after[name] / before[name]) / steps for name in both}
        print({name: round(exponent, 2) for name, exponent in grown.items()})


def measured(store: Path, backend: str, how: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(store), "--score", backend, how]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def scored(store: Path, backend: str, how: str) -> dict[str, Any]:
    """Seconds of CPU time and the largest memory of this process, and the AUROC of semantic entropy."""
    start = time.process_time()
    clustering = ExactClustering() if backend == "exact" else EmbeddingClustering(encoder=made_up, threshold=0.9)
    scorer = Scorer(backend, clustering)
    if how == "blocks":
        scores = score_parts(stored_blocks(store, None, "rule"), scorer)
    else:
        scores = scorer.score(run_from_store(store, None, "rule").answer_sets)
    read = time.process_time() - start
    summary = summarise(scores)
    auroc = summary["auroc"]["se"]
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    return {
        "scored s": read,
        "summarised s": time.process_time() - start - read,
        "peak MB": int(status["VmHWM"].split()[0]) / 1e3,
        "n": len(scores),
        "SE": [auroc.value, auroc.stderr],
    }


if __name__ == "__main__":
    main()
