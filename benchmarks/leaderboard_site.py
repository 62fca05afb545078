"""How long a leaderboard's site of many entries takes, and how large its pages are.

    python benchmarks/leaderboard_site.py [--models 200] [--tasks 8] [--documents 2000] [--look-at 2] [--unlabelled 0]

Every model has an entry on every task. What is timed: one entry that is looked at for the first time (validated, all
detectors scored at two prices, its page drawn), the mean of `--look-at`; then a build where all entries are known from
an earlier one (`--cache`), as after a merged pull request: reading every file's bytes, what was kept of it, places and
comparisons of all pairs of a task, all pages. Known entries are made from one real one, with labels and an order of
scores of their own, and aggregates that fit; the files have the size of real ones.

`--unlabelled 0.02` takes labels from random documents of every entry, as a judge that is a model does; then no two
entries have the same documents, and every pair is compared by itself.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from finished_runs import finished_run

from hedge_tasks.data.manifests import manifests_of
from hedge_tasks.leaderboard import build_site, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.detector_ranks import Priced
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.kept import circumstances_of, save
from hedge_tasks.runs.editions import edition_for
from hedge_tasks.statistics import estimate_auroc, estimate_rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--look-at", type=int, default=2, help="entries that are looked at for the first time")
    parser.add_argument("--unlabelled", type=float, default=0.0, help="share of documents")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure(folder, arguments)


def measure(folder: Path, arguments: argparse.Namespace) -> None:
    first, entries, cache = (folder / name for name in ("first", "entries", "cache"))
    for path in (first, entries, cache):
        path.mkdir()
    for i in range(arguments.look_at):
        run = finished_run(arguments.documents, seed=i, task="hedge_task", model=f"model {i}", samples=10)
        write_submission(first / f"s{i}.json", make_submission(run))
    size = (first / "s0.json").stat().st_size
    with timed() as took:
        known = read_entries(first).entries
    each = [seconds / len(known) for seconds in took]
    print(
        f"an entry of {arguments.documents} documents, {size / 1e6:.1f} MB, looked at for the first time: {told(each)}"
    )
    for task in range(arguments.tasks):
        make_known(known[0], first / "s0.json", entries, cache, task, arguments)
    n = arguments.models * arguments.tasks
    with timed() as took:
        built = read_entries(entries, cache=cache)
    assert len(built.entries) == n, built.refused
    print(f"{n} known entries, {n * size / 1e9:.2f} GB, read: {told(took)}")
    with timed() as drawn:
        pages = build_site(built, folder / "site")
    sizes = sorted((path.stat().st_size, path.name) for path in pages)
    together = [a + b for a, b in zip(took, drawn, strict=True)]
    print(f"the site of {len(pages)} pages: {told(drawn)}; together {told(together)}")
    print(f"largest page {sizes[-1][0] / 1e6:.2f} MB ({sizes[-1][1]}), all {sum(s for s, _ in sizes) / 1e6:.0f} MB")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def make_known(base: Entry, file: Path, folder: Path, cache: Path, task: int, arguments: argparse.Namespace) -> None:
    """One entry of each model on a task, as an earlier build has kept it."""
    circumstances = circumstances_of(manifests_of, edition_for, False)
    for model in range(arguments.models):
        chance = np.random.default_rng([task, model])
        place = folder / f"task{task}-model{model:03}.json"
        os.link(file, place)  # what is kept is known by content and name
        save(cache, place, varied(base, task, model, place.name, chance, arguments.unlabelled), circumstances)


def varied(base: Entry, task: int, model: int, name: str, chance: np.random.Generator, unlabelled: float) -> Entry:
    """Another entry: scores of other documents, and labels that fit them better or worse."""
    columns, about = base.columns, base.content
    n = len(columns.ids)
    order = chance.permutation(n)
    scores = {key: values[order] for key, values in columns.scores.items()}
    reference = next(iter(scores.values()))
    labels = (chance.random(n) < 0.15 + 0.4 * (reference > np.median(reference)) + 0.002 * model).astype(np.int64)
    labels[chance.random(n) < unlabelled] = -1
    columns = replace(columns, labels=labels, scores=scores)
    content = {
        **about,
        "digest": f"sha256:{chance.bytes(32).hex()}",
        "entry": {
            **about["entry"],
            "task": f"hedge_task_{task}",
            "name": f"model {model:03}",
            "model": f"model {model:03}",
        }
        | {"weights": ("open", "closed")[model % 3 == 0], "parameters": float(1 + model % 72)},
        "summary": {**about["summary"], "labelled": int((labels >= 0).sum()), "hallucinated": int((labels == 1).sum())},
        "clusterings": {
            clustering: {**of, "aggregates": {d: aggregate(columns, clustering, d) for d in of["detectors"]}}
            for clustering, of in about["clusterings"].items()
        },
    }
    kept = labels >= 0
    rate = estimate_rate(labels[kept], groups=columns.groups[kept].tolist())
    detectors = {
        price: {
            c: {d: Priced(p.auroc + 0.02 * chance.normal(), p.draws) for d, p in of.items()} for c, of in some.items()
        }
        for price, some in base.detectors.items()
    }
    html = base.html.replace(base.name, f"model {model:03}")
    return replace(
        base, file=name, content=content, columns=columns, detectors=detectors, rate=rate, answers=name, html=html
    )


def aggregate(columns: object, clustering: str, detector: str) -> dict[str, object]:
    of = columns.labelled(clustering, detector)  # type: ignore[attr-defined]
    found = estimate_auroc(of.values, of.labels.astype(int), groups=of.groups.tolist())
    low, high = found.interval or (None, None)
    return {"auroc": found.value, "stderr": found.stderr, "low": low, "high": high} | {
        "n": found.n,
        "n_positive": found.n_positive,
        "reason": found.reason,
    }


@contextmanager
def timed() -> Iterator[list[float]]:
    """Wall and processor seconds."""
    took: list[float] = []
    wall, cpu = time.perf_counter(), time.process_time()
    yield took
    took += [time.perf_counter() - wall, time.process_time() - cpu]


def told(took: list[float]) -> str:
    return f"{took[0]:.1f} s, {took[1]:.1f} s of them of the processor"


if __name__ == "__main__":
    main()
