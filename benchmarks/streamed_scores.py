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
import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.detectors.pipeline import summarise
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.from_store import run_from_store, stored_blocks
from hedge_tasks.runs.parts import score_parts
from hedge_tasks.sampling import Answer, SamplingPlan
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.segments import home
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw, StoredDocument

_AT_ONCE = 64  # documents a write

FINDINGS = ("a small pleural effusion", "an enlarged heart", "no abnormality", "a fracture of the rib", "a nodule")
PLACES = ("on the left side", "on the right side", "in the upper lobe", "in the lower lobe")
FRAMES = ("There is {} {}.", "The image shows {} {}.", "{} {} can be seen.")


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


def fill(folder: Path, questions: range, n: int) -> None:
    """A store as a run leaves it: a definition, its documents, and all their draws."""
    plan = SamplingPlan(n=n)
    definition = Definition.of("benchmark", "scale", load_prompt("plain/question"), plan)
    dice = random.Random(questions.start)
    documents = [document(i, definition, n) for i in questions]
    with AnswerStore(folder, lazy=True) as store:  # as a run does
        store.put_documents([definition], documents)
        for start in range(0, len(documents), _AT_ONCE):
            some = documents[start : start + _AT_ONCE]
            store.put([record for each in some for record in records(each, definition, plan, dice)])


def document(i: int, definition: Definition, n: int) -> StoredDocument:
    reference = f"{FINDINGS[i % len(FINDINGS)]} {PLACES[i % len(PLACES)]}"
    facts = {"group": f"image-{i // 3}", "question_type": ("open", "closed")[i % 2]}
    question = "What abnormality is visible in this image?"
    return StoredDocument(
        definition=definition.id,
        key=f"{i:040x}",
        id=f"q{i}",
        question=question,
        reference=reference,
        **facts,
        n=n,
        n_noisy=n,
    )


def records(
    asked: StoredDocument, definition: Definition, plan: SamplingPlan, dice: random.Random
) -> list[FinishedDraw]:
    """Paraphrases around a few meanings, more of them for a question that is hard."""
    meanings = 1 + dice.randrange(4)

    def answer() -> Answer:
        meaning = dice.randrange(meanings)
        text = dice.choice(FRAMES).format(FINDINGS[(meaning + dice.randrange(2)) % 5], PLACES[meaning])
        return Answer(text, -round(dice.expovariate(2), 5), 4 + len(text) // 5)

    draws = plan.draws(asked.key)
    keys, of = [definition.key(asked.key, asked.question, draw) for draw in draws], home(asked.key)
    return [FinishedDraw(k, answer(), asked.id, d.condition, d.index, of) for k, d in zip(keys, draws, strict=True)]


def made_up(texts: Sequence[str]) -> Any:
    """A vector a text: its own, and that of its words."""
    vectors = np.stack([sum((_word(word) for word in text.split()), start=np.zeros(384)) for text in texts])
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _word(word: str) -> Any:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=384)


if __name__ == "__main__":
    main()
