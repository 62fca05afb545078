"""How much of the sampling time the answer store takes, and how fast a large store is read.

    python benchmarks/store_overhead.py [--documents 40] [--folder .]

The embedded model answers demo questions through the sampling hook; the time inside the store (writing, syncing to
disk, keys already known) is added up in the same run. The embedded model is some hundred times faster than a real one,
so its share is an upper bound. `--folder` chooses the disk.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hedge_tasks.data.splits import document_keys, load_split
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.sampling import Answer, SamplingPlan
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import SampleRequest
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw, StoredDocument

TASK, SPLIT = "hedge_demo", "demo-test"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the stores are made (default: the temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        shares = [overhead(Path(folder) / str(i), arguments.documents) for i in range(arguments.repetitions + 1)][1:]
        percent = [100 * share for share in shares]
        print(f"store, share of sampling time: median {statistics.median(percent):.2f} %, largest {max(percent):.2f} %")
        seconds, n_answers, megabytes = load_time(Path(folder) / "large")
        print(f"reading a store of {n_answers} answers ({megabytes:.1f} MB): {seconds:.2f} s")


def overhead(folder: Path, n_documents: int) -> float:
    """Share of the time of `generate_samples` that is spent inside the store."""
    dataset = load_split("package://hedge_tasks.tasks/hedge_demo/data", None, SPLIT).select(range(n_documents))
    keys = document_keys(dataset, ["question", "answer"], ["image"])
    plan, prompt = SamplingPlan(max_new_tokens=24), load_prompt("plain/question")
    rows = []
    for i in range(n_documents):
        request = SampleRequest(
            id=str(i),
            key=keys[i],
            question=dataset[i]["question"],
            prompt=prompt,
            plan=plan,
            load_images=lambda document: [document["image"]],
            store=folder,
        )
        rows.append(SimpleNamespace(args=("", {}, request, i, TASK, SPLIT)))
    model = HedgeTiny()
    model.task_dict = {TASK: {SPLIT: dataset}}
    spent = [0.0]
    names = ("__init__", "put", "put_documents", "get", "__getitem__")
    originals = {name: getattr(AnswerStore, name) for name in names}
    try:
        for name, method in originals.items():
            setattr(AnswerStore, name, timed(method, spent))
        start = time.perf_counter()
        generate_samples(model, rows)
        return spent[0] / (time.perf_counter() - start)
    finally:
        for name, method in originals.items():
            setattr(AnswerStore, name, method)


def timed(method: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def wrapper(*arguments: Any) -> Any:
        start = time.perf_counter()
        try:
            return method(*arguments)
        finally:
            spent[0] += time.perf_counter() - start

    return wrapper


def load_time(folder: Path, n_documents: int = 451, n_draws: int = 61) -> tuple[float, int, float]:
    """Seconds to open a store as large as VQA-RAD with n = 30."""
    answer = Answer("There is a small pleural effusion on the left side.", -0.4375, 12)
    with AnswerStore(folder) as store:
        for i in range(n_documents):
            store.put_documents(
                [],
                [StoredDocument(definition="0" * 12, key=f"{i:040x}", id=str(i), question="Is it?", reference="yes")],
            )
            store.put(FinishedDraw(f"{i:020x}{j:020x}", answer, str(i), "clean", j) for j in range(n_draws))
    start = time.perf_counter()
    opened = AnswerStore(folder)
    seconds = time.perf_counter() - start
    return seconds, len(opened), sum(file.stat().st_size for file in opened.files()) / 1e6


if __name__ == "__main__":
    main()
