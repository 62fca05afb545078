"""Embedding clustering against the reference implementation (hedge-bench 0.1.2), in one run on the same answers.

    python benchmarks/clustering_embedding.py [--questions 451] [--n 10]

Both get the same embeddings, computed before the clock starts. The search for a threshold is, for us, exact: SE,
RadFlag and VASE of every question and their AUROCs at every threshold in [0.8, 0.99]; for the reference its 20 trials
of Optuna. Answers are synthetic: paraphrases around a few meanings a question. Prints ratios; the reference, which is
slow, runs once a measurement, ours several times in turns (median).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

from hedge_tasks.clustering import EmbeddingClustering
from hedge_tasks.detectors.thresholds.choice import ThresholdChoice, choose
from hedge_tasks.detectors.thresholds.profile import profile_documents
from hedge_tasks.sampling import Answer, AnswerSet

LOW, HIGH = 0.8, 0.99


def answer_sets(questions: int, n: int, seed: int = 0) -> list[AnswerSet]:
    dice = random.Random(seed)

    def answer(topic: int, spread: int) -> Answer:
        return Answer(f"{topic} {dice.randrange(spread)} {dice.randrange(4)}", -dice.expovariate(2))

    sets = []
    for i in range(questions):
        label = dice.randrange(2)
        spread = 2 + 2 * label
        clean, noisy = (tuple(answer(i, spread) for _ in range(n)) for _ in range(2))
        sets.append(AnswerSet(f"q{i:05}", answer(i, spread), clean, noisy, "what?", label=label))
    return sets


def embed(text: str) -> Any:
    """A meaning (first two words) and a wording (third) around it, with cosines that fill the searched range."""
    topic, meaning, wording = text.split()
    rng = np.random.default_rng([int(topic), int(meaning)])
    centre = rng.normal(size=384)
    vector = centre + 0.45 * np.random.default_rng([int(topic), int(meaning), int(wording)]).normal(size=384)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def as_frame(sets: list[AnswerSet]) -> pd.DataFrame:
    def entry(answer: Answer) -> dict[str, Any]:
        return {"ans": answer.text, "logprob": [answer.mean_logprob]}

    rows = [
        {
            "id": a.id,
            "variant_name": "default",
            "hallucination_label": a.label,
            "original_low_temp": entry(a.baseline),
            "original_high_temp": [entry(x) for x in a.clean],
            "distorted_high_temp": [entry(x) for x in a.noisy],
        }
        for a in sets
    ]
    return pd.DataFrame(rows)


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def peak(function: Callable[[], Any]) -> float:
    """Peak of extra memory in megabytes."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def search(sets: list[AnswerSet], backend: EmbeddingClustering) -> dict[str, Any]:
    profiles = profile_documents(sets, backend.dendrograms([a.texts for a in sets]), low=LOW, high=HIGH)
    return {name: choose(profiles, ThresholdChoice(method="oracle", target=name)) for name in ("se", "radflag", "vase")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=451)
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    import hedge_bench.utils as reference

    sets = answer_sets(arguments.questions, arguments.n)
    vectors = {text: embed(text) for a in sets for text in a.texts}
    backend = EmbeddingClustering(encoder=lambda texts: [vectors[text] for text in texts])
    backend.cluster([a.texts for a in sets])  # the embeddings are in its cache, as they are in the reference's
    frame = as_frame(sets)
    tensors = {text: torch.from_numpy(vector) for text, vector in vectors.items()}
    print(f"{arguments.questions} questions x {1 + 2 * arguments.n} answers, {len(vectors)} distinct texts")

    def reference_threshold() -> Any:
        return reference.apply_embed_clustering(frame, tensors.__getitem__, threshold=0.9)

    def reference_search() -> Any:
        with contextlib.redirect_stdout(io.StringIO()):
            return reference.optimized_cluster_threshold(frame, tensors.__getitem__)

    ours = statistics.median(timed(lambda: search(sets, backend)) for _ in range(arguments.repetitions))
    theirs = timed(reference_search)
    print(f"threshold search: ours (plateau) {ours:.3f} s, reference (20 trials) {theirs:.1f} s: {theirs / ours:.0f}x")
    ours = statistics.median(
        timed(lambda: backend.cluster([a.texts for a in sets])) for _ in range(arguments.repetitions)
    )
    theirs = statistics.median(timed(reference_threshold) for _ in range(3))
    print(f"one threshold: ours {ours:.3f} s, reference {theirs:.2f} s: {theirs / ours:.0f}x")
    mine, other = peak(lambda: search(sets, backend)), peak(reference_search)
    print(f"peak extra memory of the search: ours {mine:.1f} MB, reference {other:.1f} MB: {mine / other:.2f}")
    print("growth (seconds of our exact search)")
    for n in (1, 5, 10, 20, 30):
        grown = answer_sets(arguments.questions, n)
        print(f"  n = {n:>2}: {growth(grown):.3f}")
    for k in (100, 1000, 10_000):
        print(f"  K = {k:>6}: {growth(answer_sets(k, 10)):.3f}")


def growth(sets: list[AnswerSet]) -> float:
    vectors = {text: embed(text) for a in sets for text in a.texts}
    backend = EmbeddingClustering(encoder=lambda texts: [vectors[text] for text in texts])
    return timed(lambda: search(sets, backend))


if __name__ == "__main__":
    main()
